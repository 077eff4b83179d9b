"""Deliverers: one file for each kind of target. `deliver/target_registry.py` says how to add a kind."""
