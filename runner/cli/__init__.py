"""The command line `graphagent`."""
