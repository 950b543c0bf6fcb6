"""One attempt: its files, its environment, its session, and the verdict on what it left."""
