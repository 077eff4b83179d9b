"""Weekly plans of channels, the schedules they become, and pauses."""
