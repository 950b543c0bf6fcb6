"""Plug-ins: folders of skills, commands, agents, hooks, servers and styles that others wrote.

Features read the parts of plug-ins by themselves (`config/places.py`). This one says which are on.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from panpan.config.places import Places
from panpan.session.capability import Capability
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.system.text.terminal_text import clean_line


class PluginsCapability(Capability):
    """Says which plug-ins are on, and which of them cannot be used."""

    name = "plugins"

    def services(self) -> Iterable[object]:
        return (self,)

    @property
    def places(self) -> Places:
        """Places of this session, plug-ins included."""
        return self.session.setup.loaded.places

    def described(self) -> Mapping[str, Callable[[], object]]:
        return {"plugins": self._rows, "plugin_errors": self._errors}

    def _rows(self) -> object:
        return [
            {"name": one.plugin.name, "path": str(one.place.root), "version": one.plugin.version}
            for one in self.places.plugins
        ]

    def _errors(self) -> object:
        return [
            {"plugin": problem.partition(":")[0], "type": "generic-error", "message": clean_line(problem)}
            for problem in self.places.plugin_problems
        ]

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        for problem in self.places.plugin_problems:
            self.session.warn(clean_line(problem))
        yield

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return (Command("plugins", "Show the plug-ins that are on", _show, is_immediate=True),)


async def _show(terminal: Terminal, rest: str) -> None:
    places = terminal.session[PluginsCapability].places
    if not places.plugins:
        say(terminal, "no plug-in is on; panpan plugin add SOURCE adds one, in a shell")
    say_pairs(
        terminal,
        [
            (clean_line(one.plugin.name), clean_line(f"{one.plugin.version} {one.plugin.description}".strip()))
            for one in places.plugins
        ],
    )
    for problem in places.plugin_problems:
        say(terminal, clean_line(problem), "warn")
