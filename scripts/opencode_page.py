"""Writes the tables of docs/opencode-sdk.md from the addresses in the code.

.venv/bin/python -m scripts.opencode_page
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from panpan.faces.server.opencode.addresses import OFFERED, REFUSED

PAGE = Path(__file__).parent.parent / "docs" / "opencode-sdk.md"
END = "<!-- end -->\n"


def tables() -> Mapping[str, str]:
    """Return the tables by their names."""
    works = [(f"`{one.verb} {one.path}`", f"`{one.call}`", one.summary) for one in OFFERED]
    works.append(("`GET /event`", "`event.subscribe`", "Tell the events of all sessions from now on"))
    refused = [(f"`{' '.join(one.verbs)} {one.path.replace('{rest:path}', '…')}`", one.why) for one in REFUSED]
    return {
        "works": _table(("address", "function", "what it does"), works),
        "refused": _table(("address", "what to do"), refused),
    }


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def page_with_tables(page: str) -> str:
    """Return the text of the page with the tables as they are now.

    Raises:
        ValueError: The page has no place for one.
    """
    for name, table in tables().items():
        begin = f"<!-- {name}: written by scripts/opencode_page.py -->\n"
        before, found, rest = page.partition(begin)
        if not found:
            raise ValueError(f"{PAGE.name} needs the line {begin.strip()!r}, and {END.strip()!r} behind it")
        page = f"{before}{begin}\n{table}\n{END}{rest.partition(END)[2]}"
    return page


def main() -> int:
    """Write the page."""
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
