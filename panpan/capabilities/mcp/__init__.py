"""Servers of the Model Context Protocol (MCP), whose tools the model finds and calls when it needs them."""

import logging

_library_log = logging.getLogger("mcp")
_library_log.addHandler(logging.NullHandler())  # else the library prints text of servers, with their control characters
_library_log.propagate = False
