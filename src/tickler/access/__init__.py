"""Access tokens, and the audit log."""
