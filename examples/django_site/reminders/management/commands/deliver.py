"""`python manage.py deliver`: delivers reminders until SIGTERM or Ctrl-C, and then finishes those that have begun."""

import signal
import threading

from django.core.management.base import BaseCommand

from reminders.scheduling import scheduler


class Command(BaseCommand):
    help = "Deliver reminders until stopped."

    def handle(self, *args, **options):
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        with scheduler().running() as t:
            while t.own_workers and not stopping.wait(1):
                pass  # a worker that has failed is gone, and the end of this block raises its error
