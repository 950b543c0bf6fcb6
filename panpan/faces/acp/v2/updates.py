"""Updates of version 1 as those of version 2."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionInfoUpdate,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)

from panpan.faces.acp.calls import Content, Hunk, fenced
from panpan.faces.acp.choices import ConfigOption
from panpan.faces.acp.connection import dump
from panpan.faces.acp.updates import Update
from panpan.faces.turn_text import diff_text
from panpan.types.content import FileDiff

_PLAN = "todos"
"""Id of the one plan of a session."""
_QUOTED = re.compile(r'[\x00-\x1f\x7f"\\]')
"""Characters that a path in a patch of git has only in quotation marks."""


def update_of(update: Update) -> dict[str, Any] | None:
    """Return an update of version 2; None if there is none like it, such as of a mode, which is an option there."""
    match update:
        case ToolCallStart() | ToolCallProgress():
            return {"sessionUpdate": "tool_call_update", **call_of(update)}
        case AgentPlanUpdate(entries=entries):
            plan = {"type": "items", "planId": _PLAN, "entries": [dump(one) for one in entries]}
            return {"sessionUpdate": "plan_update", "plan": plan}
        case AvailableCommandsUpdate():
            found = dump(update)
            for one in found["availableCommands"]:
                one["type"] = "command"
                if "input" in one:
                    one["input"]["type"] = "text"
            return dict(found)
        case ConfigOptionUpdate(config_options=options):
            return {"sessionUpdate": "config_option_update", "configOptions": options_of(options)}
        case SessionInfoUpdate(title=title):
            return {"sessionUpdate": "session_info_update", "title": title}
        case CurrentModeUpdate():
            return None
        case _:
            return dict(dump(update))


def options_of(options: Sequence[ConfigOption]) -> list[dict[str, Any]]:
    """Return the options of a session."""
    dumped = [dump(one) for one in options]
    return [{"configId": one.pop("id"), **one} for one in dumped]


def whole_messages(updates: Sequence[Update]) -> Sequence[Mapping[str, Any]]:
    """Return the past with one update for each message, which replaces what the client may have of it."""
    found: list[Mapping[str, Any]] = []
    contents: dict[tuple[str, str | None], list[Any]] = {}
    for one in updates:
        match one:
            case UserMessageChunk() | AgentMessageChunk() | AgentThoughtChunk():
                kind = one.session_update.removesuffix("_chunk")
                key = (kind, one.message_id)
                if key not in contents:
                    contents[key] = []
                    found.append({"sessionUpdate": kind, "messageId": one.message_id, "content": contents[key]})
                contents[key].append(dump(one.content))
            case _:
                if (told := update_of(one)) is not None:
                    found.append(told)
    return found


def call_of(call: ToolCallStart | ToolCallProgress) -> dict[str, Any]:
    """Return what is new of a call; a field that is left out stays as it was."""
    told = call.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"session_update", "content", "field_meta"}
    )
    return told if call.content is None else {**told, "content": list(_content(call.content))}  # type: ignore[arg-type]


def _content(content: Sequence[Content]) -> Iterator[dict[str, Any]]:
    before: FileDiff | None = None
    for one in content:
        if not isinstance(one, Hunk):
            yield dump(one)
        elif one.file is not before:  # the first hunk stands for the whole change
            before = one.file
            yield from _diff(one.file, one.path)


def _diff(file: FileDiff, path: str) -> Iterator[dict[str, Any]]:
    operation = "add" if file.is_new else "delete" if file.is_deleted else "modify"
    diff: dict[str, Any] = {"type": "diff", "changes": [{"operation": operation, "path": path, "fileType": "text"}]}
    if not file.is_cut:
        diff["patch"] = {"format": "git_patch", "text": _patch(file)}
    yield diff
    if file.is_cut:  # a patch has to be whole
        yield dump(fenced(file.diff))


def _patch(file: FileDiff) -> str:
    """Return a change as `git diff` would; it knows no modes, and writes those of a plain file."""
    old, new = (_in_patch(f"{side}/{file.path.lstrip('/')}") for side in "ab")
    head = [f"diff --git {old} {new}"]
    if file.is_new:
        head.append("new file mode 100644")
    elif file.is_deleted:
        head.append("deleted file mode 100644")
    if lines := diff_text(file.diff):
        end = "\t" if " " in file.path else ""  # as git marks where such a name ends
        head += [f"--- {'/dev/null' if file.is_new else old + end}"]
        head += [f"+++ {'/dev/null' if file.is_deleted else new + end}"]
    return "\n".join([*head, *lines, ""])


def _in_patch(path: str) -> str:
    if not _QUOTED.search(path):
        return path
    return (
        '"' + _QUOTED.sub(lambda found: f"\\{found[0]}" if found[0] in '"\\' else f"\\{ord(found[0]):03o}", path) + '"'
    )
