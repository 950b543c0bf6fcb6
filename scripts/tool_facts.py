"""Writes `tools.json` of each capability with late tools, from the tools themselves (see `panpan/core/late_tool.py`).

.venv/bin/python -m scripts.tool_facts
"""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from panpan.core.late_tool import FACTS_FILE, facts_of
from panpan.core.tool import Tool

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
        source = capability.read_text(encoding="utf-8")
        if "late_tool(" in source:
            facts = {kind.name: facts_of(kind) for kind in tool_classes(capability.parent)}
            late = {name: facts[name] for name in sorted(facts) if f'"{name}"' in source}
            yield capability.with_name(FACTS_FILE), json.dumps(late, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the files; return 0."""
    for file, text in pages():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
