"""panpan, a coding agent for the terminal.

Importing it does nothing and costs nothing: the names below are loaded when they are first used.
"""

__version__ = "0.1.0"
