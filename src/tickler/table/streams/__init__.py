"""Streams: the changes of a table, delivered to named consumers in order, at least once.

```
ChangeLog (of the engine)   shards of ordered changes
  │  leases.py              PURE: which shards this process reads, beside others of the same consumer
  │  progress.py            positions and leases, in the table's metadata
  ▼  session.py             reads the leased shards, saves their positions, and deletes what all have read (pruner.py)
  ▼  delivery.py            calls handlers, in order for each item; tries again
  ▼  events.py              PURE: which handlers a change concerns
  ▼  parking.py             keeps a change that keeps failing, and those behind it
```
"""
