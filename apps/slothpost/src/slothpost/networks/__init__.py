"""The networks that posts go to: one contract, and a client for each."""
