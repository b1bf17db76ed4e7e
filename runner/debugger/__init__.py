"""The debugger on the command line: commands over a `DebugSession`, typed at a prompt or given as a script."""
