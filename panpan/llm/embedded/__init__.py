"""The embedded model: its weights, the server that runs it on this machine, and what it is told.

Nothing here is imported unless the user sets it up or asks for it.
"""

PREFIX_FILES = "prefix-*.bin"
"""Beside the weights: what servers kept of the beginning of every conversation, see `warm_up`."""
