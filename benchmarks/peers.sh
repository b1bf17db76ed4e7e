#!/bin/sh
# Makes a venv for each peer in benchmarks/.peers, at the versions the figures in README.md were taken with.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
python=${PYTHON:-python3}

peer() {
    name=$1
    shift
    [ -x "$here/.peers/$name/bin/python" ] || "$python" -m venv "$here/.peers/$name"
    "$here/.peers/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

peer langgraph langgraph==1.2.24 langgraph-checkpoint==4.3.2 langgraph-checkpoint-sqlite==3.1.2 \
    langgraph-prebuilt==1.1.3 langchain-core==1.8.3
peer adk google-adk==2.13.0 "sqlalchemy[asyncio]>=2.0" "aiosqlite>=0.20"
