"""Writes the table of operations in docs/server.md from the table in the code.

.venv/bin/python -m scripts.server_page
"""

import sys
from pathlib import Path

from panpan.faces.server.routes import SERVER_ADDRESSES, SESSION_ADDRESSES, operation_of

PAGE = Path(__file__).parent.parent / "docs" / "server.md"
BEGIN = "<!-- operations: written by scripts/server_page.py -->\n"
END = "<!-- end -->\n"


def table() -> str:
    """Return the table."""
    rows = []
    for address in (*SERVER_ADDRESSES, *SESSION_ADDRESSES):
        operation = operation_of(address)
        path = address.path.replace("{session}", "ID")
        rows.append(f"| `{address.verb} {path}` | `{operation.name}` | {operation.summary} |")
    return "\n".join(["| address | on the bus | |", "|---|---|---|", *rows]) + "\n"


def page_with_table(page: str) -> str:
    """Return the text of the page with the table as it is now."""
    before, found, rest = page.partition(BEGIN)
    if not found:
        raise ValueError(f"{PAGE.name} needs the line {BEGIN.strip()!r}")
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Write the page."""
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
