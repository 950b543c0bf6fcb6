"""Campaigns: a folder with many tasks, run to their end on one machine or many.

Each attempt at a task is a `panpan` of its own with a session of its own, so a worker may be killed at any moment: the
attempt goes on elsewhere by its session id. The folder is the truth. Whoever reports a result has written it there.
"""
