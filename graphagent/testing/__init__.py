"""Fakes and conformance suites that users' own stores and models can run."""

from graphagent.testing.store_suite import checkpoint_store_suite

__all__ = ["checkpoint_store_suite"]
