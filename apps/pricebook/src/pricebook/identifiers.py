"""The names under which the engine knows what pricebook has: handlers, and whose its own work is."""

from __future__ import annotations

SETTLE = "pricebook.settle"
CARRY_ON = "pricebook.change-set"
BULK = "pricebook.bulk"
SWEEP = "pricebook.sweep"

OWNER = "pricebook"
SWEEP_OWNER = "pricebook/sweep"
