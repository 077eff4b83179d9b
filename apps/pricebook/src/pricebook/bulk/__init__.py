"""Imports of any size as jobs that survive a crash, and exports that stream."""

from pricebook.bulk.jobs import BulkJobs
from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.settings import BulkSettings

__all__ = ["BulkJobs", "BulkLimits", "BulkSettings"]
