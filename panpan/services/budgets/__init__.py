"""Budgets: what a session and each of its subagents may spend, as a tree in which a parent's limits bind its children."""
