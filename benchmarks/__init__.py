"""Benchmarks: what the engine costs, side by side with hand-written code and with peers."""
