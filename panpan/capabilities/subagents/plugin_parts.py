"""Agents of a plug-in, for a person who may enable it."""

from panpan.capabilities.subagents.definitions.load import brought_definitions
from panpan.capabilities.subagents.definitions.read_definition import Problem
from panpan.cli_kit.plugin_parts import PartReader, PartReport
from panpan.config.places import Places


def _agents(places: Places) -> PartReport:
    problems: list[Problem] = []
    found = [one.definition for one in brought_definitions(places, problems)]
    wrong, notes = ([str(one) for one in problems if one.is_error is is_wrong] for is_wrong in (True, False))
    return PartReport("agents", [one.name for one in found], problems=wrong, notes=notes)


READ: PartReader = _agents
