"""Budgets: what a session and its subagents may spend, as a tree in which the limits of a parent bind its children."""
