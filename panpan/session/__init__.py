"""One conversation: its log on disk, its turns, and what a capability and an agent are."""
