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


async def test_files_come_in_the_order_of_their_paths(workspace: Workspace) -> None:
    for name in ("b.py", "a.txt", "a/z.py", "a-b.py", "Z.py"):
        workspace.put(name, "needle\n")

    assert await workspace.grep("needle") == ["Z.py", "a/z.py", "a-b.py", "a.txt", "b.py"]


async def test_content_shows_numbered_lines_with_their_context(workspace: Workspace) -> None:
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


async def test_context_before_and_after_can_differ_and_numbers_can_be_left_out(workspace: Workspace) -> None:
    workspace.put("a.py", "one\nneedle\nthree\nfour\n")

    assert await workspace.grep("needle", output_mode="content", A=1, B=0, n=False) == ["a.py:needle", "a.py-three"]
    assert await workspace.grep("needle", output_mode="content", context=1, A=2) == [
        "a.py-1-one",
        "a.py:2:needle",
        "a.py-3-three",
        "a.py-4-four",
    ]


async def test_count_gives_matching_lines_by_file_and_in_all(workspace: Workspace) -> None:
    workspace.put("a.py", "needle needle\nneedle\n")
    workspace.put("b.py", "needle\n")

    assert await workspace.grep("needle", output_mode="count") == ["a.py:2", "b.py:1", "[3 in 2 files]"]


async def test_a_page_says_what_is_left_out_and_how_to_see_it(workspace: Workspace) -> None:
    workspace.put("a.py", "".join(f"needle {number}\n" for number in range(10)))

    first = await workspace.grep("needle", output_mode="content", head_limit=3)
    last = await workspace.grep("needle", output_mode="content", head_limit=3, offset=9)
    beyond = await workspace.grep("needle", output_mode="content", offset=50)

    assert first[0] == "a.py:1:needle 0"
    assert first[3] == "[lines 1-3 of 10; offset=3 shows more, or search for less]"
    assert last == ["a.py:10:needle 9", "[lines 10-10 of 10]"]
    assert beyond == ["[there are 10 lines, so none from offset 50 on]"]


async def test_more_than_any_program_prints_stays_bounded_and_is_the_same_each_time(workspace: Workspace) -> None:
    for number in range(60):
        workspace.put(f"f{number:02}.txt", "needle and some more words\n" * 4000)
    assert 60 * 4000 * len("f00.txt:1000:needle and some more words") > MAX_OUTPUT_BYTES

    results = [await workspace.grep("needle", output_mode="content", head_limit=0) for _ in range(2)]

    assert results[0] == results[1]
    assert len("\n".join(results[0])) < MAX_RESULT_CHARS + 500
    assert results[0][0] == "f00.txt:1:needle and some more words"
    assert "of more than" in results[0][-1]


async def test_a_long_line_is_cut_with_a_mark(workspace: Workspace) -> None:
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
async def test_globs_choose_files_and_never_beat_gitignore(workspace: Workspace, glob: str, files: list[str]) -> None:
    workspace.put(".gitignore", "*.log\n")
    for name in ("a.py", "src/b.py", "src/c.md", "x.log"):
        workspace.put(name, "needle\n")

    assert await workspace.grep("needle", glob=glob) == files


async def test_a_glob_may_start_at_the_working_directory_or_at_the_folder_searched(workspace: Workspace) -> None:
    workspace.put("src/deep/a.py", "needle\n")

    assert await workspace.grep("needle", path="src", glob="src/deep/*.py") == ["src/deep/a.py"]
    assert await workspace.grep("needle", path="src", glob="deep/*.py") == ["src/deep/a.py"]


async def test_paths_are_relative_to_the_working_directory_or_absolute(workspace: Workspace) -> None:
    workspace.put("src/a.py", "needle\n")
    other = workspace.put("other.py", "needle\n")
    workspace.ctx.paths.change_directory(workspace.root / "src")

    assert await workspace.grep("needle") == ["a.py"]
    assert await workspace.grep("needle", path="..") == [str(other), str(workspace.root / "src/a.py")]


async def test_one_file_can_be_searched_even_where_it_is_ignored(workspace: Workspace) -> None:
    workspace.put(".gitignore", "*.log\n")
    workspace.put("x.log", "needle\n")

    assert await workspace.grep("needle", path="x.log", output_mode="content") == ["x.log:1:needle"]


async def test_a_search_reaches_neither_outside_nor_through_links(workspace: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("needle\n")
    (workspace.root / "link").symlink_to(outside)
    (workspace.root / "link.txt").symlink_to(outside / "secret.txt")

    assert await workspace.grep("needle") == ["[no matches]"]
    for path in (str(outside), "link", "link.txt", "../outside"):
        with pytest.raises(ToolError, match="outside the workspace"):
            await workspace.grep("needle", path=path)


async def test_a_special_file_does_not_block(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "pipe")

    assert await workspace.grep("needle") == ["[no matches]"]
    with pytest.raises(ToolError, match="neither a file nor a folder"):
        await workspace.grep("needle", path="pipe")


async def test_a_missing_path_is_an_error(workspace: Workspace) -> None:
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
async def test_a_question_that_cannot_be_asked_says_why(
    workspace: Workspace, arguments: dict[str, str], words: str
) -> None:
    with pytest.raises(ToolError, match=words):
        await workspace.call(GrepTool(), arguments)


@pytest.mark.parametrize("tool", [GrepTool(), GrepTool(lambda _: None)], ids=["ripgrep", "built-in"])
async def test_advice_about_escapes_is_given_for_patterns_only(workspace: Workspace, tool: GrepTool) -> None:
    with pytest.raises(ToolError) as wrong_type:
        await workspace.call(tool, {"pattern": "x", "type": "nonsense"})
    with pytest.raises(ToolError) as wrong_pattern:
        await workspace.call(tool, {"pattern": "foo("})

    assert "give a glob" in str(wrong_type.value)
    assert "\\(" not in str(wrong_type.value)
    assert "\\(" in str(wrong_pattern.value)


async def test_a_pattern_like_a_flag_is_a_pattern(workspace: Workspace) -> None:
    workspace.put("a.txt", "see --files here\n")

    assert await workspace.grep("--files", output_mode="content") == ["a.txt:1:see --files here"]


async def test_a_pattern_with_a_line_feed_gets_a_hint(workspace: Workspace) -> None:
    workspace.put("a.txt", "one\ntwo\n")

    assert await workspace.grep(r"one\ntwo") == ["[no matches; a pattern with \\n needs multiline]"]
    assert await workspace.grep(r"one\ntwo", multiline=True) == ["a.txt"]


async def test_the_name_of_a_file_cannot_forge_a_line(workspace: Workspace) -> None:
    workspace.put("a\nb.py:1:fake", "needle\n")
    (workspace.root / os.fsdecode(b"bad\xff.py")).write_text("needle\n")

    assert await workspace.grep("needle") == ["a\\nb.py:1:fake", "bad\\udcff.py"]


async def test_a_file_that_cannot_be_read_is_mentioned(workspace: Workspace) -> None:
    workspace.put("a.py", "needle\n")
    workspace.put("closed.py", "needle\n").chmod(0)
    if os.access(workspace.root / "closed.py", os.R_OK):
        pytest.skip("this user may read everything")

    assert await workspace.grep("needle") == ["a.py", "[some files or folders could not be read]"]


async def test_settings_of_the_user_and_environment_do_not_count(
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


async def test_a_folder_that_is_excluded_from_above_can_be_searched_by_name(workspace: Workspace) -> None:
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


def test_arguments_have_the_names_that_models_know() -> None:
    args = GrepInput.model_validate({"pattern": "x", "-A": 1, "-B": 2, "-C": 3, "-n": False, "-i": True})

    assert (args.after, args.before, args.around, args.has_numbers, args.ignore_case) == (1, 2, 3, False, True)
    with pytest.raises(ValidationError):
        GrepInput.model_validate({"pattern": "x", "nonsense": 1})


def test_what_the_model_is_told_is_short() -> None:
    definition = GrepTool().definition

    size = len(json.dumps([definition.name, definition.description, definition.input_schema], separators=(",", ":")))
    assert size < 1300
    assert {"-A", "-B", "-C", "-n", "-i"} < set(definition.input_schema["properties"])


async def test_people_see_how_much_was_found(workspace: Workspace) -> None:
    workspace.put("a.py", "needle\nneedle\n")

    found = await workspace.call(GrepTool(), {"pattern": "needle", "output_mode": "content"})
    nothing = await workspace.call(GrepTool(), {"pattern": "absent"})

    assert found.display == SummaryDisplay(text="2 lines")
    assert nothing.display == SummaryDisplay(text="no matches")
    assert text_of(nothing) == "[no matches]"


async def test_the_gate_is_told_what_would_be_read(workspace: Workspace) -> None:
    tool = GrepTool()

    named = await tool.effects(GrepInput(pattern="x", path="/etc", glob="*.py"), workspace.ctx)
    assert named == Effects(searches=("/etc",), searched_names="*.py")
    assert await tool.effects(GrepInput(pattern="x"), workspace.ctx) == Effects(searches=(".",))
    assert tool.only_reads


async def test_what_is_binary_is_mentioned_and_not_shown(workspace: Workspace) -> None:
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
async def test_secrets_are_left_out_and_the_result_says_so_whether_they_match_or_not(
    workspace: Workspace, mode: str
) -> None:
    for name in (".env", ".env.example", "a.py", "sub/.ssh/config", "sub/.netrc"):
        workspace.put(name, "needle\n")
    said = "[left out, since they may hold secrets: .env]"

    found = await workspace.grep("needle", output_mode=mode)

    assert [line for line in found if ".env:" in line or ".ssh" in line or ".netrc" in line] == []
    assert any(line.startswith(".env.example") for line in found)
    assert any(line.startswith("a.py") for line in found)
    assert found[-1] == said
    assert (await workspace.grep("nothing here", output_mode=mode))[-1] == said


async def test_secrets_are_searched_when_a_person_has_approved_it(workspace: Workspace) -> None:
    env = workspace.put(".env", "needle\n")
    config = workspace.put(".ssh/config", "needle\n")
    for path in (".env", ".ssh"):
        with pytest.raises(ToolError, match="may hold secrets"):
            await workspace.grep("needle", path=path)

    workspace.ctx = replace(workspace.ctx, paths=workspace.ctx.paths.approving(frozenset({env, config.parent})))

    assert await workspace.grep("needle", path=".env") == [".env"]
    assert await workspace.grep("needle", path=".ssh") == [".ssh/config"]
