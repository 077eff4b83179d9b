"""Where items are kept. `engine.py` is the contract; each other module implements it."""
