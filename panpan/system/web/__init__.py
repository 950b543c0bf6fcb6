"""The web: the one way to it for tools, and the proxies through which other programs reach it."""
