"""Plug-ins: folders of skills, commands, agents, hooks, servers and styles that others wrote. See docs/plugins.md."""
