"""Plug-ins: `panpan plugin` adds, shows, enables and updates what others wrote. See docs/plugins.md."""
