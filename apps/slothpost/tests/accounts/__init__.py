"""Tests of connecting accounts, and of keeping their tokens valid."""
