"""Agents of a plug-in, for a person who may enable it."""

from panpan.capabilities.subagents.definitions.load import plugin_definitions
from panpan.cli_kit.plugin_parts import PartReader, PartReport
from panpan.config.places import Places


def _agents(places: Places) -> PartReport:
    found, problems = plugin_definitions(places)
    return PartReport("agents", [one.name for one in found], problems=list(map(str, problems)))


READ: PartReader = _agents
