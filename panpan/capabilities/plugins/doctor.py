"""Check of `panpan doctor`: the plug-ins that are on, and those that cannot be used."""

from collections.abc import Iterable

from panpan.cli_kit.doctor import Check, FeatureChecks, Machine


def check_plugins(machine: Machine) -> Iterable[Check]:
    """Report the plug-ins, and what of them has no effect."""
    if machine.loaded is None:
        return
    places = machine.loaded.places
    if places.plugins:
        names = ", ".join(one.plugin.name for one in places.plugins)
        yield Check("plug-ins", "ok", f"{len(places.plugins)} on: {names}")
    for problem in places.plugin_problems:
        yield Check("plug-ins", "note", problem)
    for one in places.plugins:
        for problem in one.plugin.problems:
            yield Check("plug-ins", "note", f"{one.plugin.name}: {problem}")


CHECKS: FeatureChecks = {"programs": check_plugins}
