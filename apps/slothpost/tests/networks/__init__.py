"""Tests of the clients of X and Threads."""
