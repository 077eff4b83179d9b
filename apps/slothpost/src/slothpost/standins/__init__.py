"""Local stand-ins for X and Threads that behave as documented. Tests and the demo publish there."""
