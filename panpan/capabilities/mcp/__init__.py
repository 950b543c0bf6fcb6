"""Servers of the Model Context Protocol (MCP), whose tools the model finds and calls when it needs them."""
