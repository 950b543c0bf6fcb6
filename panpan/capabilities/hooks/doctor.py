"""Check of `panpan doctor`: the hooks of the user and of the project, and what of them cannot be used."""

from collections.abc import Iterable

from panpan.capabilities.hooks.configuration import hooks_of_folder
from panpan.cli_kit.doctor import Check, FeatureChecks, Machine


def check_hooks(machine: Machine) -> Iterable[Check]:
    """Report how many hooks run, and each that does not."""
    if machine.loaded is None:
        return
    found = hooks_of_folder(machine.loaded.places, machine.loaded.sources)
    if found.handlers:
        places = dict.fromkeys(one.place.rpartition(":")[0] or one.place for one in found.handlers)
        yield Check("hooks", "ok", f"{len(found.handlers)} of {', '.join(places)}")
    for problem in found.problems:
        yield Check("hooks", "note", problem)


CHECKS: FeatureChecks = {"programs": check_hooks}
