"""The AG-UI server: runs as streams of events for user interfaces, below `/agui`."""
