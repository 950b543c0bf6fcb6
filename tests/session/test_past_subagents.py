"""Words and work of subagents, read from their logs, each turn for the call that began it."""

from pathlib import Path

from panpan.session.log.agent_log import MAX_MESSAGES, PastSubagents
from panpan.types.messages import UserMessage
from tests.fakes.agent_logs import keep_turn


def texts(subagents: PastSubagents, call: str) -> list[str]:
    turn = subagents.turns().take(call)
    return [message.text for message in turn.messages()] if turn is not None else []


def test_past_turns_belong_to_the_calls_that_began_them(tmp_path: Path) -> None:
    keep_turn(tmp_path, "aaaaaaaa", "t1", UserMessage.of("one"), UserMessage.of("two"))
    keep_turn(tmp_path, "bbbbbbbb", "t2", UserMessage.of("other"))
    keep_turn(tmp_path, "aaaaaaaa", "t3", UserMessage.of("more"))
    subagents = PastSubagents(tmp_path)

    assert [texts(subagents, call) for call in ("t1", "t2", "t3", "t4")] == [["one", "two"], ["other"], ["more"], []]
    assert {(record.id, record.tool_use_id) for record in subagents.records()} == {
        ("aaaaaaaa", "t3"),
        ("bbbbbbbb", "t2"),
    }


def test_past_turn_shows_its_newest_messages(tmp_path: Path) -> None:
    keep_turn(tmp_path, "aaaaaaaa", "t1", *(UserMessage.of(str(number)) for number in range(MAX_MESSAGES + 5)))

    told = texts(PastSubagents(tmp_path), "t1")

    assert (len(told), told[0]) == (MAX_MESSAGES, "5")


def test_past_turn_is_taken_once(tmp_path: Path) -> None:
    keep_turn(tmp_path, "aaaaaaaa", "t1", UserMessage.of("one"))
    turns = PastSubagents(tmp_path).turns()

    assert turns.take("t1") is not None
    assert turns.take("t1") is None


def test_past_turns_of_equal_call_ids_are_kept_apart_by_caller(tmp_path: Path) -> None:
    keep_turn(tmp_path, "bbbbbbbb", "call", UserMessage.of("first"))
    keep_turn(tmp_path, "cccccccc", "call", UserMessage.of("started by it"), parent="bbbbbbbb")
    keep_turn(tmp_path, "aaaaaaaa", "call", UserMessage.of("started by that"), parent="cccccccc")
    turns = PastSubagents(tmp_path).turns()

    told = [turns.take("call", of=caller) for caller in ("", "bbbbbbbb", "cccccccc", "aaaaaaaa")]

    texts = [[message.text for message in turn.messages()] if turn is not None else None for turn in told]
    assert texts == [["first"], ["started by it"], ["started by that"], None]


def test_past_turn_of_a_repeated_call_id_is_the_last(tmp_path: Path) -> None:
    keep_turn(tmp_path, "aaaaaaaa", "call", UserMessage.of("taken back"))
    keep_turn(tmp_path, "aaaaaaaa", "call", UserMessage.of("said instead"))

    assert texts(PastSubagents(tmp_path), "call") == ["said instead"]


def test_missing_or_damaged_subagent_logs_are_skipped(tmp_path: Path) -> None:
    assert PastSubagents(tmp_path / "none").records() == []
    (tmp_path / "agent-cccccccc.jsonl").write_bytes(b'{"subtype": "subagent"\n\xff\n[1]\n')
    keep_turn(tmp_path, "aaaaaaaa", "t1", UserMessage.of("one"))

    assert texts(PastSubagents(tmp_path), "t1") == ["one"]
