"""Reminders: what the features want the model to know while it works; docs/reminders.md lists all of them."""
