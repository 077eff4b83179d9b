"""The one Tickler of this process, which all its threads share."""

import atexit
import functools
import threading
import time

from django.conf import settings

import tickler

lock = threading.Lock()


def scheduler():
    with lock:
        return _opened()


@functools.cache
def _opened():
    """Open it at the first use, and so in each process by itself: a server may fork after the import."""
    t = tickler.connect_sync(settings.TICKLER_STORE)
    t.handler("remind")(remind)
    t.open()
    atexit.register(t.close)
    return t


def remind(delivery):
    """Send the mail, on a thread of its own. Do it once: `delivery.id` is the same on every attempt."""
    time.sleep(delivery.payload.get("seconds", 0))
    return f"sent to {delivery.owner}: {delivery.payload['text']}"
