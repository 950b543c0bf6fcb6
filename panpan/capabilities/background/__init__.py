"""Tasks that go on beside the conversation: commands and subagents, found again after a crash."""
