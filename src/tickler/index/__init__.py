"""DUE: the schedule index: which schedules are due right now?"""
