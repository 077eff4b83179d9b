"""The web pages: rendered on the server, with a few small scripts and nothing from other sites."""
