"""What a WSGI server imports, in each of its processes. With DELIVER_HERE=1, each of them delivers too."""

import atexit
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
application = get_wsgi_application()

if os.environ.get("DELIVER_HERE") == "1":
    from contextlib import ExitStack

    from reminders.scheduling import scheduler

    worker = ExitStack()
    worker.enter_context(scheduler().running())
    atexit.register(worker.close)  # before the store is closed: what was registered last is called first
