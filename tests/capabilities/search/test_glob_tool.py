import json
import os
from pathlib import Path

import pytest

from panpan.capabilities.search.glob import MAX_FILES, GlobInput, GlobTool
from panpan.core.effects import Effects
from panpan.errors import ToolError
from panpan.types.content import SummaryDisplay
from tests.capabilities.search.conftest import Workspace

NOTHING = ["[no files found; what .gitignore excludes is searched only where the pattern names its folder]"]


async def test_glob_tool_lists_the_newest_files_first(workspace: Workspace) -> None:
    for name in ("old.py", "src/new.py", "src/newest.py", "other.txt"):
        workspace.put(name)

    assert await workspace.glob("**/*.py") == ["src/newest.py", "src/new.py", "old.py"]


async def test_glob_tool_shows_a_hundred_files_and_counts_the_rest(workspace: Workspace) -> None:
    for number in range(MAX_FILES + 20):
        workspace.put(f"{number}.py")

    lines = await workspace.glob("*.py")

    assert lines[0] == f"{MAX_FILES + 19}.py"
    assert lines[MAX_FILES:] == ["[the newest 100 of 120 files; use a narrower pattern to see others]"]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("*.py", {"a.py", "src/b.py", "src/deep/c.py"}),
        ("./*.py", {"a.py", "src/b.py", "src/deep/c.py"}),
        ("/*.py", None),
        ("src/*.py", {"src/b.py"}),
        ("src/**/*.py", {"src/b.py", "src/deep/c.py"}),
        ("src/b.py", {"src/b.py"}),
        ("src/", {"src/b.py", "src/deep/c.py", "src/d.ts"}),
        ("**/*.{py,ts}", {"a.py", "src/b.py", "src/deep/c.py", "src/d.ts"}),
        ("{src,.github}/*", {"src/b.py", "src/d.ts", ".github/ci.yml"}),
        (".github/*", {".github/ci.yml"}),
        ("**/deep/*", {"src/deep/c.py"}),
        ("nothing", set()),
    ],
)
async def test_glob_tool_reads_patterns_as_models_mean_them(
    workspace: Workspace, pattern: str, files: set[str] | None
) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.ts", ".github/ci.yml", ".git/HEAD"):
        workspace.put(name)

    if files is None:
        with pytest.raises(ToolError, match="outside the workspace"):
            await workspace.glob(pattern)
    else:
        assert set(await workspace.glob(pattern)) == (files or set(NOTHING))


async def test_gitignore_holds_unless_the_pattern_names_the_folder(workspace: Workspace) -> None:
    workspace.put(".gitignore", "*.log\nbuild/\n")
    workspace.put("a.log")
    workspace.put("build/out.js")

    assert await workspace.glob("**/*.{log,js}") == NOTHING
    assert await workspace.glob("build/*.js") == ["build/out.js"]


async def test_glob_tool_stays_in_the_workspace(workspace: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").touch()
    (workspace.root / "link").symlink_to(outside)
    workspace.put("src/a.py")

    for pattern in (f"{outside}/*.py", "../outside/*.py", "src/../../outside/*", "link/*.py", "/**/*.py", "~/*"):
        with pytest.raises(ToolError, match="outside the workspace"):
            await workspace.glob(pattern)
    with pytest.raises(ToolError, match="behind a wildcard"):
        await workspace.glob("*/../../outside/*")
    assert await workspace.glob("**/secret.py") == NOTHING


async def test_glob_tool_takes_absolute_and_parent_paths_inside(workspace: Workspace) -> None:
    workspace.put("src/a.py")
    workspace.put("lib/b.py")
    workspace.ctx.paths.change_directory(workspace.root / "src")

    assert await workspace.glob(f"{workspace.root}/src/*.py") == ["a.py"]
    assert await workspace.glob("../lib/*.py") == [f"{workspace.root}/lib/b.py"]
    assert await workspace.glob("*.py", path="../lib") == [f"{workspace.root}/lib/b.py"]
    assert await workspace.glob("*.py", path="") == ["a.py"]


async def test_glob_tool_reports_a_path_that_is_no_folder(workspace: Workspace) -> None:
    workspace.put("a.py")

    with pytest.raises(ToolError, match="nowhere is not a folder"):
        await workspace.glob("*.py", path="nowhere")
    with pytest.raises(ToolError, match="not closed"):
        await workspace.glob("*.{py")
    assert await workspace.glob("nowhere/*.py") == ["[no files found; nowhere is not a folder]"]


async def test_glob_tool_omits_links_and_special_files(workspace: Workspace) -> None:
    workspace.put("a.py")
    (workspace.root / "b.py").symlink_to("a.py")
    os.mkfifo(workspace.root / "c.py")

    assert await workspace.glob("*.py") == ["a.py"]


async def test_glob_display_counts_the_files(workspace: Workspace) -> None:
    workspace.put("a.py")

    assert (await workspace.call(GlobTool(), {"pattern": "*"})).display == SummaryDisplay(text="1 file")


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        ({"pattern": "*.py"}, "."),
        ({"pattern": "src/*.py"}, "src"),
        ({"pattern": "src/*.py", "path": "lib"}, "lib/src"),
        ({"pattern": "/etc/*"}, "/etc"),
        ({"pattern": "/*"}, "/"),
        ({"pattern": "../x/**", "path": "src"}, "src/../x"),
        ({"pattern": "*/../x"}, "."),
    ],
)
async def test_permission_gate_learns_where_a_pattern_starts(
    arguments: dict[str, str], folder: str, workspace: Workspace
) -> None:
    assert await GlobTool().effects(GlobInput(**arguments), workspace.ctx) == Effects(reads=(folder,))


def test_tool_description_is_short() -> None:
    definition = GlobTool().definition

    assert len(json.dumps([definition.name, definition.description, definition.input_schema])) < 600
