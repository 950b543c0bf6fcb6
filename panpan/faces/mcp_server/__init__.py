"""The face for programs that speak the Model Context Protocol: panpan as their server.

A call of the tool `panpan` is a turn of a session. Its events become progress, its questions elicitation, and its end
the result. The library `mcp` is imported here and nowhere on the way of other commands.
"""
