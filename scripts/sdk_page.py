"""Writes the tables of docs/agent-sdk.md from the rows in the code, and what `initialize` is answered with.

.venv/bin/python -m scripts.sdk_page
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from panpan.faces.headless.output_formats import CLAUDE_CODE_VERSION
from panpan.faces.sdk import conformance
from panpan.faces.sdk.conformance import Row
from panpan.version import __version__

PAGE = Path(__file__).parent.parent / "docs" / "agent-sdk.md"
OFFERS = PAGE.parent.parent / "panpan" / "faces" / "sdk" / "offers.json"
END = "<!-- end -->\n"
TABLES = {"flags": conformance.FLAGS, "requests": conformance.REQUESTS, "questions": conformance.ASKED}


def table(head: str, rows: Sequence[Row]) -> str:
    """Return a table of rows."""
    lines = (f"| `{row.name}` | {row.state} | {row.note} |" for row in rows)
    return "\n".join([f"| {head} | state | note |", "|---|---|---|", *lines]) + "\n"


def offers() -> dict[str, Any]:
    """Return what every session has, in the shape of the answer to `initialize`."""
    from panpan.app import slash_commands
    from panpan.capabilities.output_styles.styles import DEFAULT, OutputStyles
    from panpan.capabilities.subagents.definitions.load import shipped_definitions
    from panpan.config.places import Places
    from panpan.faces.terminal.commands.registry import all_commands

    commands = [one for one in all_commands(slash_commands()) if not one.needs_terminal]
    return {
        "commands": [{"name": one.name, "description": one.help, "argumentHint": one.arguments} for one in commands],
        "agents": [{"name": one.name, "description": one.description} for one in shipped_definitions()],
        "available_output_styles": [
            name.lower() if name == DEFAULT else name for name in OutputStyles(Places(), PAGE.parent).all
        ],
        "models": [{"value": "default", "displayName": "Default", "description": "The model of your settings"}],
        "claude_code_version": CLAUDE_CODE_VERSION,
        "panpan_version": __version__,
    }


def page_with_tables(page: str) -> str:
    """Return the text of the page with the tables as they are now."""
    for name, rows in TABLES.items():
        begin = f"<!-- {name}: written by scripts/sdk_page.py -->\n"
        before, found, rest = page.partition(begin)
        if not found or begin in rest:
            raise ValueError(f"{PAGE.name} needs the line {begin.strip()!r} once, and {END.strip()!r} behind it")
        after = rest.partition(END)[2]
        page = f"{before}{begin}\n{table(name.removesuffix('s'), rows)}\n{END}{after}"
    return page


def main() -> int:
    """Write the page and the file."""
    OFFERS.write_text(json.dumps(offers(), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
