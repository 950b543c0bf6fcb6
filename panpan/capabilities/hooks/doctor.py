"""Check of `panpan doctor`: the hooks of the user and of the project, and what of them cannot be used."""

from collections.abc import Iterable

from panpan.capabilities.hooks.configuration import read_hooks
from panpan.capabilities.hooks.files import hook_files
from panpan.cli_kit.doctor import Check, FeatureChecks, Machine


def check_hooks(machine: Machine) -> Iterable[Check]:
    """Report how many hooks run, and each that does not."""
    if machine.loaded is None:
        return
    unread: list[str] = []
    files = list(hook_files(machine.locations.home, machine.loaded.trust, unread.append))
    found = read_hooks(files)
    if found.handlers:
        places = dict.fromkeys(one.place.rpartition(":")[0] or one.place for one in found.handlers)
        yield Check("hooks", "ok", f"{len(found.handlers)} of {', '.join(places)}")
    for problem in (*unread, *found.problems, *found.asides):
        yield Check("hooks", "note", problem)


CHECKS: FeatureChecks = {"programs": check_hooks}
