"""What a table looks like from outside: its schema as a value, as a page, and what an advisor says about it."""
