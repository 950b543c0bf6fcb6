"""Writes the tables of docs/agent-sdk.md, from the rows in the code.

.venv/bin/python -m scripts.sdk_page
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from panpan.faces.sdk import conformance
from panpan.faces.sdk.conformance import Row

PAGE = Path(__file__).parent.parent / "docs" / "agent-sdk.md"
END = "<!-- end -->\n"
TABLES = {"flags": conformance.FLAGS}


def table(head: str, rows: Sequence[Row]) -> str:
    """Return a table of rows."""
    lines = (f"| `{row.name}` | {row.state} | {row.note} |" for row in rows)
    return "\n".join([f"| {head} | state | note |", "|---|---|---|", *lines]) + "\n"


def page_with_tables(page: str) -> str:
    """Return the text of the page with the tables as they are now."""
    for name, rows in TABLES.items():
        begin = f"<!-- {name}: written by scripts/sdk_page.py -->\n"
        before, _, rest = page.partition(begin)
        after = rest.partition(END)[2]
        page = f"{before}{begin}\n{table(name.removesuffix('s'), rows)}\n{END}{after}"
    return page


def main() -> int:
    """Write the page."""
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
