"""Processes: starting, watching, limiting and ending them."""
