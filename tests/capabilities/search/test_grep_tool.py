import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from panpan.capabilities.search.grep import GrepInput, GrepTool
from panpan.core.effects import Effects
from panpan.errors import ToolError
from panpan.system.files.paths import PathResolver
from panpan.text_search.engine import MAX_OUTPUT_BYTES, MAX_RESULT_CHARS, find_ripgrep
from panpan.types.content import SummaryDisplay
from tests.capabilities.search.conftest import Workspace, text_of


async def test_grep_lists_files_in_the_order_of_paths(workspace: Workspace) -> None:
    for name in ("b.py", "a.txt", "a/z.py", "a-b.py", "Z.py"):
        workspace.put(name, "needle\n")

    assert await workspace.grep("needle") == ["Z.py", "a/z.py", "a-b.py", "a.txt", "b.py"]


async def test_grep_content_has_numbered_lines_with_context(workspace: Workspace) -> None:
    workspace.put("a.py", "one\ntwo\nneedle\nfour\nfive\nsix\nseven\nneedle\n")
    workspace.put("b.py", "needle\r\n")

    lines = await workspace.grep("needle", output_mode="content", C=1)

    assert lines == [
        "a.py-2-two",
        "a.py:3:needle",
        "a.py-4-four",
        "--",
        "a.py-7-seven",
        "a.py:8:needle",
        "--",
        "b.py:1:needle",
    ]


async def test_grep_context_may_differ_and_numbers_may_be_omitted(workspace: Workspace) -> None:
    workspace.put("a.py", "one\nneedle\nthree\nfour\n")

    assert await workspace.grep("needle", output_mode="content", A=1, B=0, n=False) == ["a.py:needle", "a.py-three"]
    assert await workspace.grep("needle", output_mode="content", context=1, A=2) == [
        "a.py-1-one",
        "a.py:2:needle",
        "a.py-3-three",
        "a.py-4-four",
    ]


async def test_grep_count_has_matching_lines_by_file_and_in_all(workspace: Workspace) -> None:
    workspace.put("a.py", "needle needle\nneedle\n")
    workspace.put("b.py", "needle\n")

    assert await workspace.grep("needle", output_mode="count") == ["a.py:2", "b.py:1", "[3 in 2 files]"]


async def test_grep_page_says_how_to_see_the_rest(workspace: Workspace) -> None:
    workspace.put("a.py", "".join(f"needle {number}\n" for number in range(10)))

    first = await workspace.grep("needle", output_mode="content", head_limit=3)
    last = await workspace.grep("needle", output_mode="content", head_limit=3, offset=9)
    beyond = await workspace.grep("needle", output_mode="content", offset=50)

    assert first[0] == "a.py:1:needle 0"
    assert first[3] == "[lines 1-3 of 10; offset=3 shows more, or search for less]"
    assert last == ["a.py:10:needle 9", "[lines 10-10 of 10]"]
    assert beyond == ["[there are 10 lines, so none from offset 50 on]"]


async def test_grep_output_is_bounded_and_stable(workspace: Workspace) -> None:
    for number in range(60):
        workspace.put(f"f{number:02}.txt", "needle and some more words\n" * 4000)
    assert 60 * 4000 * len("f00.txt:1000:needle and some more words") > MAX_OUTPUT_BYTES

    results = [await workspace.grep("needle", output_mode="content", head_limit=0) for _ in range(2)]

    assert results[0] == results[1]
    assert len("\n".join(results[0])) < MAX_RESULT_CHARS + 500
    assert results[0][0] == "f00.txt:1:needle and some more words"
    assert "of more than" in results[0][-1]


async def test_grep_cuts_a_long_line_with_a_mark(workspace: Workspace) -> None:
    workspace.put("min.js", "x" * 100_000 + "needle\n")

    (line,) = await workspace.grep("needle", output_mode="content")

    assert line.endswith(" [line cut]")
    assert len(line) < 600


@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("*.py", ["a.py", "src/b.py"]),
        ("*.{py,md}", ["a.py", "src/b.py", "src/c.md"]),
        ("*.py *.md", ["a.py", "src/b.py", "src/c.md"]),
        ("*.py,*.md", ["a.py", "src/b.py", "src/c.md"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**", ["src/b.py", "src/c.md"]),
        ("!*.py", ["src/c.md"]),
        ("!src/", ["a.py"]),
        ("src/* !*.md", ["src/b.py"]),
        ("*.log", ["[no matches]"]),
    ],
)
async def test_grep_globs_choose_files_but_obey_gitignore(workspace: Workspace, glob: str, files: list[str]) -> None:
    workspace.put(".gitignore", "*.log\n")
    for name in ("a.py", "src/b.py", "src/c.md", "x.log"):
        workspace.put(name, "needle\n")

    assert await workspace.grep("needle", glob=glob) == files


async def test_grep_glob_may_start_at_either_folder(workspace: Workspace) -> None:
    workspace.put("src/deep/a.py", "needle\n")

    assert await workspace.grep("needle", path="src", glob="src/deep/*.py") == ["src/deep/a.py"]
    assert await workspace.grep("needle", path="src", glob="deep/*.py") == ["src/deep/a.py"]


async def test_grep_paths_are_relative_or_absolute(workspace: Workspace) -> None:
    workspace.put("src/a.py", "needle\n")
    other = workspace.put("other.py", "needle\n")
    workspace.ctx.paths.change_directory(workspace.root / "src")

    assert await workspace.grep("needle") == ["a.py"]
    assert await workspace.grep("needle", path="..") == [str(other), str(workspace.root / "src/a.py")]


async def test_grep_searches_an_ignored_file_by_name(workspace: Workspace) -> None:
    workspace.put(".gitignore", "*.log\n")
    workspace.put("x.log", "needle\n")

    assert await workspace.grep("needle", path="x.log", output_mode="content") == ["x.log:1:needle"]


async def test_grep_reaches_neither_outside_nor_through_links(workspace: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("needle\n")
    (workspace.root / "link").symlink_to(outside)
    (workspace.root / "link.txt").symlink_to(outside / "secret.txt")

    assert await workspace.grep("needle") == ["[no matches]"]
    for path in (str(outside), "link", "link.txt", "../outside"):
        with pytest.raises(ToolError, match="outside the workspace"):
            await workspace.grep("needle", path=path)


async def test_grep_is_not_blocked_by_a_special_file(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "pipe")

    assert await workspace.grep("needle") == ["[no matches]"]
    with pytest.raises(ToolError, match="neither a file nor a folder"):
        await workspace.grep("needle", path="pipe")


async def test_grep_refuses_a_missing_path(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="nowhere does not exist"):
        await workspace.grep("needle", path="nowhere")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "foo("}, "unclosed group"),
        ({"pattern": "x", "type": "nonsense"}, "nonsense"),
        ({"pattern": "x", "glob": "{a"}, "not closed"),
        ({"pattern": "x\0y"}, "NUL character"),
        ({"pattern": "x" * 200_000}, "cannot"),
    ],
    ids=["pattern", "type", "glob", "NUL", "huge"],
)
async def test_grep_says_why_it_cannot_search(workspace: Workspace, arguments: dict[str, str], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        await workspace.call(GrepTool(), arguments)


@pytest.mark.parametrize("tool", [GrepTool(), GrepTool(lambda _: None)], ids=["ripgrep", "built-in"])
async def test_grep_advises_on_escapes_for_patterns_only(workspace: Workspace, tool: GrepTool) -> None:
    with pytest.raises(ToolError) as wrong_type:
        await workspace.call(tool, {"pattern": "x", "type": "nonsense"})
    with pytest.raises(ToolError) as wrong_pattern:
        await workspace.call(tool, {"pattern": "foo("})

    assert "give a glob" in str(wrong_type.value)
    assert "\\(" not in str(wrong_type.value)
    assert "\\(" in str(wrong_pattern.value)


async def test_grep_takes_a_pattern_like_a_flag(workspace: Workspace) -> None:
    workspace.put("a.txt", "see --files here\n")

    assert await workspace.grep("--files", output_mode="content") == ["a.txt:1:see --files here"]


async def test_grep_hints_at_a_line_feed_in_a_pattern(workspace: Workspace) -> None:
    workspace.put("a.txt", "one\ntwo\n")

    assert await workspace.grep(r"one\ntwo") == ["[no matches; a pattern with \\n needs multiline]"]
    assert await workspace.grep(r"one\ntwo", multiline=True) == ["a.txt"]


async def test_grep_file_name_cannot_forge_a_line(workspace: Workspace) -> None:
    workspace.put("a\nb.py:1:fake", "needle\n")
    (workspace.root / os.fsdecode(b"bad\xff.py")).write_text("needle\n")

    assert await workspace.grep("needle") == ["a\\nb.py:1:fake", "bad\\udcff.py"]


async def test_grep_mentions_an_unreadable_file(workspace: Workspace) -> None:
    workspace.put("a.py", "needle\n")
    workspace.put("closed.py", "needle\n").chmod(0)
    if os.access(workspace.root / "closed.py", os.R_OK):
        pytest.skip("this user may read everything")

    assert await workspace.grep("needle") == ["a.py", "[some files or folders could not be read]"]


async def test_grep_ignores_settings_and_environment_of_ripgrep(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = workspace.root.parent / "ripgreprc"
    config.write_text("--files\n--no-ignore\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    workspace.put(".gitignore", "*.log\n")
    workspace.put(".ignore", "a.py\n")
    workspace.put("a.py", "needle\n")
    workspace.put("b.log", "needle\n")

    assert await workspace.grep("needle") == ["a.py"]


async def test_grep_searches_an_excluded_folder_by_name(workspace: Workspace) -> None:
    workspace.put(".gitignore", "/build\n*.py\n")
    workspace.put("build/a.py", "needle\n")

    assert await workspace.grep("needle") == ["[no matches]"]
    assert await workspace.grep("needle", path="build") == ["build/a.py"]


def test_ripgrep_is_never_taken_from_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, outside = tmp_path / "work", tmp_path / "bin"
    for folder in (workspace, outside):
        folder.mkdir()
        (folder / "rg").write_text("#!/bin/sh\n")
        (folder / "rg").chmod(0o755)
    paths = PathResolver(workspace)
    monkeypatch.setattr("sys.executable", str(tmp_path / "elsewhere/python"))
    monkeypatch.chdir(workspace)

    monkeypatch.setenv("PATH", f"{workspace}{os.pathsep}.{os.pathsep}{os.pathsep}{outside}")
    assert find_ripgrep(paths) == str(outside / "rg")
    monkeypatch.setenv("PATH", str(workspace))
    assert find_ripgrep(paths) is None


def test_grep_arguments_have_names_that_models_know() -> None:
    args = GrepInput.model_validate({"pattern": "x", "-A": 1, "-B": 2, "-C": 3, "-n": False, "-i": True})

    assert (args.after, args.before, args.around, args.has_numbers, args.ignore_case) == (1, 2, 3, False, True)
    with pytest.raises(ValidationError):
        GrepInput.model_validate({"pattern": "x", "nonsense": 1})


def test_tool_description_is_short() -> None:
    definition = GrepTool().definition

    size = len(json.dumps([definition.name, definition.description, definition.input_schema], separators=(",", ":")))
    assert size < 1300
    assert {"-A", "-B", "-C", "-n", "-i"} < set(definition.input_schema["properties"])


async def test_grep_display_counts_the_matches(workspace: Workspace) -> None:
    workspace.put("a.py", "needle\nneedle\n")

    found = await workspace.call(GrepTool(), {"pattern": "needle", "output_mode": "content"})
    nothing = await workspace.call(GrepTool(), {"pattern": "absent"})

    assert found.display == SummaryDisplay(text="2 lines")
    assert nothing.display == SummaryDisplay(text="no matches")
    assert text_of(nothing) == "[no matches]"


async def test_permission_gate_learns_the_paths_read(workspace: Workspace) -> None:
    tool = GrepTool()

    named = await tool.effects(GrepInput(pattern="x", path="/etc", glob="*.py"), workspace.ctx)
    assert named == Effects(searches=("/etc",), searched_names="*.py")
    assert await tool.effects(GrepInput(pattern="x"), workspace.ctx) == Effects(searches=(".",))
    assert tool.only_reads


async def test_grep_mentions_a_binary_file_without_showing_it(workspace: Workspace) -> None:
    workspace.put("early.bin", b"needle\n\0\nneedle\n")
    workspace.put("late.bin", b"needle\n" + b"filler\n" * 40_000 + b"\0\nneedle\n")

    assert await workspace.grep("needle", output_mode="content") == [
        "late.bin:1:needle",
        "late.bin: binary from here on, so not shown",
    ]
    assert await workspace.grep("needle", path="early.bin", output_mode="content") == [
        "early.bin: binary from here on, so not shown"
    ]


@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
async def test_grep_omits_secret_files_and_says_so(workspace: Workspace, mode: str) -> None:
    for name in (".env", ".env.example", "a.py", "sub/.ssh/config", "sub/.netrc"):
        workspace.put(name, "needle\n")
    said = "[left out, since they may hold secrets: .env]"

    found = await workspace.grep("needle", output_mode=mode)

    assert [line for line in found if ".env:" in line or ".ssh" in line or ".netrc" in line] == []
    assert any(line.startswith(".env.example") for line in found)
    assert any(line.startswith("a.py") for line in found)
    assert found[-1] == said
    assert (await workspace.grep("nothing here", output_mode=mode))[-1] == said


async def test_grep_searches_approved_secret_files(workspace: Workspace) -> None:
    env = workspace.put(".env", "needle\n")
    config = workspace.put(".ssh/config", "needle\n")
    for path in (".env", ".ssh"):
        with pytest.raises(ToolError, match="may hold secrets"):
            await workspace.grep("needle", path=path)

    workspace.ctx = replace(workspace.ctx, paths=workspace.ctx.paths.approving(frozenset({env, config.parent})))

    assert await workspace.grep("needle", path=".env") == [".env"]
    assert await workspace.grep("needle", path=".ssh") == [".ssh/config"]
