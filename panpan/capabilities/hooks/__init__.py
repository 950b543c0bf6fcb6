"""Hooks that users bring: commands that run at fixed points of a session, and may say no. See docs/hooks.md."""
