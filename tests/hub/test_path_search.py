"""Finding paths by what is typed of them."""

from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from panpan.hub.path_search import MAX_PATHS, file_list, find_paths

FILES = (
    "docs/main_ideas.md",
    "panpan/ui/repl/input_box.py",
    "panpan/ui/line_loop.py",
    "main/deep/other.txt",
    "tests/conftest.py",
    "src/main.py",
    "README.md",
)


async def found(typed: str, files: tuple[str, ...] = FILES, limit: int = 50) -> list[str]:
    return await find_paths(file_list(Path("/w"), files), typed, limit)


async def test_names_that_begin_with_the_text_precede_other_matches() -> None:
    paths = await found("main", ("x/main/a.txt", "a/domain.py", "b/main.py"))

    assert [path for path in paths if not path.endswith("/")] == ["b/main.py", "a/domain.py", "x/main/a.txt"]


@pytest.mark.parametrize(
    ("typed", "best"),
    [
        ("README", "README.md"),
        ("readme", "README.md"),
        ("ui/repl/inp", "panpan/ui/repl/input_box.py"),
        ("./src/ma", "src/main.py"),
        ("ibox", "panpan/ui/repl/input_box.py"),
        ("srcmainpy", "src/main.py"),
        ("conftset", "tests/conftest.py"),
        ("panpan/ui/re", "panpan/ui/repl/"),
    ],
)
async def test_intended_path_comes_first(typed: str, best: str) -> None:
    assert (await found(typed))[0] == best


async def test_empty_search_gives_the_newest_files() -> None:
    assert await found("", limit=3) == list(FILES[:3])


async def test_search_without_matches_gives_nothing() -> None:
    assert await found("qqqqzzzz") == []


@given(st.lists(st.text("abAB/._-é日İ", min_size=1, max_size=12), max_size=30), st.text("abAB/.é日İ", max_size=6))
async def test_path_that_contains_the_text_is_found_once(names: list[str], typed: str) -> None:
    files = tuple(dict.fromkeys(name.strip("/") for name in names if name.strip("/")))

    paths = await found(typed, files, limit=10_000)

    assert len(paths) == len(set(paths))
    assert {path for path in files if typed and typed.lower().removeprefix("./") in path.lower()} <= set(paths)


@given(st.text(max_size=30))
async def test_search_takes_any_text(typed: str) -> None:
    assert set(await found(typed)) <= {path for path in file_paths()}


def file_paths() -> set[str]:
    folders = {f"{parent}/" for path in FILES for parent in map(str, Path(path).parents) if parent != "."}
    return set(FILES) | folders


async def test_search_returns_at_most_the_limit() -> None:
    assert len(await found("py", tuple(f"a/{number}.py" for number in range(3_000)), limit=50)) == 50


async def test_others_run_while_a_long_list_is_searched() -> None:
    files = file_list(Path("/w"), [f"package_{number % 97}/module_number_{number}.py" for number in range(50_000)])
    turns = 0
    is_done = False

    async def count() -> None:
        nonlocal turns
        while not is_done:
            await checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await find_paths(files, "zzzzzzzz", 50)
        is_done = True

    assert turns > 5


def test_list_is_bounded_and_says_so() -> None:
    files = file_list(Path("/w"), [f"{number}.py" for number in range(MAX_PATHS + 1)])

    assert files.total == MAX_PATHS
    assert files.is_partial


def test_names_that_a_mention_cannot_hold_are_left_out() -> None:
    files = file_list(Path("/w"), ['a"b.py', "a\nb.py", "a\x1b[2J.py", "a\u202eb.py", "good one.py"])

    assert "".join(chunk.text for chunk in files.chunks).count("\n") == 1
    assert files.total == 1
