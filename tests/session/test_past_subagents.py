"""Words and work of subagents, read from their logs, each turn for the call that began it."""

from pathlib import Path

from panpan.session.log.agent_log import MAX_MESSAGES, PastSubagents
from panpan.types.messages import UserMessage
from tests.fakes.agent_logs import keep_turn


def texts(subagents: PastSubagents, call: str) -> list[str]:
    turn = subagents.turns().take(call)
    return [message.text for message in turn.messages()] if turn is not None else []


def test_each_call_has_the_turn_that_it_began_also_where_one_goes_on(tmp_path: Path) -> None:
    keep_turn(tmp_path, "aaaaaaaa", "t1", UserMessage.of("one"), UserMessage.of("two"))
    keep_turn(tmp_path, "bbbbbbbb", "t2", UserMessage.of("other"))
    keep_turn(tmp_path, "aaaaaaaa", "t3", UserMessage.of("more"))
    subagents = PastSubagents(tmp_path)

    assert [texts(subagents, call) for call in ("t1", "t2", "t3", "t4")] == [["one", "two"], ["other"], ["more"], []]
    assert {(record.id, record.tool_use_id) for record in subagents.records()} == {
        ("aaaaaaaa", "t3"),
        ("bbbbbbbb", "t2"),
    }


def test_of_a_long_turn_the_newest_messages_are_told(tmp_path: Path) -> None:
    keep_turn(tmp_path, "aaaaaaaa", "t1", *(UserMessage.of(str(number)) for number in range(MAX_MESSAGES + 5)))

    told = texts(PastSubagents(tmp_path), "t1")

    assert (len(told), told[0]) == (MAX_MESSAGES, "5")


def test_a_turn_is_told_once(tmp_path: Path) -> None:
    keep_turn(tmp_path, "aaaaaaaa", "t1", UserMessage.of("one"))
    turns = PastSubagents(tmp_path).turns()

    assert turns.take("t1") is not None
    assert turns.take("t1") is None


def test_calls_of_the_same_id_have_their_own_turns_whoever_made_them(tmp_path: Path) -> None:
    keep_turn(tmp_path, "bbbbbbbb", "call", UserMessage.of("first"))
    keep_turn(tmp_path, "cccccccc", "call", UserMessage.of("started by it"), parent="bbbbbbbb")
    keep_turn(tmp_path, "aaaaaaaa", "call", UserMessage.of("started by that"), parent="cccccccc")
    turns = PastSubagents(tmp_path).turns()

    told = [turns.take("call", of=caller) for caller in ("", "bbbbbbbb", "cccccccc", "aaaaaaaa")]

    texts = [[message.text for message in turn.messages()] if turn is not None else None for turn in told]
    assert texts == [["first"], ["started by it"], ["started by that"], None]


def test_one_that_goes_on_by_a_call_of_the_same_id_tells_its_last_turn_alone(tmp_path: Path) -> None:
    keep_turn(tmp_path, "aaaaaaaa", "call", UserMessage.of("taken back"))
    keep_turn(tmp_path, "aaaaaaaa", "call", UserMessage.of("said instead"))

    assert texts(PastSubagents(tmp_path), "call") == ["said instead"]


def test_logs_that_are_not_there_or_damaged_are_passed_over(tmp_path: Path) -> None:
    assert PastSubagents(tmp_path / "none").records() == []
    (tmp_path / "agent-cccccccc.jsonl").write_bytes(b'{"subtype": "subagent"\n\xff\n[1]\n')
    keep_turn(tmp_path, "aaaaaaaa", "t1", UserMessage.of("one"))

    assert texts(PastSubagents(tmp_path), "t1") == ["one"]
