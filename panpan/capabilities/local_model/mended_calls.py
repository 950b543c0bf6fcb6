"""Mends faults in the calls of the small model before anything above sees them."""

import json
import os.path
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence

from panpan.types.content import ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, StreamEvent, ToolInputDelta
from panpan.types.messages import AssistantMessage, Message, UserMessage


def with_blank_kept(use: ToolUseBlock) -> ToolUseBlock:
    """Return the call with its edit mended; most are returned as they are."""
    old, new = use.input.get("old_string"), use.input.get("new_string")
    if use.name != "Edit" or not isinstance(old, str) or not isinstance(new, str):
        return use
    has_lost_blank = old[:1] == " " and old[1:2].strip() and new[:1].strip() and new != old[1:]
    return use.model_copy(update={"input": {**use.input, "new_string": f" {new}"}}) if has_lost_blank else use


_PLAIN_SED = re.compile(
    r"sed -i (?P<quote>['\"])s(?P<mark>[/|,#])(?P<old>[\w \-:,/]+)(?P=mark)(?P<new>[\w \-:,./]*)(?P=mark)g?(?P=quote)"
    r" (?P<path>[\w./][\w./\-]*)"
)
"""One replacement in one file, of texts in which nothing is special to sed or the shell."""


def with_edit_for_sed(use: ToolUseBlock) -> ToolUseBlock:
    """Return the call, or the Edit that it stands for: every place, since who names a word and no place means all."""
    command = use.input.get("command")
    found = _PLAIN_SED.fullmatch(command.strip()) if use.name == "Bash" and isinstance(command, str) else None
    if found is None or any(found["mark"] in found[part] for part in ("old", "new")):
        return use
    arguments = {"file_path": found["path"], "old_string": found["old"], "new_string": found["new"]}
    return use.model_copy(update={"name": "Edit", "input": {**arguments, "replace_all": True}})


_NAMES = {"Edit": ("old_string", "new_string"), "Rename": ("old_name", "new_name")}


def with_direction_as_said(use: ToolUseBlock, words: str) -> ToolUseBlock:
    """Return the call with old and new exchanged where `words` of the user say so; most are returned as they are."""
    if use.name not in _NAMES:
        return use
    old_key, new_key = _NAMES[use.name]
    old, new = use.input.get(old_key), use.input.get(new_key)
    if not isinstance(old, str) or not isinstance(new, str) or not _puts_first_for_second(words, old, new):
        return use
    return use.model_copy(update={"input": {**use.input, old_key: new, new_key: old}})


def _puts_first_for_second(words: str, first: str, second: str) -> bool:
    """Whether the words are "FIRST instead of SECOND" or another of the forms that name the new thing first."""
    if not first.strip() or not second.strip():
        return False
    a, b = (rf"[\"'`]?(?<!\w){re.escape(text.strip())}(?!\w)[\"'`]?" for text in (first, second))
    instead = r"(?:\(\))?,? (?:instead of|rather than|in place of|and not|not) (?:\w+ )?"
    return re.search(rf"{a}{instead}{b}|\bsubstitute {a} for {b}", words, re.IGNORECASE) is not None


_KNOWING = ("Read", "Write", "Edit")
"""Tools after whose call a file is known, or the refusal says why not."""


def known_files(messages: Iterable[Message]) -> set[str]:
    """Return the files that the model has called for, as paths without detours."""
    replies = (message for message in messages if isinstance(message, AssistantMessage))
    return {path for reply in replies for use in reply.tool_uses if (path := file_of(use))}


def file_of(use: ToolUseBlock) -> str:
    """Return the file that a call makes known; "" for none."""
    path = use.input.get("file_path")
    return os.path.normpath(path) if use.name in _KNOWING and isinstance(path, str) and path else ""


def with_reading_first(use: ToolUseBlock, known: set[str]) -> ToolUseBlock:
    """Return the call, or the Read of its file where it edits one that is not `known`."""
    path = file_of(use)
    if use.name != "Edit" or use.input_error or not path or path in known:
        return use
    return use.model_copy(update={"name": "Read", "input": {"file_path": use.input["file_path"]}})


async def with_calls_mended(
    events: AsyncIterator[StreamEvent], messages: Sequence[Message]
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a reply to `messages` with its calls mended; text passes as it comes."""
    known, mended = known_files(messages), dict[str, ToolUseBlock]()
    words = next((message.text for message in reversed(messages) if isinstance(message, UserMessage)), "")

    async for event in events:
        match event:
            case BlockStarted(kind="tool_use") | ToolInputDelta():
                pass  # told when the call is whole
            case BlockFinished(index=index, block=ToolUseBlock() as use):
                call = mended[use.id] = _mended(use, known, words)
                known.add(file_of(call))
                yield BlockStarted(index, "tool_use", call.id, call.name)
                yield ToolInputDelta(index, json.dumps(call.input))
                yield BlockFinished(index, call)
            case AssistantMessage():
                content = tuple(mended.get(b.id, b) if isinstance(b, ToolUseBlock) else b for b in event.content)
                yield event.model_copy(update={"content": content})
            case _:
                yield event


def _mended(use: ToolUseBlock, known: set[str], words: str) -> ToolUseBlock:
    meant = with_direction_as_said(with_blank_kept(with_edit_for_sed(use)), words)
    return with_reading_first(meant, known)
