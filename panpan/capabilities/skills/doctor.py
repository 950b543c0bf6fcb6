"""Check of `panpan doctor`: the skills and commands of the user and of the project, and those that cannot be used."""

from collections.abc import Iterable

from panpan.capabilities.skills.catalogue import SkillSet
from panpan.cli_kit.doctor import Check, FeatureChecks, Machine


def check_skills(machine: Machine) -> Iterable[Check]:
    """Report how many skills there are, and each that is not used."""
    if machine.loaded is None:
        return
    found = SkillSet(machine.loaded.places)
    if found.all:
        yield Check("skills", "ok", f"{len(found.all):,} found, commands included: panpan skills list")
    for problem in found.refused:
        yield Check("skills", "note", f"not used: {problem}")


CHECKS: FeatureChecks = {"programs": check_skills}
