"""The OpenAI-compatible server: `/v1/chat/completions` and `/v1/models`."""
