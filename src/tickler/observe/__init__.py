"""SEE: explains, diagnoses, forecasts and measures. Uses the contracts only, never a particular store.

- `why.py` explains one schedule; its wording is in `why_wording.py`.
- `doctor.py` lists the checks in `checks/`.
- `forecast.py` counts coming fires; `forecast_cache.py` stores the result.
- `metrics.py` and `tracing.py` export to Prometheus and OpenTelemetry.
"""

from tickler.observe.diagnosis import Diagnosis, Finding
from tickler.observe.forecast import Forecast
from tickler.observe.why import Why

__all__ = ["Diagnosis", "Finding", "Forecast", "Why"]
