"""What keeps a model's requests within what it can take, before each call."""
