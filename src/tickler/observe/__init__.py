"""SEE: what happened and why, what is wrong, and what is to come. Knows the contracts, and no store."""
