"""Credentials, regions and signatures for AWS."""
