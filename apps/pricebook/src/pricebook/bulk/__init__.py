"""Imports of any size as jobs that survive a crash, and exports that stream."""
