"""The rules of the networks for a text: how long it is there, what it costs, and what happens to it."""
