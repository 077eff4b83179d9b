"""How many examples a property is tried with: the same few every time, or in a soak (TICKLER_SOAK=1) thousands of new ones."""

from __future__ import annotations

import os
from datetime import timedelta

from hypothesis import HealthCheck, settings

SOAK = os.environ.get("TICKLER_SOAK") == "1"

examples = settings(
    max_examples=3_000 if SOAK else 40,
    derandomize=not SOAK,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
quick_examples = settings(examples, deadline=timedelta(seconds=20))
