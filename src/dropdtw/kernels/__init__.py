"""Executors that are compiled from the tables of `recurrence.py`."""
