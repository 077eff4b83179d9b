"""The audit: what was done to prices, by whom and why. Written with what it tells of, and read by store, product and so on."""

from pricebook.audit.trail import AuditTrail

__all__ = ["AuditTrail"]
