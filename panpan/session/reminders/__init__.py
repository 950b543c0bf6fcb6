"""What the model is reminded of while it works; docs/reminders.md lists all of it."""
