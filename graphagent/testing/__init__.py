"""Assertions on graphs, fakes and conformance suites that users' own stores and models can run."""

from graphagent.testing.graph_ok import assert_graph_ok
from graphagent.testing.service_suites import (
    artifact_service_suite,
    memory_service_suite,
    searchable_sessions_suite,
    session_service_suite,
    summary_leases_suite,
    windowed_sessions_suite,
)
from graphagent.testing.store_suite import checkpoint_store_suite

__all__ = [
    "artifact_service_suite",
    "assert_graph_ok",
    "checkpoint_store_suite",
    "memory_service_suite",
    "searchable_sessions_suite",
    "session_service_suite",
    "summary_leases_suite",
    "windowed_sessions_suite",
]
