import os
from pathlib import Path

import pytest

from panpan.config.locations import Locations
from panpan.errors import SessionError
from panpan.faces.terminal.commands.session_commands import MOST_SESSIONS, age
from panpan.session.command import Leave, OpenSession
from panpan.session.log.record_kinds import OpenedRecord, TitleRecord
from panpan.session.log.records import encode_record
from panpan.types.messages import UserMessage
from tests.faces.terminal.commands.command_fixtures import FakeTerminal, terminal_in, type_in


def keep_session(
    terminal: FakeTerminal,
    session_id: str,
    prompt: str,
    *,
    written_at: float,
    title: str = "",
    is_interactive: bool = True,
) -> None:
    """Put the log of an earlier session where those of the project lie."""
    folder = Locations.find(terminal.session.info.cwd, terminal.env).sessions_folder
    folder.mkdir(parents=True, exist_ok=True)
    said = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": [{"type": "text", "text": prompt}]}}
    reply = {"type": "assistant", "uuid": "a1"}
    path = folder / f"{session_id}.jsonl"
    opened = [] if is_interactive else [OpenedRecord(interactive=False).as_json()]
    records = [*opened, said, reply, *([TitleRecord(summary=title).as_json()] if title else [])]
    path.write_bytes(b"".join(map(encode_record, records)))
    os.utime(path, (written_at, written_at))


async def test_clear_opens_a_new_session_and_says_the_way_back(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", UserMessage.of("hello")), "/clear")

    assert isinstance(terminal.then, OpenSession)
    assert terminal.then.resume is None
    assert "panpan -r s1" in terminal.then.message
    assert terminal.text == ""


async def test_clear_leaves_a_session_alone_in_which_nothing_was_said(tmp_path: Path) -> None:
    assert (await type_in(terminal_in(tmp_path / "p"), "/clear")).then is None


async def test_resume_offers_the_other_sessions_the_newest_first(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", picks=1)
    keep_session(terminal, "older", "fix the \x1b[31mtest", written_at=1_000)
    keep_session(terminal, "newer", "write the docs", written_at=2_000)
    keep_session(terminal, "s1", "this one", written_at=3_000)

    await type_in(terminal, "/resume")

    assert [option.label for option in terminal.options] == ["write the docs", "fix the test"]
    assert "1 round" in terminal.options[0].detail
    assert terminal.then == OpenSession("older")


async def test_resume_shows_a_session_by_the_title_that_it_was_given(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    keep_session(terminal, "older", "fix the test", written_at=1_000, title="Greetings")

    await type_in(terminal, "/resume")

    assert [option.label for option in terminal.options] == ["Greetings"]


async def test_resume_lists_runs_only_without_other_sessions(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    keep_session(terminal, "run", "check the logs", written_at=2_000, is_interactive=False)
    await type_in(terminal, "/resume")
    alone = [option.label for option in terminal.options]
    keep_session(terminal, "mine", "fix the test", written_at=1_000)

    await type_in(terminal, "/resume")

    assert alone == ["check the logs"]
    assert [option.label for option in terminal.options] == ["fix the test"]


async def test_resume_goes_nowhere_when_nothing_is_picked(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", picks=None)
    keep_session(terminal, "older", "hello", written_at=1_000)

    assert (await type_in(terminal, "/resume")).then is None


async def test_resume_says_when_there_is_nothing_to_pick(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/resume")

    assert "no other session" in terminal.text
    assert terminal.options == ()


async def test_resume_takes_the_beginning_of_an_id(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    keep_session(terminal, "0199-aaaa", "hello", written_at=1_000)

    assert (await type_in(terminal, "/resume 0199-a")).then == OpenSession("0199-aaaa")


async def test_resume_of_an_unknown_id_is_an_error_and_stays_here(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")

    with pytest.raises(SessionError, match="nowhere"):
        await type_in(terminal, "/resume nowhere")

    assert terminal.then is None


async def test_resume_of_this_session_stays_here(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    keep_session(terminal, "s1", "hello", written_at=1_000)

    assert (await type_in(terminal, "/resume s1")).then is None


async def test_rename_gives_a_title_on_one_line(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/rename The \x1b[31mfailing\n test")

    assert terminal.session.title == "The failing test"
    assert "The failing test" in terminal.text


async def test_rename_without_a_title_says_what_it_is(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    await type_in(terminal, "/rename")
    assert "no title" in terminal.text

    terminal.session.title = "Before"
    await type_in(terminal, "/rename")

    assert "Before" in terminal.text


@pytest.mark.parametrize("line", ["/exit", "/quit", "/q"])
async def test_exit_leaves(tmp_path: Path, line: str) -> None:
    assert (await type_in(terminal_in(tmp_path / "p"), line)).then == Leave()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (59, "just now"), (60, "1 minute ago"), (7_199, "1 hour ago"), (200_000, "2 days ago")],
)
def test_age_is_told_in_the_largest_unit_that_fits(seconds: float, words: str) -> None:
    assert age(seconds) == words


async def test_resume_takes_a_title_and_what_was_said_first_and_later(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    keep_session(terminal, "0199-aaaa", "fix the parser\nit has a race condition", written_at=1_000)
    keep_session(terminal, "0199-bbbb", "write the docs", written_at=2_000, title="Documents")

    for wanted in ("THE PARSER", "0199-a", "race cond"):
        assert (await type_in(terminal, f"/resume {wanted}")).then == OpenSession("0199-aaaa")
    assert (await type_in(terminal, "/resume documents")).then == OpenSession("0199-bbbb")


async def test_resume_of_what_several_sessions_say_names_them(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    keep_session(terminal, "0199-aaaa", "one\na needle", written_at=1_000)
    keep_session(terminal, "0199-bbbb", "two\nthe needle", written_at=2_000)

    with pytest.raises(SessionError, match=r"(?s)several sessions fit 'needle'; name one by its id:.*0199-aaaa"):
        await type_in(terminal, "/resume needle")

    assert terminal.then is None


async def test_resume_finds_sessions_beyond_the_list_by_their_words(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    keep_session(terminal, "oldest", "fix the parser\nit has a \x1b[31mrace condition", written_at=1)
    for number in range(MOST_SESSIONS - 1):
        keep_session(terminal, f"s{number}-", "hello", written_at=10 + number)
    keep_session(terminal, "newest", "one more\nrace condition", written_at=10_000)

    await type_in(terminal, "/resume")
    assert terminal.search is not None
    found = await terminal.search("race condition")

    assert list(found) == [0, MOST_SESSIONS]
    assert found[MOST_SESSIONS].label == "fix the parser"
    assert found[MOST_SESSIONS].detail.endswith(": fix the parser it has a race condition")
    assert await terminal.search("race") == found
    assert await terminal.search("!!!") == await terminal.search("nowhere") == {}


async def test_resume_says_how_a_session_was_found_by_what_was_said(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    keep_session(terminal, "0199-aaaa", "one\na needle", written_at=1_000)

    await type_in(terminal, "/resume needle")

    assert "0199-aaaa is the session in which this was said: one a needle" in terminal.text
