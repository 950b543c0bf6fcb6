"""Skills and commands of a plug-in, for a person who may enable it."""

from collections.abc import Iterator

from panpan.capabilities.skills.catalogue import SkillSet
from panpan.capabilities.skills.loading import ShellCommand, parts_of
from panpan.capabilities.skills.skill_file import Skill, hook_lines
from panpan.cli_kit.plugin_parts import PartReader, PartReport, RunningPart
from panpan.config.places import Places


def _skills(places: Places) -> PartReport:
    found = SkillSet(places)
    skills = found.all.values()
    running = [part for skill in skills for part in _running(skill)]
    return PartReport("skills and commands", list(found.all), running, found.refused, found.asides)


def _running(skill: Skill) -> Iterator[RunningPart]:
    for part in parts_of(skill.body):
        if isinstance(part, ShellCommand):
            yield RunningPart(f"command of {skill.name}: {part.line}", skill.place)
    for line in hook_lines(skill):
        yield RunningPart(f"hook while {skill.name} is followed, at {line}", skill.place)
    if skill.allowed_tools:
        rules = ", ".join(skill.allowed_tools)
        yield RunningPart(f"calls that {skill.name} lets run without a question for one turn: {rules}", skill.place)


READ: PartReader = _skills
