"""SEE: what happened and why, what is wrong, and what is to come. Knows the contracts, and no store."""

from tickler.observe.diagnosis import Diagnosis, Finding
from tickler.observe.forecast import Forecast
from tickler.observe.why import Why

__all__ = ["Diagnosis", "Finding", "Forecast", "Why"]
