"""The logs of a session in a store of the program, and sessions that go on from there on another machine."""

import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.sdk_program import Program, running
from tests.model_server import call, calls, say, serving
from tests.model_server.script import ToolCall

MIRROR = "--session-mirror"
LOOK = {"description": "look", "prompt": "look around", "subagent_type": "explore"}
SESSION = "11111111-2222-4333-8444-555555555555"

Entry = Mapping[str, Any]


class Store:
    """Keeps the records of mirror lines by the last parts of their paths, as the store of a program does."""

    def __init__(self, config: Path) -> None:
        self.config = config
        self.entries: dict[str, list[Entry]] = defaultdict(list)

    def take(self, program: Program) -> None:
        """Take all mirror lines that a program has seen."""
        for line in program.seen:
            if line["type"] == "transcript_mirror":
                self.entries[str(Path(line["filePath"]).relative_to(self.config / "projects"))] += line["entries"]

    def write(self, config: Path) -> None:
        """Write what it has as the SDK does before it goes on with a session."""
        self.config = config
        for place, entries in self.entries.items():
            file = config / "projects" / place
            file.parent.mkdir(parents=True, exist_ok=True)
            # a store may give the names of an entry back in another order
            file.write_text("".join(json.dumps(entry, sort_keys=True) + "\n" for entry in entries))

    @property
    def main(self) -> list[Entry]:
        (place,) = (place for place in self.entries if place.count("/") == 1)
        return self.entries[place]

    def uuids(self) -> dict[str, list[str]]:
        return {place.partition("/")[2]: [one["uuid"] for one in entries] for place, entries in self.entries.items()}


@pytest.fixture
def store(panpan: Panpan) -> Store:
    return Store(panpan.home.parent / ".claude")


def logged(panpan: Panpan) -> dict[str, list[str]]:
    """Return the ids of the records in all logs, by their places."""

    def found() -> Iterator[tuple[str, list[str]]]:
        for path in panpan.home.glob("projects/*/sessions/**/*.jsonl"):
            place = path.relative_to(next(one for one in path.parents if one.name == "sessions"))
            yield str(place), [json.loads(line)["uuid"] for line in path.read_text().splitlines()]

    return dict(found())


def other_machine(panpan: Panpan, store: Store) -> None:
    """Go on with an empty home, and with the store as the SDK writes it."""
    panpan.home = panpan.home.parent / "other" / ".panpan"
    hand_over(panpan, store)


def hand_over(panpan: Panpan, store: Store) -> None:
    config = panpan.workspace.parent / f"claude-resume-{len(list(panpan.workspace.parent.iterdir()))}"
    store.write(config)
    panpan.env["CLAUDE_CONFIG_DIR"] = str(config)


def turn(panpan: Panpan, store: Store, text: str, *options: str) -> Mapping[str, Any]:
    with running(panpan, MIRROR, *options) as program:
        program.say(text)
        result = program.result()
        assert program.end().code == 0
        list(program)
    store.take(program)
    return result


def test_store_gets_every_record_once_and_in_order(panpan: Panpan, store: Store) -> None:
    with serving([call("Task", LOOK), call("LS", {}), say("found"), say("done")]) as server:
        panpan.use(server)
        turn(panpan, store, "go")

    (file,) = panpan.session_files()
    assert store.main == [json.loads(line) for line in file.read_text().splitlines()]
    assert len(store.entries) == 2
    assert store.uuids() == logged(panpan)


def test_records_of_a_turn_come_before_its_result(panpan: Panpan, store: Store) -> None:
    with serving([say("done")]) as server:
        panpan.use(server)
        with running(panpan, MIRROR) as program:
            program.say("go")
            program.result()
            store.take(program)
            program.end()

    assert any("done" in json.dumps(one) for one in store.main if one["type"] == "assistant")


def test_no_records_are_told_without_the_option(panpan: Panpan, store: Store) -> None:
    with serving([say("done")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.say("go")
            program.result()
            program.end()

    assert not [line for line in program.seen if line["type"] == "transcript_mirror"]


def test_session_goes_on_from_the_store_on_another_machine(panpan: Panpan, store: Store) -> None:
    script = [call("Task", LOOK), say("found"), say("first"), say("second"), say("third")]
    with serving(script) as server:
        panpan.use(server)
        first = turn(panpan, store, "go")
        other_machine(panpan, store)
        second = turn(panpan, store, "and on", "--resume", first["session_id"])
        other_machine(panpan, store)
        turn(panpan, store, "to the end", "--resume", first["session_id"])

    assert second["session_id"] == first["session_id"]
    assert store.uuids() == logged(panpan)
    sent = json.dumps(server.requests[-1].messages)
    assert [sent.count(json.dumps(text)) for text in ("go", "first", "and on", "second", "to the end")] == [1] * 5
    assert all(len(ids) == len(set(ids)) for ids in store.uuids().values())


def test_subagent_of_the_store_is_gone_on_with(panpan: Panpan, store: Store) -> None:
    with serving([call("Task", LOOK), say("found the answer"), say("first")]) as server:
        panpan.use(server)
        first = turn(panpan, store, "go")
    (place,) = (place for place in store.entries if "/agent-" in place)
    agent = Path(place).stem.removeprefix("agent-")
    other_machine(panpan, store)
    with serving([call("Task", {**LOOK, "resume": agent, "prompt": "go on"}), say("more"), say("end")]) as server:
        panpan.use(server)
        turn(panpan, store, "again", "--resume", first["session_id"])

    assert "found the answer" in json.dumps(server.requests[1].messages)
    assert store.uuids() == logged(panpan)


def test_store_that_is_behind_catches_up_with_the_log(panpan: Panpan, store: Store) -> None:
    with serving([say("first"), say("second"), say("third")]) as server:
        panpan.use(server)
        first = turn(panpan, store, "go")
        old = len(store.main)
        turn(panpan, store, "on", "--resume", first["session_id"])
        del store.main[old:]
        hand_over(panpan, store)
        turn(panpan, store, "to the end", "--resume", first["session_id"])

    assert "second" in json.dumps(server.requests[-1].messages)
    assert store.uuids() == logged(panpan)


def test_log_that_is_behind_catches_up_with_the_store(panpan: Panpan, store: Store) -> None:
    here = panpan.home
    with serving([say("first"), say("second"), say("third")]) as server:
        panpan.use(server)
        first = turn(panpan, store, "go")
        other_machine(panpan, store)
        turn(panpan, store, "on", "--resume", first["session_id"])
        panpan.home = here
        hand_over(panpan, store)
        turn(panpan, store, "to the end", "--resume", first["session_id"])

    assert "second" in json.dumps(server.requests[-1].messages)
    assert store.uuids() == logged(panpan)


def test_store_and_log_that_both_went_on_lose_nothing(panpan: Panpan, store: Store) -> None:
    here = panpan.home
    with serving([say("first"), say("elsewhere"), say("here"), say("last")]) as server:
        panpan.use(server)
        first = turn(panpan, store, "go")
        other_machine(panpan, store)
        turn(panpan, store, "on", "--resume", first["session_id"])
        panpan.home = here
        del panpan.env["CLAUDE_CONFIG_DIR"]
        assert panpan.run("-p", "on", "--resume", first["session_id"]).code == 0
        hand_over(panpan, store)
        turn(panpan, store, "to the end", "--resume", first["session_id"])

    sent = json.dumps(server.requests[-1].messages)
    assert "elsewhere" in sent
    assert '"here"' not in sent
    assert {name: set(ids) for name, ids in store.uuids().items()} == {
        name: set(ids) for name, ids in logged(panpan).items()
    }
    assert all(len(ids) == len(set(ids)) for ids in store.uuids().values())


def test_call_that_was_cut_short_is_not_made_again(panpan: Panpan, store: Store) -> None:
    panpan.prepared = None  # a fork would end a moment after the kill
    command = {"command": "echo x >> made; sleep 60", "description": "Count"}
    with serving([calls(ToolCall("Bash", command)), say("done")]) as server:
        panpan.use(server)
        with running(panpan, MIRROR, "--permission-mode", "bypassPermissions") as program:
            program.say("go")
            started = program.until(lambda line: "call_started" in json.dumps(line))
            assert started["type"] == "transcript_mirror"
            wait_until(lambda: (panpan.workspace / "made").exists())
            os.killpg(program.process.pid, signal.SIGKILL)
            list(program)
        store.take(program)
        other_machine(panpan, store)
        session = store.main[0]["sessionId"]
        turn(panpan, store, "what happened?", "--resume", session, "--unfinished", "unclear")

    assert (panpan.workspace / "made").read_text() == "x\n"
    assert server.refusals == []
    assert store.uuids() == logged(panpan)


def test_session_of_the_store_goes_on_after_an_earlier_message(panpan: Panpan, store: Store) -> None:
    with serving([say("first"), say("second"), say("third"), say("fourth")]) as server:
        panpan.use(server)
        first = turn(panpan, store, "go")
        (reply,) = [one["uuid"] for one in store.main if one["type"] == "assistant"]
        hand_over(panpan, store)
        turn(panpan, store, "on", "--resume", first["session_id"])
        other_machine(panpan, store)
        turn(panpan, store, "otherwise", "--resume", first["session_id"], "--resume-session-at", reply)
        other_machine(panpan, store)
        turn(panpan, store, "to the end", "--resume", first["session_id"])

    sent = json.dumps(server.requests[-1].messages)
    assert [text in sent for text in ("first", "second", "third")] == [True, False, True]
    assert store.uuids() == logged(panpan)


def test_copy_of_a_session_of_the_store_is_told_whole(panpan: Panpan, store: Store) -> None:
    with serving([call("Task", LOOK), say("found"), say("first"), say("second")]) as server:
        panpan.use(server)
        first = turn(panpan, store, "go")
        other_machine(panpan, store)
        copy = turn(panpan, store, "on", "--resume", first["session_id"], "--fork-session", "--session-id", SESSION)

    assert copy["session_id"] == SESSION
    assert store.uuids() == logged(panpan)


def test_session_of_another_program_is_refused(panpan: Panpan, store: Store) -> None:
    entry = {"type": "user", "uuid": SESSION, "parentUuid": None, "message": {"role": "user", "content": "hi"}}
    with serving([say("first")]) as server:
        panpan.use(server)
        turn(panpan, store, "go")
        key = next(iter(store.entries)).partition("/")[0]
        store.entries = defaultdict(list, {f"{key}/{SESSION}.jsonl": [entry]})
        other_machine(panpan, store)
        with running(panpan, MIRROR, "--resume", SESSION) as program:
            result = program.result()
            assert program.end().code != 0

    assert "was not written by panpan" in result["errors"][0]


def test_session_of_the_store_that_is_open_elsewhere_is_refused(panpan: Panpan, store: Store) -> None:
    with serving([say("first"), say("second")]) as server:
        panpan.use(server)
        first = turn(panpan, store, "go")
        with running(panpan, MIRROR, "--resume", first["session_id"]) as other:
            other.say("on")
            other.result()
            store.take(other)
            hand_over(panpan, store)
            with running(panpan, MIRROR, "--resume", first["session_id"]) as program:
                result = program.result()
                program.end()
            other.end()

    assert "is open in another panpan" in result["errors"][0]
