from dataclasses import replace
from datetime import UTC, datetime

import pytest

from panpan.core.conversation import INTERRUPTED, INTERRUPTED_BEFORE, NEVER_ANSWERED
from panpan.session.export.transcript import Transcript, outcome_of, without_secrets
from panpan.system.text.redact import Redactor
from panpan.types.content import (
    Base64Source,
    DiffDisplay,
    FileDiff,
    ImageBlock,
    RedactedThinkingBlock,
    SummaryDisplay,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from tests.session.export import export_fixtures
from tests.session.export.export_fixtures import call, compaction, reply

SECRET = "correct-horse-battery"
PICTURE = Base64Source(media_type="image/png", data="QUJDREVGR0hJSktMTU5PUA==")


def redacted(*messages: Message) -> Transcript:
    transcript = Transcript(
        session_id="s1",
        title=f"about {SECRET}",
        model="m",
        cwd=f"/home/{SECRET}",
        panpan_version="1.2.3",
        exported_at=datetime(2026, 11, 22, tzinfo=UTC),
        messages=messages,
    )
    return without_secrets(transcript, Redactor([SECRET]))


def result(*blocks: TextBlock | ImageBlock, display: DiffDisplay | SummaryDisplay | None = None) -> ToolResultMessage:
    return ToolResultMessage(result=ToolResultBlock(tool_use_id="1", content=blocks), display=display)


def test_redacted_removes_a_secret_anywhere() -> None:
    diff = FileDiff(path=f"{SECRET}.env", diff=f"+KEY={SECRET}\n", added=1, removed=0)
    call = ToolUseBlock(
        id="1",
        name="Bash",
        input={"command": f"echo {SECRET}", SECRET: 1, "deep": [{"list": [SECRET, 2.5, None]}]},
        input_error=SECRET,
    )

    transcript = redacted(
        UserMessage.of(f"my password is {SECRET}"),
        SystemReminder(text=SECRET, cause=f"memory:/{SECRET}"),
        AssistantMessage(content=(ThinkingBlock(thinking=SECRET), TextBlock(text=SECRET), call), model=SECRET),
        result(TextBlock(text=SECRET), display=DiffDisplay(files=(diff,))),
        result(display=SummaryDisplay(text=SECRET)),
    )

    assert SECRET not in repr(transcript)


def test_redacted_removes_a_secret_from_compactions() -> None:
    prompt = UserMessage.of("go")
    whole = replace(redacted(prompt), compactions=[compaction(prompt, SECRET)])

    transcript = without_secrets(whole, Redactor([SECRET]))

    assert SECRET not in repr(transcript)
    assert (transcript.compactions[0].trigger, transcript.compactions[0].up_to) == ("auto", prompt.uuid)


def test_parts_put_a_compaction_behind_the_results_before_it() -> None:
    answer = reply(call())
    messages = (UserMessage.of("go"), answer, export_fixtures.result("done"), reply("on"))
    first, second = compaction(answer), compaction(answer, trigger="undo")

    whole = replace(redacted(*messages), compactions=[first, second])

    assert list(whole.parts) == [*messages[:3], first, second, messages[3]]
    assert list(replace(whole, messages=messages[:3]).parts) == [*messages[:3], first, second]
    assert list(replace(whole, messages=messages[:1]).parts) == [*messages[:1]]


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Bash was not run. The user refused it. Go on without it.", "not run"),
        ("Bash was not run: the rule Bash(rm *) denies it", "not run"),
        (INTERRUPTED_BEFORE, "not run"),
        (INTERRUPTED, "interrupted"),
        (f"{NEVER_ANSWERED} The user says: I do not know.", "not answered"),
        ("no such file", "failed"),
    ],
)
def test_outcome_tells_the_ends_of_calls_apart(text: str, mark: str) -> None:
    assert outcome_of(export_fixtures.result(text, is_error=True)).mark == mark
    assert outcome_of(export_fixtures.result(text)).mark == "done"


def test_redacted_removes_a_secret_from_picture_like_arguments() -> None:
    disguised = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": SECRET}}

    transcript = redacted(AssistantMessage(content=(ToolUseBlock(id="1", name="Write", input=disguised),)))

    assert SECRET not in repr(transcript)


def test_redacted_removes_key_like_text_nobody_named() -> None:
    key = "sk-ant-" + "api03-" + "a1B2" * 8

    assert key not in repr(redacted(UserMessage.of(f"use {key}")))


def test_redacted_keeps_pictures_and_text_without_secrets() -> None:
    said = (
        UserMessage(content=(TextBlock(text="look"), ImageBlock(source=PICTURE))),
        AssistantMessage(content=(ToolUseBlock(id="1", name="Bash", input={"command": "ls", "n": 3}),)),
        result(TextBlock(text="a.py"), display=SummaryDisplay(text="1 file")),
    )

    assert tuple(redacted(*said).messages) == said


def test_redacted_omits_signatures_and_opaque_thinking() -> None:
    reply = AssistantMessage(
        content=(ThinkingBlock(thinking="hm", signature="c2VhbA=="), RedactedThinkingBlock(data="b3BhcXVl"))
    )

    text = repr(redacted(reply))

    assert "hm" in text
    assert "c2VhbA" not in text
    assert "b3BhcXVl" not in text
