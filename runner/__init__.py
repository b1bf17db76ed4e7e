"""runner: see README."""
