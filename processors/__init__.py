"""processors: see README."""
