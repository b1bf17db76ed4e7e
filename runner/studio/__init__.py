"""The studio: runs of a store in the browser, step by step."""
