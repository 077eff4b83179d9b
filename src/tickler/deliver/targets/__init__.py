"""Where fires go: one file a kind."""
