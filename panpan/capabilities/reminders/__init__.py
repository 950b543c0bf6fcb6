"""Reminders for the model while it works. docs/reminders.md lists all of them."""
