"""Editions: sets of prices of a store that count from one instant on, all at once."""
