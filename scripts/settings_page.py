"""Writes the list of all settings in docs/settings.md, from the models that check them.

.venv/bin/python -m scripts.settings_page
"""

import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic_core import PydanticUndefined

from panpan.config.descriptions import descriptions
from panpan.config.settings import Settings, Table, settings_type

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
BEGIN, END = "<!-- written by scripts/settings_page.py -->\n", "<!-- end -->\n"


def rows(kind: type[Table], described: Mapping[str, str]) -> Iterator[str]:
    """Yield a row of the table for each setting of a model that is no table itself.

    Args:
        kind: The model.
        described: Descriptions by the names of its fields.
    """
    for name, field in kind.model_fields.items():
        if _table_in(field.annotation) is not None:
            continue
        text = described.get(name, "").replace("|", "\\|")
        yield f"| `{name}` | {_shown(field.default)} | {_of_few(field.annotation)}{text} |"


def _shown(default: Any) -> str:
    if default is None or default is PydanticUndefined or default == ():
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default.value if isinstance(default, Enum) else default}`"


def _of_few(type_: Any) -> str:
    """Return the words of which a setting is one, such as "`on`, `off`: "; empty if it is no choice."""
    words = [one for one in _members(type_) if isinstance(one, str)]
    return f"{', '.join(f'`{word}`' for word in words)}: " if len(words) > 1 else ""


def _members(type_: Any) -> Iterator[Any]:
    for one in get_args(type_):
        yield from _members(one) if get_origin(one) is not None else [one]


def tables(kind: type[Table], path: str = "") -> Iterator[str]:
    """Yield the list of a model and then those of its tables, each under a heading."""
    found = list(rows(kind, {**_described(kind)}))
    if found:
        yield f"### {f'`[{path}]`' if path else 'At the top'}\n"
        yield "| key | default | meaning |\n|---|---|---|\n" + "\n".join(found) + "\n"
    for name, field in sorted(kind.model_fields.items()):
        if (inner := _table_in(field.annotation)) is not None:
            place = f"{path}.{name}" if path else name
            yield from tables(inner, f"{place}.NAME" if inner.is_named else place)


def _table_in(annotation: Any) -> type[Table] | None:
    """Return the table that a setting is, or of which the user names any number; None if it is no table."""
    named = [one for one in get_args(annotation) if isinstance(one, type) and issubclass(one, Table) and one.is_named]
    is_table = isinstance(annotation, type) and issubclass(annotation, Table)
    return annotation if is_table else named[0] if named else None


def _described(kind: type[Table]) -> Mapping[str, str]:
    return descriptions(Settings if issubclass(kind, Settings) else kind)


def page_with_list(page: str) -> str:
    """Return the text of the page with the list as it is now."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n" + "\n".join(tables(settings_type())) + f"\n{END}{after}"


def main() -> int:
    """Write the list into the page."""
    PAGE.write_text(page_with_list(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
