"""Posts from draft to network: states, schedules, review, publishing."""
