"""A Django site with reminders: `python manage.py runserver` in one shell, `python manage.py deliver` in another."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
    execute_from_command_line(sys.argv)
