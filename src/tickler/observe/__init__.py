"""SEE: explains schedules (`why.py`), checks stores (`doctor.py`), forecasts fires, and exports metrics and traces.

Uses the contracts only, never a particular store.
"""

from tickler.observe.diagnosis import Diagnosis, Finding
from tickler.observe.forecast import Forecast
from tickler.observe.why import Why

__all__ = ["Diagnosis", "Finding", "Forecast", "Why"]
