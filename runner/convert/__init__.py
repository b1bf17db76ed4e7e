"""Graphs of other frameworks as canonical documents, so that they can be validated and drawn."""
