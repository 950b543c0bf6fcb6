import subprocess
import sys
from pathlib import Path

import pytest

from panpan.app import tools_of_folder
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.core.late_tool import late_tool
from panpan.core.tool import Tool
from scripts.tool_facts import pages

FLAGS = [name for name in Tool.__annotations__ if name not in ("input_model", "description")]
PAGES = list(pages())


@pytest.mark.parametrize(("file", "text"), PAGES, ids=[file.parent.name for file, _ in PAGES])
def test_facts_of_tools_are_current(file: Path, text: str) -> None:
    assert file.read_text(encoding="utf-8") == text, "run: .venv/bin/python -m scripts.tool_facts"


def test_late_tools_say_what_the_tools_say(tmp_path: Path) -> None:
    locations = Locations.find(tmp_path, {"PANPAN_HOME": str(tmp_path / "home")})
    tools = tools_of_folder(tmp_path, load_settings(tmp_path, {}, {}, locations), locations)
    late = [tool for tool in tools if tool.load() is not tool]

    assert len(late) > 10
    for tool in late:
        loaded = tool.load()
        assert tool.load() is loaded
        assert tool.definition == loaded.definition
        assert {name: getattr(tool, name) for name in FLAGS} == {name: getattr(loaded, name) for name in FLAGS}


def test_modules_of_late_tools_are_imported_at_the_first_call() -> None:
    script = """
import sys
from panpan.core.late_tool import late_tool
import panpan.capabilities.files.capability
tool = late_tool("panpan.capabilities.files", "Write", "write:WriteTool")
print(tool.definition.name, "panpan.capabilities.files.write" in sys.modules)
print(type(tool.load()).__name__, "panpan.capabilities.files.write" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split("\n")[:2] == ["Write False", "WriteTool True"]


def test_unknown_tool_is_an_error_when_it_is_declared() -> None:
    with pytest.raises(KeyError, match="Fly"):
        late_tool("panpan.capabilities.files", "Fly", "fly:FlyTool")
