"""KEEP: schedules, as users declare them. Read `schedules.py` for what callers use."""
