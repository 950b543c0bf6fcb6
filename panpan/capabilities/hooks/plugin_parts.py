"""Hooks of a plug-in, for a person who may enable it."""

from panpan.capabilities.hooks.configuration import hooks_of_folder
from panpan.cli_kit.plugin_parts import PartReader, PartReport, RunningPart
from panpan.config.places import Places


def _hooks(places: Places) -> PartReport:
    found = hooks_of_folder(places)
    running = [
        RunningPart(f"hook at {one.about}: {one.title}{one.only}", one.place.partition(": ")[2])
        for one in found.handlers
    ]
    return PartReport("hooks", running=running, problems=found.problems)


READ: PartReader = _hooks
