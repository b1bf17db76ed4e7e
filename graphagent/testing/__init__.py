"""Assertions on graphs, fakes and conformance suites that users' own stores and models can run."""

from graphagent.testing.graph_ok import assert_graph_ok
from graphagent.testing.store_suite import checkpoint_store_suite

__all__ = ["assert_graph_ok", "checkpoint_store_suite"]
