"""Completions offered while the user types."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.completion import CompleteEvent, Completion
from prompt_toolkit.document import Document

from panpan.faces.terminal.input.completion import MAX_OFFERED, InputCompleter
from panpan.hub.path_search import FileIndex
from panpan.session.command import Command, Terminal
from panpan.system.files.paths import PathResolver


async def nothing(terminal: Terminal, rest: str) -> None:
    pass


COMMANDS = [
    Command("compact", "Make the conversation shorter", nothing),
    Command("clear", "Begin a new session", nothing, aliases=("new",)),
    Command("model", "Choose the model", nothing, arguments="[name]"),
]


@asynccontextmanager
async def completer_in(folder: Path) -> AsyncGenerator[InputCompleter, None]:
    paths = PathResolver(folder)
    index = FileIndex(paths)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.run)
        yield InputCompleter(
            COMMANDS,
            index,
            paths,
            agents={"reviewer": "reads changes"},
            others=lambda: {"docs:file:///guide.md": "The guide"},
        )
        tasks.cancel_scope.cancel()


async def offered(completer: InputCompleter, before: str, after: str = "") -> list[Completion]:
    document = Document(before + after, len(before))
    return [one async for one in completer.get_completions_async(document, CompleteEvent(text_inserted=True))]


def applied(before: str, completion: Completion) -> str:
    return before[: len(before) + completion.start_position] + completion.text


async def texts(completer: InputCompleter, before: str, after: str = "") -> list[str]:
    return [applied(before, one) for one in await offered(completer, before, after)]


async def test_commands_are_offered_at_the_beginning_with_help(tmp_path: Path) -> None:
    async with completer_in(tmp_path) as completer:
        every = await offered(completer, "/")
        some = await texts(completer, "/c")

    assert {one.display_meta_text for one in every} == {command.help for command in COMMANDS}
    assert some[:2] == ["/clear", "/compact"]


async def test_command_is_found_by_letters_alias_or_misspelling(tmp_path: Path) -> None:
    async with completer_in(tmp_path) as completer:
        assert await texts(completer, "/cpt") == ["/compact"]
        assert (await texts(completer, "/new"))[0] == "/clear"
        assert (await texts(completer, "/modle"))[0] == "/model "


async def test_slash_elsewhere_is_no_command(tmp_path: Path) -> None:
    async with completer_in(tmp_path) as completer:
        assert await texts(completer, "see /c") == []
        assert await texts(completer, "\n/c") == []
        assert await texts(completer, "/model x") == []


async def test_paths_are_offered_behind_an_at_sign_anywhere(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    async with completer_in(tmp_path) as completer:
        assert (await texts(completer, "explain @mai", " to me"))[0] == "explain @src/main.py "
        assert (await texts(completer, "first line\n(@mai"))[0] == "first line\n(@src/main.py "
        assert await texts(completer, "mail@mai") == []
        assert await texts(completer, "@mai n") == []


async def test_folder_ends_in_a_slash_so_that_typing_goes_on(tmp_path: Path) -> None:
    (tmp_path / "with blank").mkdir()
    (tmp_path / "with blank" / "a.py").touch()
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "b.py").touch()
    async with completer_in(tmp_path) as completer:
        assert "@plain/" in await texts(completer, "@pla")
        assert '@"with blank/"' in await texts(completer, "@wit")
        assert '@"with blank/a.py" ' in await texts(completer, '@"with blank/"')
        assert '@"with blank/a.py" ' in await texts(completer, '@"with bl')
        assert await texts(completer, '@"with blank/a.py"') == []


async def test_agents_are_offered_before_files(tmp_path: Path) -> None:
    (tmp_path / "review.md").touch()
    async with completer_in(tmp_path) as completer:
        found = await offered(completer, "@rev")

    assert [applied("@rev", one) for one in found] == ["@reviewer ", "@review.md "]
    assert found[0].display_meta_text == "reads changes"


async def test_possible_secret_is_not_offered(tmp_path: Path) -> None:
    (tmp_path / ".env").touch()
    (tmp_path / "environment.py").touch()
    async with completer_in(tmp_path) as completer:
        assert await texts(completer, "@env") == ["@environment.py "]


async def test_list_is_short(tmp_path: Path) -> None:
    for number in range(2 * MAX_OFFERED):
        (tmp_path / f"file{number}.py").touch()
    async with completer_in(tmp_path) as completer:
        assert len(await texts(completer, "@file")) == MAX_OFFERED


async def test_leaving_early_ends_the_search(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    async with completer_in(tmp_path) as completer:
        document = Document("@", 1)
        search = completer.get_completions_async(document, CompleteEvent())
        await anext(search)
        await search.aclose()

        assert [one async for one in search] == []


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("mod", ["model"]),
        ("dir", ["add-dir", "redirect"]),
        ("md", ["model"]),
        ("exprot", ["export"]),
        ("re", ["resume", "redirect"]),
    ],
)
async def test_commands_match_loosely_with_the_best_first(tmp_path: Path, typed: str, names: list[str]) -> None:
    commands = [Command(name, "helps", nothing) for name in ("add-dir", "export", "model", "redirect", "resume")]
    completer = InputCompleter(commands, FileIndex(PathResolver(tmp_path)), PathResolver(tmp_path))

    assert await texts(completer, f"/{typed}") == [f"/{name}" for name in names]


async def test_things_of_others_are_offered_behind_an_at(tmp_path: Path) -> None:
    async with completer_in(tmp_path) as completer:
        (by_name,) = await offered(completer, "see @docs")
        by_part = await texts(completer, "see @guide")

    assert applied("see @docs", by_name) == "see @docs:file:///guide.md "
    assert by_name.display_meta_text == "The guide"
    assert by_part == ["see @docs:file:///guide.md "]


async def test_many_things_of_others_leave_room_for_files(tmp_path: Path) -> None:
    (tmp_path / "guide.py").touch()
    paths = PathResolver(tmp_path)
    index = FileIndex(paths)
    many = {f"docs:file:///guide{number}.md": "" for number in range(500)}
    completer = InputCompleter(COMMANDS, index, paths, agents={"guide": "shows the way"}, others=lambda: many)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.run)
        found = await texts(completer, "@guide")
        tasks.cancel_scope.cancel()

    assert found[0] == "@guide "
    assert len(found) == 12
    assert "@guide.py " in found


async def test_arguments_are_offered_once_a_part_is_typed(tmp_path: Path) -> None:
    command = Command("permissions", "Show the rules", nothing, arguments="[mode | remove rule]")
    offers = {"permissions": ["plan", "remove Bash(make *)", "remove Edit(/a.txt)"]}
    paths = PathResolver(tmp_path)
    completer = InputCompleter(
        [command, *COMMANDS], FileIndex(paths), paths, lambda command: offers.get(command.name, ())
    )

    assert await texts(completer, "/permissions ") == [], "Enter shows the rules, and takes none of a list"
    assert await texts(completer, "/permissions r") == [
        "/permissions remove Bash(make *)",
        "/permissions remove Edit(/a.txt)",
    ]
    assert await texts(completer, "/permissions remove MAKE") == ["/permissions remove Bash(make *)"]
    assert await texts(completer, "/permissions a") == [
        "/permissions plan",
        "/permissions remove Bash(make *)",
        "/permissions remove Edit(/a.txt)",
    ]
    assert await texts(completer, "/permissions zzz") == []
    assert await texts(completer, "/model r") == []
    assert await texts(completer, "/nothing r") == []
