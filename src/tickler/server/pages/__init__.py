"""The web page: rendered here, with a few small scripts of its own and nothing from elsewhere."""
