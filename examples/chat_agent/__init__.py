"""An agent with two tools that is talked with: what a conversation with memory takes, and no more."""
