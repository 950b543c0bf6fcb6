import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.cassettes.recorded_reply import RecordedReply, changed_json, changed_reply, split_like
from panpan.capabilities.cassettes.recorded_session import relocation
from panpan.system.text.redact import Redactor
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.events import BlockFinished, TextDelta, ToolInputDelta
from panpan.types.messages import AssistantMessage

SECRET = "swordfish-0123456789"
redact = Redactor([SECRET]).redact


@given(st.lists(st.text(max_size=5), min_size=1), st.text())
def test_recut_pieces_are_as_many_and_make_up_the_text(pieces: list[str], text: str) -> None:
    cut = split_like(pieces, text)

    assert (len(cut), "".join(cut)) == (len(pieces), text)


@given(st.lists(st.text(max_size=5)))
def test_recut_leaves_unchanged_pieces(pieces: list[str]) -> None:
    assert split_like(pieces, "".join(pieces)) == pieces


@given(st.lists(st.integers(1, len(SECRET) - 1), unique=True, min_size=1, max_size=4), st.text(max_size=9))
def test_secret_across_pieces_is_in_none_of_them(cuts: list[int], before: str) -> None:
    text = f"{before} {SECRET} end"
    places = [0, *sorted(len(before) + 1 + cut for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    use = ToolUseBlock(id="1", name="Bash", input={"command": text})
    events: list[Any] = [TextDelta(0, piece) for piece in pieces]
    events += [BlockFinished(0, TextBlock(text=text))]
    events += [ToolInputDelta(1, piece) for piece in pieces] + [BlockFinished(1, use)]
    events += [AssistantMessage(content=(TextBlock(text=text), use))]

    changed = changed_reply(RecordedReply(tuple((0.0, event) for event in events)), redact)

    assert SECRET not in repr(changed)
    said = "".join(event.text for _, event in changed.events if isinstance(event, TextDelta))
    assert said == redact(text)
    assert changed.message is not None
    assert changed.message.text == said
    assert changed.message.uuid == events[-1].uuid


def test_bytes_are_not_taken_for_text() -> None:
    opaque = [
        {"type": "base64", "data": SECRET},
        {"type": "redacted_thinking", "data": SECRET},
        {"type": "thinking", "signature": SECRET},
    ]

    assert changed_json({"source": opaque, "text": [SECRET], "n": 1}, redact) == {
        "source": opaque,
        "text": ["[redacted]"],
        "n": 1,
    }


def test_arguments_are_text_under_any_name() -> None:
    use = ToolUseBlock(id="1", name="Send", input={"data": SECRET, "signature": [SECRET]})

    changed = changed_reply(RecordedReply(((0.0, BlockFinished(0, use)),)), redact)

    assert SECRET not in repr(changed)
    assert SECRET not in str(changed_json({"type": "tool_use", "input": {"data": SECRET}}, redact))


def test_secret_is_found_in_any_spelling_of_arguments() -> None:
    spelled = SECRET.replace("sword", "\\u0073word").replace("fish", "\\u0066ish")
    written = f'{{"command": "echo {spelled}", "n": 1.50}}'
    events: list[Any] = [ToolInputDelta(0, written[:20]), ToolInputDelta(0, written[20:])]

    changed = changed_reply(RecordedReply(tuple((0.0, event) for event in events)), redact)

    pieces = [event.json for _, event in changed.events if isinstance(event, ToolInputDelta)]
    assert len(pieces) == 2
    assert json.loads("".join(pieces)) == {"command": "echo [redacted]", "n": 1.5}


def test_relocation_moves_only_the_folder_itself() -> None:
    move = relocation("/home/me/work", "/tmp/x")

    assert move("cd /home/me/work && ls /home/me/work/a.py") == "cd /tmp/x && ls /tmp/x/a.py"
    assert move("/home/me/works x/home/me/work") == "/home/me/works x/home/me/work"
    assert relocation("/", "/tmp/x")("/ and /etc") == "/ and /etc"
    assert relocation("/work", "/")("/work/a") == "/work/a"


@given(st.text(alphabet="ab/ .", max_size=30))
def test_relocation_round_trips(text: str) -> None:
    there, back = relocation("/work/here", "/tmp/there"), relocation("/tmp/there", "/work/here")
    said = f"{text} /work/here/{text}"

    assert back(there(said)) == said
