"""Loading a catalogue: all stores and prices of a new table at once."""
