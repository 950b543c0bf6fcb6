"""Tool calls as an editor shows them: title, kind, places, and content with diffs.

The rule: a tool's kind follows from the effects of the call, so that none is known by its name here.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, assert_never

from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    ImageContentBlock,
    TextContentBlock,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolKind,
)
from pydantic import Field

from panpan.core.effects import Effects
from panpan.core.tool_call import prepare_call
from panpan.errors import PanpanError
from panpan.faces.permission_rows import argument_rows
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import diff_text, extent_text, title_of
from panpan.hub.permission_answers import ALWAYS_ASKS, exact_line, why_it_matters
from panpan.session.agent import Agent
from panpan.system.text.terminal_text import clean_line, without_controls
from panpan.types.content import (
    ChecklistDisplay,
    DiffDisplay,
    FileDiff,
    ImageBlock,
    PlanDisplay,
    RejectedDisplay,
    SummaryDisplay,
    TableDisplay,
    TextDisplay,
    ToolUseBlock,
    checklist_counts,
)
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import PermissionQuestion

Content: TypeAlias = ContentToolCallContent | FileEditToolCallContent


class Hunk(FileEditToolCallContent):
    """A hunk of a change."""

    file: FileDiff = Field(exclude=True)
    """The whole change."""


MAX_TITLE_CHARS = 1_000
MAX_TEXT_CHARS = 100_000
"""Longest text of a result for the editor; the session has all of it."""
_MAX_LOCATIONS = 20
_CELLS = 160
_PLAIN = Theme("plain", has_sequences=False)
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")
_TICKS = re.compile(r"`{3,}")


async def call_of(use: ToolUseBlock, agent: Agent) -> ToolCallStart:
    """Return a call of the model that is about to be judged."""
    title, kind, locations = await _facts(use, agent)
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=use.id,
        title=title,
        kind=kind,
        status="pending",
        locations=locations,
        raw_input=use.input,
    )


async def _facts(use: ToolUseBlock, agent: Agent) -> tuple[str, ToolKind, list[ToolCallLocation]]:
    prepared = prepare_call(use, agent.model.tools)
    if prepared.tool is None or prepared.args is None:
        return call_title(use.name, title_of(use)), "other", []
    tool, args, name = prepared.tool, prepared.args, prepared.use.name
    try:
        title = call_title(name, tool.title(args))
        effects = await tool.effects(args, agent.context)
    except PanpanError:  # the call fails, and its result says why
        return call_title(name, title_of(use)), "other", []
    if tool.asks_user:
        return title, "other", []
    paths = [path for path in (*effects.writes, *effects.deletes, *effects.reads, *effects.searches) if path]
    return title, _kind(effects), list(_locations(paths, agent))


def call_title(name: str, title: str) -> str:
    """Return the title of a call on one line, with invisible characters spelled out."""
    line = f"{name} {exact_line(title.strip())}".rstrip()
    return line if len(line) <= MAX_TITLE_CHARS else f"{line[: MAX_TITLE_CHARS - 1]}…"


def _kind(effects: Effects) -> ToolKind:
    kinds: Sequence[tuple[object, ToolKind]] = (
        (effects.commands, "execute"),
        (effects.deletes, "delete"),
        (effects.writes, "edit"),
        (effects.uses_web, "fetch"),
        (effects.searches, "search"),
        (effects.reads, "read"),
        (effects.agents, "think"),
    )
    return next((kind for is_so, kind in kinds if is_so), "other")


def _locations(paths: Iterable[str], agent: Agent) -> Iterator[ToolCallLocation]:
    for path in list(dict.fromkeys(paths))[:_MAX_LOCATIONS]:
        try:
            yield ToolCallLocation(path=agent.context.paths.absolute(path))
        except PanpanError:
            continue


def question_content(question: PermissionQuestion, folder: Path) -> list[Content]:
    """Return everything that the answer to a question depends on, beside the title of its call."""
    words = question_words(question)
    return [*_preview(question.preview, folder), *([fenced(words)] if words else [])]


def question_words(question: PermissionQuestion) -> str:
    """Return what the answer to a question depends on beside its title and diffs."""
    preview = question.preview
    is_whole = preview is not None and not preview.is_cut
    rows = [
        exact_line(question.head),
        exact_line(f"asked by {question.agent}") if question.agent else "",
        *([] if is_whole else argument_rows(question.input, _CELLS, _PLAIN, main=question.wording.main_argument)),
        exact_line(question.wording.effect),
        exact_line(why_it_matters(question)),
        exact_line(question.offer.bounds),
        ALWAYS_ASKS if question.is_protected else "",
    ]
    said = list(filter(None, rows))
    return "" if is_whole and len(said) == 1 else "\n".join(said)  # the title asks the same then


def _preview(preview: DiffDisplay | None, folder: Path) -> Iterator[Content]:
    for file in preview.files if preview is not None else ():
        yield from diffs(file, folder)


def result_of(result: ToolResultMessage, folder: Path) -> ToolCallProgress:
    """Return the end of a call."""
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=result.tool_use_id,
        status="failed" if result.is_error else "completed",
        content=list(_result_content(result, folder)),
    )


def _result_content(result: ToolResultMessage, folder: Path) -> Iterator[Content]:
    yield from _displayed(result, folder)
    for block in result.result.content:
        if isinstance(block, ImageBlock):
            image = ImageContentBlock(type="image", data=block.source.data, mime_type=block.source.media_type)
            yield ContentToolCallContent(type="content", content=image)


def _displayed(result: ToolResultMessage, folder: Path) -> Iterator[Content]:
    match result.display:
        case DiffDisplay(files=files, notes=notes):
            yield from (diff for file in files for diff in diffs(file, folder))
            yield from [fenced("\n".join(notes))] if notes else []
        case RejectedDisplay(text=words, files=files):
            yield from (diff for file in files for diff in diffs(file, folder))
            yield fenced(words)
        case PlanDisplay(text=words, summary=summary):
            yield from (text(words), text(summary))
        case ChecklistDisplay(todos=todos):
            yield text(checklist_counts(todos))
        case SummaryDisplay(text=words) if result.is_error:
            yield fenced(f"{words}\n{result.text_for_people}".strip())
        case SummaryDisplay() | TextDisplay() | TableDisplay() | None:
            yield from [fenced(result.text_for_people)] if result.text_for_people else []
        case _:
            assert_never(result.display)


def text(words: str) -> ContentToolCallContent:
    """Return Markdown as content of a call."""
    return ContentToolCallContent(type="content", content=TextContentBlock(type="text", text=shortened(words)))


def fenced(words: str) -> ContentToolCallContent:
    """Return words as content of a call, exactly as they are, for editors show content as Markdown."""
    exact = without_controls(shortened(words)).rstrip("\n")
    longest = max((len(ticks) for ticks in _TICKS.findall(exact)), default=2)
    fence = "`" * (longest + 1)
    return ContentToolCallContent(
        type="content", content=TextContentBlock(type="text", text=f"{fence}\n{exact}\n{fence}")
    )


def shortened(words: str) -> str:
    """Return a text without its middle if it is too long for an editor."""
    if len(words) <= MAX_TEXT_CHARS:
        return words
    half = MAX_TEXT_CHARS // 2
    return f"{words[:half]}\n… {len(words) - 2 * half:,} characters left out …\n{words[-half:]}"


def diffs(file: FileDiff, folder: Path) -> Iterator[Content]:
    """Yield a diff for each hunk of a change, with the lines around it; a note if that is not all of the change."""
    path = str(folder / file.path)
    for old, new in _hunks(diff_text(file.diff)):
        before = None if file.is_new else old
        yield Hunk(type="diff", file=file, path=path, old_text=before, new_text=new)
    if not file.diff and (file.is_new or file.is_deleted):
        yield Hunk(type="diff", file=file, path=path, old_text=None if file.is_new else "", new_text="")
    notes = [extent_text(file), "file deleted" if file.is_deleted else "", "not all is shown" if file.is_cut else ""]
    if said := "; ".join(filter(None, notes)):
        yield fenced(f"{clean_line(file.path)}: {said}")


def _hunks(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines of each hunk before and after."""
    old: list[str] = []
    new: list[str] = []
    for line in lines:
        if _HUNK.match(line):
            if old or new:
                yield "".join(old), "".join(new)
            old, new = [], []
            continue
        sign, words = line[:1], f"{line[1:]}\n"
        if sign == "\\":  # the line before has no line end; a diff does not say in which of the two files
            continue
        if sign in (" ", "-", ""):
            old.append(words)
        if sign in (" ", "+", ""):
            new.append(words)
    if old or new:
        yield "".join(old), "".join(new)


def progress(tool_use_id: str, words: str, **changed: Any) -> ToolCallProgress:
    """Return what a running call has printed so far."""
    return ToolCallProgress(
        session_update="tool_call_update", tool_call_id=tool_use_id, content=[fenced(words)], **changed
    )
