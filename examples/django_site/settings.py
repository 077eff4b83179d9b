import os

SECRET_KEY = os.environ.get("SECRET_KEY", "only for trying this out")
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = ["reminders"]
ROOT_URLCONF = "urls"
WSGI_APPLICATION = "wsgi.application"
TICKLER_STORE = os.environ.get("TICKLER_STORE", "sqlite:///reminders.db")
