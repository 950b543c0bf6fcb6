"""Transcripts for the tests of every format."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from panpan.session.export.transcript import Transcript
from panpan.types.content import (
    AssistantContent,
    DiffDisplay,
    FileDiff,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    CompactionReport,
    CompactionTrigger,
    Message,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
)


def transcript(*messages: Message, title: str = "") -> Transcript:
    return Transcript(
        session_id="0199-s1",
        title=title,
        model="scripted",
        cwd="/home/ada/project",
        panpan_version="1.2.3",
        exported_at=datetime(2026, 11, 22, 5, 30, tzinfo=UTC),
        messages=messages,
    )


def reply(*blocks: AssistantContent | str) -> AssistantMessage:
    return AssistantMessage(
        content=tuple(TextBlock(text=block) if isinstance(block, str) else block for block in blocks), model="scripted"
    )


def call(name: str = "Bash", **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(id="1", name=name, input=arguments)


def result(text: str, *, diff: str | None = None, is_error: bool = False) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id="1", content=(TextBlock(text=text),), is_error=is_error)
    files = () if diff is None else (FileDiff(path="a.py", diff=diff, added=1, removed=1),)
    return ToolResultMessage(result=block, display=DiffDisplay(files=files) if files else None)


def compaction(after: Message, text: str = "what was said", *, trigger: CompactionTrigger = "auto") -> Compaction:
    """A compaction of all that was said up to a message, in whose place `text` stands."""
    return Compaction(
        trigger=trigger,
        up_to=after.uuid,
        tokens_before=120_000,
        tokens_after=20_000,
        added=(SystemReminder(text=text, cause=text),),
        notes={after.uuid: text},
        report=CompactionReport(kept=2, summarised=7, computed=text, problem=text),
        reply=reply(text),
        hint=text,
    )


def everywhere(text: str) -> Transcript:
    """A conversation that says `text` in every place that a user, a model, a tool or a file can write to."""
    first = UserMessage.of(text)
    whole = transcript(
        first,
        SystemReminder(text=text, cause=text),
        reply(ThinkingBlock(thinking=text), text, call(text, command=text)),
        result(text, diff=text),
        reply(text),
        title=text,
    )
    return replace(whole, compactions=[compaction(first, text)])


PIECES = (
    *("<script>alert(1)</script>", "</pre>", "</details>", "<details>", "<summary>", "<!--", "-->", "<![CDATA["),
    *("```", "`````", "~~~", "`", "\n", "\n\n", "> ", "    ", "- ", "1. ", "# ", "## User", "---", "===", "\t"),
    *("![x](http://evil/a.png)", "[x](javascript:alert(1))", "[x]: http://evil", "[x]", "<http://evil>", "<br>"),
    *("<img src=x onerror=alert(1)>", '" onload="', "&lt;script&gt;", "\\", "*a*", "|", "| a |\n|---|\n", "\x1b[2J"),
    *("<p", "<style>", "</style>", "</body>", "</html>", "\u202e", "\x9b31m", "\r", "text", "\x00", "\ud800"),
)
hostile_texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text()
