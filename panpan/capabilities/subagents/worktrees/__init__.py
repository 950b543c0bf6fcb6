"""Copies of the project, each for one subagent, and the way of their changes into the project."""
