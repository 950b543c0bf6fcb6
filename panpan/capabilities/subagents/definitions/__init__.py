"""Definitions of the kinds of subagents, read from files and `--agents`."""
