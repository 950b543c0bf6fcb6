"""Writes `tools.json` of each capability with tools, from the tools themselves.

So a start makes no JSON schema, and imports no late tool (`panpan/core/late_tool.py`).

.venv/bin/python -m scripts.tool_facts
"""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from panpan.core.late_tool import facts_of
from panpan.core.tool import FACTS_FILE, Tool

CAPABILITIES = Path(__file__).parent.parent / "panpan" / "capabilities"


def tool_classes(folder: Path) -> Iterator[type[Tool[Any]]]:
    """Yield the tools that the modules of a capability define."""
    for file in sorted(folder.glob("*.py")):
        module = import_module(f"panpan.capabilities.{folder.name}.{file.stem}")
        for kind in vars(module).values():
            is_tool = isinstance(kind, type) and issubclass(kind, Tool) and kind.__module__ == module.__name__
            if is_tool and "name" in vars(kind):
                yield kind


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each of these files with the text that it should have."""
    for capability in sorted(CAPABILITIES.glob("*/capability.py")):
        facts = {kind.name: facts_of(kind) for kind in tool_classes(capability.parent)}
        if facts:
            yield capability.with_name(FACTS_FILE), json.dumps(facts, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the files; return 0."""
    for file, text in pages():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
