"""Connections, pools, queues and migrations: what every store needs. Knows nothing of schedules."""
