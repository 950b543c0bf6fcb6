"""Subagents: further conversations that the model starts, each with its own tools, rights and log."""
