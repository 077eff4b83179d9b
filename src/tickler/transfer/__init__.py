"""Export and import of schedules (`ndjson.py`), and copies of whole stores (`copy.py`)."""
