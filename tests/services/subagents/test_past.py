"""What subagents said and did is told from their logs, each turn for the call that began it."""

from pathlib import Path

from panpan.services.subagents.past import MAX_MESSAGES, PastSubagents
from panpan.types.messages import UserMessage
from tests.fakes.agent_logs import keep_turn


def texts(subagents: PastSubagents, call: str) -> list[str]:
    return [message.text for message in subagents.turns().take(call)]


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

    assert (len(turns.take("t1")), len(turns.take("t1"))) == (1, 0)


def test_logs_that_are_not_there_or_damaged_are_passed_over(tmp_path: Path) -> None:
    assert PastSubagents(tmp_path / "none").records() == []
    (tmp_path / "agent-cccccccc.jsonl").write_bytes(b'{"subtype": "subagent"\n\xff\n[1]\n')
    keep_turn(tmp_path, "aaaaaaaa", "t1", UserMessage.of("one"))

    assert texts(PastSubagents(tmp_path), "t1") == ["one"]
