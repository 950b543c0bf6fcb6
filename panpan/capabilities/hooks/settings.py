"""Hooks in settings files and on the command line."""

import json
from collections.abc import Iterable, Iterator

from pydantic import ConfigDict, JsonValue

from panpan.config.places import BroughtFile
from panpan.config.settings import Table
from panpan.config.settings_file import Source


class HookSettings(Table):
    """Hooks, `[[hooks.EVENT]]`, each with a `matcher` and a list of `hooks`; those of all sources count.

    The events are no fields, since what is wrong with one costs only its hooks.
    """

    model_config = ConfigDict(extra="allow", strict=False)
    __pydantic_extra__: dict[str, JsonValue]

    table = "hooks"


def hooks_of_settings(sources: Iterable[Source]) -> Iterator[BroughtFile]:
    """Yield the hooks of settings, the weakest first, each event as a file of its own."""
    for source in sources:
        for event, groups in source.values.get(HookSettings.table, {}).items():
            data = json.dumps({"hooks": {event: groups}}).encode()
            place = source.place_of((HookSettings.table, event))
            yield BroughtFile("hooks", place, data, is_users=True, has_lines=False)
