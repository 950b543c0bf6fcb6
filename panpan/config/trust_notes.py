"""What the user is told, on one line, of project settings that do not count until he trusts the project."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from panpan.config.keys import KeyPath, dotted, quoted, shown
from panpan.config.settings import rule_text
from panpan.config.settings_file import Source
from panpan.config.trust import Changed, ProjectTrust, Trusted, Untrusted

_HOW = "`panpan trust` shows it, `panpan trust add` trusts it, --trust does for one run"


def notes_on_trust(project: Source, trust: ProjectTrust, needing_trust: Sequence[KeyPath]) -> Iterator[str]:
    """Yield a line on what is not believed, or on what is believed for this run only.

    Args:
        project: The project's settings, as they were written.
        trust: Whether they are believed.
        needing_trust: The keys in them that count only if so.
    """
    keys = ", ".join(dict.fromkeys(dotted(path) for path in needing_trust))
    match trust.state:
        case Trusted(is_for_this_run=True):
            yield f"--trust: {project.place} is believed for this run: {keys or 'nothing in it needs it'}"
        case Changed() if keys:
            yield f"{project.place} is not believed ({keys}), since it changed after you trusted it; {_HOW}"
        case Untrusted(problem=problem) if keys and problem:
            yield f"{project.place} is not believed ({keys}): {problem}"
        case Untrusted() if keys:
            yield f"{project.place} is not believed ({keys}), since you have not trusted this folder; {_HOW}"


def as_written(source: Source, path: KeyPath) -> str:
    """Return what a source says for a key, `KEY = VALUE`, harmless to show."""
    value: Any = source.values
    for part in path:
        value = value[part]
    if not isinstance(value, list):
        return f"{dotted(path)} = {_shown(value)}"
    return f"{dotted(path)} = [{', '.join(map(_shown, value))}]"


def _shown(value: Any) -> str:
    value = rule_text(value) if isinstance(value, Mapping) else value
    return quoted(value) if isinstance(value, str) else shown(value).lower()
