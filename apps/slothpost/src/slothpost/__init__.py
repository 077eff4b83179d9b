"""Slothpost: build in public without writing posts."""
