"""A search finds what was said, whatever became of the index, and never anything that is not in a log."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.errors import ConfigError
from panpan.session.log.record_kinds import TitleRecord
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog
from panpan.session.stored.search import MOST_CHARS, excerpt_of, search_sessions
from panpan.system.files.file_lock import hold_lock
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, UserMessage


class Sessions:
    """Sessions in a folder, and the index of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "sessions"
        self.index = folder / "home" / "search.sqlite3"

    def say(self, session_id: str, *messages: Any) -> Path:
        log = SessionLog(self.folder / f"{session_id}.jsonl", session_id=session_id, cwd=Path("/w"))
        for message in messages:
            log.append(record_of(UserMessage.of(message)) if isinstance(message, str) else message)
        log.close()
        return log.path

    def found(self, text: str, *, most: int = 20) -> list[str]:
        logs = sorted(self.folder.glob("*.jsonl"))
        return [one.path.stem for one in search_sessions(self.index, logs, text, most=most)]


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path)


def test_search_finds_all_speech_but_no_reminders(sessions: Sessions) -> None:
    use = ToolUseBlock(id="1", name="Bash", input={"command": "pytest --lf", "timeout": 3})
    result = ToolResultBlock(tool_use_id="1", content=(TextBlock(text="AssertionError: seven"),))
    sessions.say(
        "a",
        record_of(UserMessage.of("why does it fail?")),
        record_of(SystemReminder(text="reminding", cause="x")),
        record_of(AssistantMessage(content=(TextBlock(text="Let me look."), use), model="m", stop_reason="tool_use")),
        record_of(ToolResultMessage(result=result)),
        TitleRecord(summary="the failing build").as_json(),
    )

    for text in ("fail", "look", "pytest", "bash", "assertionerror", "failing build", "seven assertionerror"):
        assert sessions.found(text) == ["a"], text
    for text in ("reminding", "toolu", "uuid"):
        assert sessions.found(text) == [], text


def test_search_matches_beginnings_of_words_in_one_message(sessions: Sessions) -> None:
    sessions.say("a", "the parser is slow", "and the printer, too")
    sessions.say("b", "parsers print")

    assert sessions.found("pars prin") == ["b"]
    assert sessions.found("pars") == ["a", "b"]
    assert sessions.found("arser") == []
    assert sessions.found("slow parser") == ["a"]


def test_search_matches_quoted_words_in_sequence(sessions: Sessions) -> None:
    sessions.say("a", "a slow parser")
    sessions.say("b", "parser, slow")

    assert sessions.found('"slow pars"') == ["a"]
    assert sessions.found('"slow parser" a') == ["a"]


def test_search_ignores_colours(sessions: Sessions) -> None:
    sessions.say("a", "\x1b[1;31mFAILED\x1b[0m tests \x1b]8;;http://x\x07link\x1b]8;;\x07ed")

    assert [sessions.found(text) for text in ("failed", "linked", "31mfailed")] == [["a"], ["a"], []]


def test_search_matches_short_words_whole(sessions: Sessions) -> None:
    sessions.say("a", "go on")
    sessions.say("b", "good")

    assert sessions.found("go") == ["a"]


def test_search_ignores_case_and_accents(sessions: Sessions) -> None:
    sessions.say("a", "Über den Café-Test")
    sessions.say("b", "私は犬が好きです")
    sessions.say("c", "snake_case_name and path/to/file.py \ud83d")

    assert sessions.found("uber cafe") == ["a"]
    assert sessions.found("犬が") == ["b"]
    assert sessions.found("case_name to/file.py") == ["c"]


def test_search_finds_and_counts_added_messages(sessions: Sessions) -> None:
    path = sessions.say("a", "first needle")
    assert sessions.found("needle") == ["a"]

    sessions.say("a", "second needle", "hay")
    (found,) = search_sessions(sessions.index, [path], "needle", most=5)

    assert found.records == 2
    assert found.record["message"]["content"][0]["text"] == "first needle"
    assert sessions.found("hay") == ["a"]


def test_search_finds_a_line_once_it_is_complete(sessions: Sessions) -> None:
    path = sessions.say("a", "first")
    line = json.dumps({"type": "user", "uuid": "u", "message": {"content": "second"}}).encode() + b"\n"
    with path.open("ab") as file:
        file.write(line[:30])
    assert sessions.found("second") == []

    with path.open("ab") as file:
        file.write(line[30:])

    assert sessions.found("second") == ["a"]


def test_search_rereads_a_rewritten_log(sessions: Sessions) -> None:
    path = sessions.say("a", "old words here", "tail")
    assert sessions.found("old") == ["a"]

    path.unlink()
    sessions.say("a", "new words that are a good deal longer than those that were here before", "tail")

    assert sessions.found("old") == []
    assert sessions.found("longer") == ["a"]


def test_search_is_limited_to_the_given_logs_and_number(sessions: Sessions) -> None:
    paths = [sessions.say(name, "needle") for name in "abc"]

    assert sessions.found("needle", most=2) == ["a", "b"]
    assert [one.path for one in search_sessions(sessions.index, paths[1:2], "needle", most=5)] == paths[1:2]
    paths[0].unlink()
    assert sessions.found("needle") == ["b", "c"]


@pytest.mark.parametrize("damage", ["garbage", "cut", "empty", "other version", "no tables", "wrong places"])
def test_search_rebuilds_a_damaged_index(sessions: Sessions, damage: str) -> None:
    sessions.say("a", "needle", *("hay " * 50 for _ in range(200)))
    sessions.found("needle")
    match damage:
        case "garbage":
            sessions.index.write_bytes(b"garbage" * 5000)
        case "cut":
            os.truncate(sessions.index, sessions.index.stat().st_size // 2)
        case "empty":
            sessions.index.write_bytes(b"")
        case _:
            database = sqlite3.connect(sessions.index)
            if damage == "other version":
                database.execute("PRAGMA user_version = 99")
            elif damage == "no tables":
                database.execute("DROP TABLE log")
            else:
                database.execute("INSERT INTO said (rowid, text) VALUES ((1 << 40) | 3, 'needle')")
                database.execute("INSERT INTO said (rowid, text) VALUES ((1 << 40) | 5, 'phantom')")
            database.commit()
            database.close()

    assert sessions.found("needle") == ["a"]
    assert sessions.found("phantom") == []


def test_search_works_where_no_index_can_be_kept(sessions: Sessions) -> None:
    sessions.say("a", "needle")
    sessions.index.mkdir(parents=True)  # a folder where the file should be

    logs = list(sessions.folder.glob("*.jsonl"))
    assert [one.path.stem for one in search_sessions(sessions.index, logs, "needle", most=5)] == ["a"]


def test_search_index_is_private_and_holds_no_text(sessions: Sessions) -> None:
    sessions.say("a", "the quick brown fox jumps")
    sessions.found("fox")

    assert sessions.index.stat().st_mode & 0o777 == 0o600
    assert b"quick brown" not in sessions.index.read_bytes()


@pytest.mark.parametrize("place", ["file", "folder"])
def test_search_works_where_no_home_can_be_made(tmp_path: Path, place: str) -> None:
    sessions = Sessions(tmp_path)
    sessions.say("a", "needle")
    sessions.index = tmp_path / "no home" / "search.sqlite3"
    if place == "file":
        sessions.index.parent.write_text("")
    else:
        sessions.index.with_name("search.sqlite3.lock").mkdir(parents=True)

    assert sessions.found("needle") == ["a"]


def test_search_works_without_a_locked_index(sessions: Sessions) -> None:
    sessions.say("a", "needle")
    said: list[str] = []

    with hold_lock(sessions.index.with_name("search.sqlite3.lock"), wait_s=0):
        logs = list(sessions.folder.glob("*.jsonl"))
        found = search_sessions(sessions.index, logs, "needle", most=5, say=said.append, patience_s=0.01)

    assert [one.path for one in found] == logs
    assert not sessions.index.exists()


def test_search_ends_when_abandoned(sessions: Sessions) -> None:
    for name in "abc":
        sessions.say(name, "needle")
    looks = iter((True, False, False, False, False))
    logs = sorted(sessions.folder.glob("*.jsonl"))

    assert search_sessions(sessions.index, logs, "needle", most=5, keep_going=lambda: next(looks)) == []
    assert sessions.found("needle") == ["a", "b", "c"]  # the rest is taken in by the next one


@pytest.mark.parametrize("text", ["caf\udcc3", "\ud800needle", "needle \ud83d"])
def test_search_survives_input_that_is_no_text(sessions: Sessions, text: str) -> None:
    sessions.say("a", "needle café")

    assert sessions.found(text) in ([], ["a"])


def test_search_refuses_a_thousand_words_and_keeps_the_index(sessions: Sessions) -> None:
    sessions.say("a", "needle")
    sessions.found("needle")
    index = sessions.index.stat().st_ino

    with pytest.raises(ConfigError, match="100 words at most"):
        sessions.found("needle " * 1000)
    assert sessions.found("x" * 10_000) == []
    assert sessions.found(" ".join(map(str, range(100)))) == []
    assert sessions.index.stat().st_ino == index


@pytest.mark.parametrize("name", ["\udcff", "\udcc3\udca9"])
def test_search_covers_a_path_that_is_no_text(tmp_path: Path, name: str) -> None:
    sessions = Sessions(tmp_path / name)
    sessions.say("a", "needle")

    assert sessions.found("needle") == ["a"]


def test_search_covers_a_log_with_an_impossible_time(sessions: Sessions) -> None:
    os.utime(sessions.say("a", "needle"), (2**34, 2**34))

    assert sessions.found("needle") == ["a"]


@pytest.mark.parametrize("text", ["", "  ", "!!!", '"', "-", '""'])
def test_search_refuses_input_without_letters(sessions: Sessions, text: str) -> None:
    with pytest.raises(ConfigError, match="no letter or digit"):
        sessions.found(text)


def test_search_works_in_several_processes_at_once(sessions: Sessions) -> None:
    for number in range(60):
        sessions.say(f"{number:02}", "needle", "hay")
    code = (
        "import sys; from pathlib import Path\n"
        "from panpan.session.stored.search import search_sessions\n"
        "logs = sorted(Path(sys.argv[2]).glob('*.jsonl'))\n"
        "print(len(search_sessions(Path(sys.argv[1]), logs, 'needle', most=99)))"
    )
    argv = [sys.executable, "-c", code, str(sessions.index), str(sessions.folder)]

    started = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(3)]

    assert [process.communicate()[0] for process in started] == ["60\n"] * 3


_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "message", "content", "text", "input", "name"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=40)
@given(
    st.lists(_JSON | st.fixed_dictionaries({"type": st.just("user"), "message": _JSON}), max_size=4),
    st.text(min_size=1),
)
def test_search_answers_any_input_over_any_log(tmp_path: Path, records: list[Any], text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records))

    try:
        found = search_sessions(tmp_path / "search.sqlite3", [path], text, most=5)
    except ConfigError:
        assert not any(character.isalnum() for character in text)
        return

    assert len(found) <= 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=40)
@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=40))
def test_search_finds_any_message_by_its_own_word(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"type": "user", "uuid": "u", "message": {"content": text}}) + "\n")
    word = next((word for word in text.split() if word.isalnum() and word.isascii()), None)
    if word is None:
        return

    assert len(search_sessions(tmp_path / "search.sqlite3", [path], word, most=5)) == 1


def test_excerpt_surrounds_the_first_word() -> None:
    record = {"type": "user", "message": {"content": "long " * 100 + "the Needle\nin hay " + "more " * 100}}

    shown = excerpt_of(record, "needle hay")

    assert shown.startswith("…")
    assert shown.endswith("…")
    assert "the Needle in hay" in shown
    assert len(shown) == MOST_CHARS + 2
    assert excerpt_of(record, "nowhere").startswith("long long")
