"""Changing files: what a tool plans, shows before it is allowed, and writes all or nothing."""
