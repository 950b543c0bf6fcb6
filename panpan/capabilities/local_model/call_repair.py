"""Mends faults of the small model: in its calls, and in how it goes on after a result."""

import json
import os.path
import re
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from os.path import normpath
from typing import Any

from panpan.models.reply import ReplyBuilder
from panpan.types.content import ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, StreamEvent, ToolInputDelta
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, Usage, UserMessage
from panpan.types.pattern import compile_late

# The model deletes a blank together with a word and does not put it back. Its tokens begin with the blank before a
# word, so it replaces " blue" by "green", which would leave "isgreen". Measured in three of twelve replacements of a
# word. No useful edit looks like that.


def keep_blank(use: ToolUseBlock) -> ToolUseBlock:
    """Return the call with its edit mended; most are returned as they are."""
    old, new = use.input.get("old_string"), use.input.get("new_string")
    if use.name != "Edit" or not isinstance(old, str) or not isinstance(new, str):
        return use
    has_lost_blank = old[:1] == " " and old[1:2].strip() and new[:1].strip() and new != old[1:]
    return use.model_copy(update={"input": {**use.input, "new_string": f" {new}"}}) if has_lost_blank else use


# The model replaces a word with sed, which prints nothing if nothing was replaced, and takes the silence for success.
# The equivalent Edit fails if the text is not found, shows its result, and shows the user a diff.

_PLAIN_SED = compile_late(
    r"sed -i (?P<quote>['\"])s(?P<mark>[/|,#])(?P<old>[\w \-:,/]+)(?P=mark)(?P<new>[\w \-:,./]*)(?P=mark)g?(?P=quote)"
    r" (?P<path>[\w./][\w./\-]*)"
)
"""One replacement in one file, of texts in which nothing is special to sed or the shell."""


def replace_sed_with_edit(use: ToolUseBlock) -> ToolUseBlock:
    """Return the call, or the equivalent Edit of every place, since a word without a place means all."""
    command = use.input.get("command")
    found = _PLAIN_SED.fullmatch(command.strip()) if use.name == "Bash" and isinstance(command, str) else None
    if found is None or any(found["mark"] in found[part] for part in ("old", "new")):
        return use
    arguments = {"file_path": found["path"], "old_string": found["old"], "new_string": found["new"]}
    return use.model_copy(update={"name": "Edit", "input": {**arguments, "replace_all": True}})


# The model confuses the old and the new word if the user names the new one first. For "Use tea instead of coffee" it
# replaces tea by coffee, finds no tea, and says that it is done. If the user's words tell which of the two is new, swap
# them before the call.

_NAMES = {"Edit": ("old_string", "new_string"), "Rename": ("old_name", "new_name")}


def fix_direction(use: ToolUseBlock, words: str) -> ToolUseBlock:
    """Return the call with old and new exchanged where `words` of the user say so; most are returned as they are."""
    if use.name not in _NAMES:
        return use
    old_key, new_key = _NAMES[use.name]
    old, new = use.input.get(old_key), use.input.get(new_key)
    if not isinstance(old, str) or not isinstance(new, str) or not _puts_first_for_second(words, old, new):
        return use
    return use.model_copy(update={"input": {**use.input, old_key: new, new_key: old}})


def _puts_first_for_second(words: str, first: str, second: str) -> bool:
    """True if the words are "FIRST instead of SECOND" or another of the forms that name the new thing first."""
    if not first.strip() or not second.strip():
        return False
    a, b = (rf"[\"'`]?(?<!\w){re.escape(text.strip())}(?!\w)[\"'`]?" for text in (first, second))
    instead = r"(?:\(\))?,? (?:instead of|rather than|in place of|and not|not) (?:\w+ )?"
    return re.search(rf"{a}{instead}{b}|\bsubstitute {a} for {b}", words, re.IGNORECASE) is not None


# The model edits a file that it has not read, is refused, and gives up: a refusal that says "read it first" ends its
# work in words, although every example reads first. So replace the call by the missing Read. With the file in view the
# model then makes the edit, as in the examples.

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


def read_before_edit(use: ToolUseBlock, known: set[str]) -> ToolUseBlock:
    """Return the call, or the Read of its file where it edits one that is not `known`."""
    path = file_of(use)
    if use.name != "Edit" or use.input_error or not path or path in known:
        return use
    return use.model_copy(update={"name": "Read", "input": {"file_path": use.input["file_path"]}})


# Hold back a call until it is complete, so that its pieces and the final message show the same call.


async def repair_calls(
    events: AsyncIterator[StreamEvent], messages: Sequence[Message]
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a reply to `messages` with its calls mended; text passes as it comes."""
    known, mended = known_files(messages), dict[str, ToolUseBlock]()
    words = next((message.text for message in reversed(messages) if isinstance(message, UserMessage)), "")

    async for event in events:
        match event:
            case BlockStarted(kind="tool_use") | ToolInputDelta():
                pass  # shown when the call is complete
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
    meant = fix_direction(keep_blank(replace_sed_with_edit(use)), words)
    return read_before_edit(meant, known)


# The model renames in one of several files that the user means, and thinks that it is done. Rename reports where the
# old name remains. If the user named that file, or said "in all files", make the remaining calls for the model. If it
# made up files, drop them, or use existing files with nearly the same name.

_ELSEWHERE = "in files that were not named:\n"
_EXCEPT = compile_late(r"\b(?:not|don't|except|without|but|only|keep|leave|unchanged)\b", re.IGNORECASE)
_ALL_FILES = compile_late(
    r"\b(?:(?:all|each|every)(?: of)?(?: the| my)? (?:\w+ )?files?|everywhere|throughout|whole (?:project|code))\b",
    re.IGNORECASE,
)
_MISSING = compile_late(r"(\S+) does not exist(?:; there is (\S+))?;")


def continue_rename(use: ToolUseBlock, result: str, words: str) -> dict[str, Any]:
    """Return the arguments for Rename in the files that are left of those that `words` mean; nothing for none."""
    lines = result.partition(_ELSEWHERE)[2].splitlines() if use.name == "Rename" else []
    paths = dict.fromkeys(line.partition(":")[0] for line in lines)
    meant = [path for path in paths if _ALL_FILES.search(words) or _is_named(path, words)]
    return {**use.input, "file_paths": meant} if meant and not _EXCEPT.search(words) else {}


def limit_rename(use: ToolUseBlock, refusal: str, words: str) -> dict[str, Any]:
    """Return the arguments for Rename without files that are not there and that nobody named; nothing for none left.

    Where there is one that is called nearly so, it takes the place of the other.
    """
    missing, told = dict(_MISSING.findall(refusal)), use.input.get("file_paths")
    if use.name != "Rename" or not isinstance(told, list) or any(_is_named(path, words) for path in missing):
        return {}
    there = [path for path in dict.fromkeys(missing.get(path, path) for path in told) if path]
    return {**use.input, "file_paths": there} if there and there != told else {}


def _is_named(path: str, words: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-]|\.\w)", words) is not None


# The model stops after a call, whatever the result says. It takes a folder for a file, is refused, and invents the
# folder's content; it takes the new name for the old one, or one place for all, or writes a line to add as if it were
# the whole file, is refused, and says that it is done; or it does half of the work. If the next call is obvious, make
# it for the model, without asking it. A call that changes something still needs the user's permission.

_AMBIGUOUS = "old_string is ambiguous"
_UNREAD = "has not been read yet"
_ADDS = compile_late(
    r"\b(?:add|append|attach|extend|lacks?|missing|(?:more|another|further) (?:line|entry|item|row)"
    r"|at the (?:very )?(?:end|bottom))\b",
    re.IGNORECASE,
)
_NOT_BEHIND = compile_late(
    r"\b(?:top|beginning|start|first|before|above|after|between|below|under|replace|overwrite|instead|only)\b",
    re.IGNORECASE,
)
_ALL = compile_late(r"\b(?:all|each|every|everywhere|throughout)\b", re.IGNORECASE)


def follow_up_reply(messages: Sequence[Message], model: str) -> list[StreamEvent]:
    """Return a reply with the call that follows from the result that came last; nothing where none does."""
    if not messages or not isinstance(result := messages[-1], ToolResultMessage):
        return []
    uses = {use.id: use for reply in messages if isinstance(reply, AssistantMessage) for use in reply.tool_uses}
    use = uses.get(result.tool_use_id)
    if use is None:
        return []
    words = next((message.text for message in reversed(messages) if isinstance(message, UserMessage)), "")
    earlier = [other for other in uses.values() if other is not use]
    name, arguments = _next_call(use, result, words, earlier)
    if not arguments:
        return []
    reply = ReplyBuilder(model=model, taken_ids=frozenset(uses))
    reply.open_block("tool_use", tool_use_id="after_result", tool_name=name).parts.append(json.dumps(arguments))
    reply.finish("tool_use")
    return reply.take()


def _next_call(
    use: ToolUseBlock, result: ToolResultMessage, words: str, earlier: Sequence[ToolUseBlock]
) -> tuple[str, dict[str, Any]]:
    """Return the tool and the arguments of the call that follows on `use`; no arguments where none does."""
    if not result.is_error:
        return use.name, continue_rename(use, result.text, words)
    if command := _listing(use, result.text) or _adding(use, result.text, words):
        return "Bash", command
    exchanged = _exchanged(use, result.text, words, earlier)
    return use.name, exchanged or _everywhere(use, result.text, words) or limit_rename(use, result.text, words)


def _listing(use: ToolUseBlock, refusal: str) -> dict[str, Any]:
    """Return the arguments for Bash that list a folder which was taken for a file."""
    told = use.input.get("file_paths") if use.name == "Rename" else [use.input.get("file_path")]
    paths = [path for path in told if isinstance(path, str)] if isinstance(told, list) else []
    path = next((path for path in paths if path and f"{normpath(path)} is a folder" in refusal), "")
    return {"command": f"ls {shlex.quote(f'./{path}' if path[0] == '-' else path)}"} if path else {}


def _adding(use: ToolUseBlock, refusal: str, words: str) -> dict[str, Any]:
    """Return the arguments for Bash that add to the end of a file what the user wanted added, and was written over it.

    Read first, as the refusal advises, the file would lose a line to the new one: so the small model edits then.
    """
    path, content = use.input.get("file_path"), use.input.get("content")
    if use.name != "Write" or _UNREAD not in refusal or not isinstance(path, str) or not isinstance(content, str):
        return {}
    text = content.strip("\n")
    if not text.strip() or text not in words or not _ADDS.search(words) or _NOT_BEHIND.search(words):
        return {}
    return {"command": f"printf '%s\\n' {shlex.quote(text)} >> {shlex.quote(path)}"}


def _everywhere(use: ToolUseBlock, refusal: str, words: str) -> dict[str, Any]:
    """Return the arguments for Edit that change every place, where the user said so and not one place was meant."""
    if use.name != "Edit" or _AMBIGUOUS not in refusal or not _ALL.search(words):
        return {}
    return {**use.input, "replace_all": True}


def _exchanged(use: ToolUseBlock, refusal: str, words: str, earlier: Sequence[ToolUseBlock]) -> dict[str, Any]:
    """Return the arguments for Rename with the two names exchanged, where that is what the user can only mean.

    It is not where the user says "old to new", or where the same names were renamed before: then it is done already.
    """
    old, new = use.input.get("old_name"), use.input.get("new_name")
    if use.name != "Rename" or f" has {new} and no {old}, so no file was changed" not in refusal:
        return {}
    if re.search(rf"\b{old}\b\W*(?:to|into|by|with|[-=]+>)\W*\b{new}\b", words):
        return {}
    if any({old, new} == {other.input.get("old_name"), other.input.get("new_name")} for other in earlier):
        return {}
    return {**use.input, "old_name": new, "new_name": old}


# The model reads a file, says that it has changed it, and has changed nothing. A reminder does not help: it reads the
# file again, or edits something else. But it finishes a call well that was begun for it. So continue its reply with
# that call, which needs the user's permission like any other.

_TOOL = "Edit"
_AS_WRITTEN = '```json\n{"name": "' + _TOOL + '", "arguments": '
"""Beginning of a call as the model writes it (`tool_calls.jinja`)."""

_LOOKS = compile_late(
    r"\s*(?:what|which|who|whose|where|when|why|how|is|are|was|were|does|do|did|has|have|should|must|tell|show|explain"
    r"|describe|read|list|find|look|check|count)\b",
    re.IGNORECASE,
)
"""First words of questions and orders that ask for no change, whatever else they say."""
_ASKS = compile_late(
    r"\b(?:change|replace|correct|fix|edit|update|swap|substitute|make|use|put|set|turn|write|add|append|insert|remove"
    r"|delete|should|must|needs?|has to|becomes?)\b",
    re.IGNORECASE,
)
_CLAIMS = compile_late(
    r"\b(?:now (?:says|reads|has|contains|holds|ends|uses|is|mentions|lists)|changed|replaced|corrected|fixed|edited"
    r"|updated|swapped|substituted|added|appended|inserted|removed|deleted)\b",
    re.IGNORECASE,
)


async def add_claimed_call(
    events: AsyncIterator[StreamEvent],
    messages: Sequence[Message],
    ask: Callable[[str], AsyncGenerator[StreamEvent, None]],
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a reply, and behind them those of the call that it claims to have made.

    `ask` asks the model for another reply, which it has begun with a text already.
    """
    async for event in events:
        arguments = _claimed(messages, event) if isinstance(event, AssistantMessage) else ""
        if not arguments or not isinstance(event, AssistantMessage):
            yield event
            continue
        async with aclosing(ask(_AS_WRITTEN + arguments)) as more:
            call, output_tokens = await _finished(more, arguments)
        if call is None:
            yield event
            continue
        index = len(event.content)
        yield BlockStarted(index, "tool_use", call.id, call.name)
        yield ToolInputDelta(index, json.dumps(call.input))
        yield BlockFinished(index, call)
        usage = event.usage + Usage(output_tokens=output_tokens)  # the server still had the input cached
        content = (*event.content, call)
        yield event.model_copy(update={"content": content, "stop_reason": "tool_use", "usage": usage})


def _claimed(messages: Sequence[Message], reply: AssistantMessage) -> str:
    """Return the beginning of the arguments of the call that `reply` claims to have made; "" for none.

    That is an edit: the user asked for a change, the reply says that it is made, and since the user's message the model
    has only read files.
    """
    start = next((n for n in range(len(messages) - 1, -1, -1) if isinstance(messages[n], UserMessage)), None)
    if start is None or reply.tool_uses or reply.stop_reason != "end_turn":
        return ""
    uses = [use for message in messages[start:] if isinstance(message, AssistantMessage) for use in message.tool_uses]
    if not uses or any(use.name != "Read" for use in uses):
        return ""
    words = messages[start].text
    if _LOOKS.match(words) or not _ASKS.search(words) or not _CLAIMS.search(reply.text):
        return ""
    return f'{{"file_path": {json.dumps(file_of(uses[-1]))}, "old_string": "'


async def _finished(events: AsyncIterator[StreamEvent], begun: str) -> tuple[ToolUseBlock | None, int]:
    """Return the call that was begun with these arguments, None where it was not finished, and the tokens it took.

    llama.cpp streams of a call what came behind its beginning; another version of it may stream all.
    """
    call: ToolUseBlock | None = None
    pieces: list[str] = []
    output_tokens = 0
    async for event in events:
        match event:
            case ToolInputDelta(json=piece):
                pieces.append(piece)
            case BlockFinished(block=ToolUseBlock() as block):
                call = block
            case AssistantMessage():
                output_tokens = event.usage.output_tokens
            case _:
                pass
    told = "".join(pieces)
    arguments = _object(told) or _object(begun + told)
    if call is None or call.name != _TOOL or arguments is None:
        return None, output_tokens
    return call.model_copy(update={"input": arguments, "input_error": None}), output_tokens


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
