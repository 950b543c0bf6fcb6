"""One session for many clients: the task that runs its turns, its questions, and the feed of what happens."""
