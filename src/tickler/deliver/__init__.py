"""DO: hand fires to their targets."""
