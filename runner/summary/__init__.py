"""Rolling summaries: when one is due, how it is made, and that no event is ever hidden that no summary covers."""
