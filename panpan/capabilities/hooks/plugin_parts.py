"""Hooks of a plug-in, for a person who may enable it."""

from panpan.capabilities.hooks.configuration import read_hooks
from panpan.cli_kit.plugin_parts import PartReader, PartReport, RunningPart
from panpan.config.places import Places


def _hooks(places: Places) -> PartReport:
    unread: list[str] = []
    found = read_hooks(places.files(["hooks"], unread))
    running = [
        RunningPart(f"hook at {one.about}: {one.title}{one.only}", one.place.partition(": ")[2])
        for one in found.handlers
    ]
    return PartReport("hooks", running=running, problems=(*unread, *found.problems), notes=found.asides)


READ: PartReader = _hooks
