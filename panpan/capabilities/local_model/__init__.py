"""The embedded model: its weights, the server that runs it on this machine, and what it is told.

Nothing here is imported unless the user sets it up or asks for it.
"""
