"""The pages for people: rendered on the server, and complete without JavaScript."""
