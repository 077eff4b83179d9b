from django.urls import path
from reminders import views

urlpatterns = [path("reminders/<user>/<name>", views.reminder), path("health", views.health)]
