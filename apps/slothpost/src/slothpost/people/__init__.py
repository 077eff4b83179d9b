"""Users and what they build."""
