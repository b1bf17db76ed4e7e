"""The tables of sessions, memory and artifacts, and the databases they live in."""
