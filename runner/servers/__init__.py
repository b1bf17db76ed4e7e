"""Servers: protocols over one Runner, mounted together or alone; see docs/servers.md."""
