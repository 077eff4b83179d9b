"""The words for the state of a fire. `static/stream.js` has the same for live fires, and `style.css` a colour for each."""

from __future__ import annotations

from tickler.model.fire import Entry, Fire


def entry_state(entry: Entry) -> str:
    """Return the state that this entry of the history left its fire in."""
    if entry.gave_up:
        return "dead"
    return "retrying" if entry.happened == "failed" else entry.happened


def fire_state(fire: Fire) -> str:
    """Return the state of a fire that is not settled."""
    if fire.state != "open":
        return fire.state
    return "retrying" if fire.reason is not None else "waiting" if fire.worker is None else "in flight"
