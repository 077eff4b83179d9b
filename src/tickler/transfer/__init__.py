"""Export, import and copy."""
