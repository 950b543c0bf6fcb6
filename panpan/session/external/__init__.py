"""Capabilities from outside panpan: finding them, and keeping their errors to themselves."""
