"""Graphs and agents that do real work; each folder is one example and is run with `python -m examples.<name>.demo`."""
