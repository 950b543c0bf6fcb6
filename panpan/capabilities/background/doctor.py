"""Checks of `panpan doctor`: commands that go on in the background although nobody has their session open."""

from collections.abc import Iterable

from panpan.capabilities.background.background_tasks import orphaned_commands
from panpan.cli_kit.doctor import Check, FeatureChecks, Machine, name_first


def check_tasks(machine: Machine) -> Iterable[Check]:
    """Yield the sessions of the project that have left tasks running."""
    locations = machine.locations
    left: dict[str, list[str]] = {}
    for session_id, task in orphaned_commands(locations.tasks_folder, locations.sessions_folder):
        left.setdefault(session_id, []).append(task.title)
    for session_id, titles in left.items():
        found = f"running in the background: {name_first(titles)}"
        yield Check("tasks", "note", found, f"panpan -r {session_id} takes them up")


CHECKS: FeatureChecks = {"leavings": check_tasks}
