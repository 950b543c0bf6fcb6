"""Loading a skill: its text for the model, filled in, with the output of its commands or the report of its subagent.

The rule: a command in a skill, and its subagent, run as calls of the agent that loads it. So gate, hooks, sandbox and
log hold for them, and what is refused stays out. What is filled in is never read again, so that no argument becomes a
command or a placeholder.
"""

import re
import shlex
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence

from panpan.capabilities.skills.skill_file import Skill
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.permissions.rules.rules import COMMAND_TOOL, SKILL_TOOL, TASK_TOOL
from panpan.session.agent import Agent
from panpan.session.turn import run_call
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage, new_id
from panpan.types.pattern import compile_late

LOADED = "skill:loaded:"
"""Beginning of the causes of reminders that hold a skill."""
MAX_CHARS = 200_000
"""Most characters of a skill, filled in, without the output of its commands."""

_PLACEHOLDER = compile_late(
    r"\$\{(?P<known>[A-Z][A-Z0-9_]*)\}|\$ARGUMENTS\[(?P<number>\d{1,4})\]|\$(?P<all>ARGUMENTS)\b"
    r"|\$(?P<short>\d{1,4})(?!\d)|\$(?P<name>[A-Za-z_]\w*)"
)
_INLINE = compile_late(r"(?<!\S)!`(?P<line>[^`\n]*)`")
_OPENS = compile_late(r"[ \t]*```![ \t]*")
_CLOSES = compile_late(r"[ \t]*```[ \t]*")
_BEGIN = compile_late(r'<skill name="([^"\n]+)">')


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command in a body, whose output takes its place."""

    line: str


def parts_of(body: str) -> Iterator[str | ShellCommand]:
    """Yield the texts and commands of a body, in their order: `` !`line` ``, and lines from ```` ```! ```` on."""
    lines = body.split("\n")
    closing = [number for number, line in enumerate(lines) if _CLOSES.fullmatch(line)]
    at = 0
    while at < len(lines):
        end = "\n" if at + 1 < len(lines) else ""
        if _OPENS.fullmatch(lines[at]) and (next_ := bisect(closing, at)) < len(closing):
            yield ShellCommand("\n".join(lines[at + 1 : closing[next_]]).strip())
            at = closing[next_] + 1
            yield "\n" if at < len(lines) else ""
            continue
        begin = 0
        for found in _INLINE.finditer(lines[at]):
            yield lines[at][begin : found.start()]
            yield ShellCommand(found["line"].strip())
            begin = found.end()
        yield lines[at][begin:] + end
        at += 1


class Filling:
    """The words that take the place of placeholders.

    Args:
        arguments: Words behind the name of the skill, as they were written.
        names: Names of the arguments, in order.
        known: Values of the session by their names, such as `CLAUDE_SESSION_ID`.
    """

    def __init__(self, arguments: str = "", names: Sequence[str] = (), known: Mapping[str, str] | None = None) -> None:
        self._arguments = arguments
        self._places = {name: number for number, name in enumerate(names)}
        self._known = known or {}
        self._words = _words(arguments)
        self._room = MAX_CHARS

    def parts(self, body: str) -> Sequence[str | ShellCommand]:
        """Return a body as texts and commands, filled in; arguments that it has no place for stand at its end.

        A placeholder that there is nothing for stays as it is written.

        Raises:
            ToolError: It becomes too long.
        """
        parts = [
            ShellCommand(self._filled(part.line)) if isinstance(part, ShellCommand) else self._filled(part)
            for part in parts_of(body)
        ]
        if self._arguments and not any(map(self._is_argument, _PLACEHOLDER.finditer(body))):
            parts.append(f"\n\nARGUMENTS: {self._arguments}")
        return [part for part in parts if part not in ("", ShellCommand(""))]

    def _filled(self, text: str) -> str:
        filled: list[str] = []
        begin = 0
        for found in _PLACEHOLDER.finditer(text):
            filled += (text[begin : found.start()], self._value(found))
            begin = found.end()
            self._room -= len(filled[-1])
            if self._room < 0:
                raise ToolError(f"with its arguments the skill has more than {MAX_CHARS:,} characters; give it fewer")
        return "".join([*filled, text[begin:]])

    def _is_argument(self, found: re.Match[str]) -> bool:
        return bool(found["all"] or found["number"] or found["short"] or found["name"] in self._places)

    def _value(self, found: re.Match[str]) -> str:
        if found["all"]:
            return self._arguments
        if found["known"]:
            return self._known.get(found["known"], found[0])
        number = found["number"] or found["short"]
        at = self._places.get(found["name"]) if number is None else int(number)
        return found[0] if at is None or at >= len(self._words) else self._words[at]


def _words(arguments: str) -> Sequence[str]:
    """Return arguments as a shell parts them; where it could not, by blanks."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


async def load_skill(
    skill: Skill, arguments: str, agent: Agent, known: Mapping[str, str], context: ToolContext | None = None
) -> str:
    """Return the text of a skill for the model.

    Args:
        skill: The skill.
        arguments: What stands behind its name.
        agent: The agent that loads it.
        known: Values of the session by their names.
        context: Context of the call that loads it; None if the user does.

    Raises:
        ToolError: The text becomes too long.
    """
    texts: list[str] = []
    for part in Filling(arguments, skill.arguments, known).parts(skill.body):
        if isinstance(part, ShellCommand):
            part = await _result_of(COMMAND_TOOL, {"command": part.line}, agent, context)
        texts.append(part)
    body = "".join(texts).strip()
    if skill.fork is not None:
        task: dict[str, object] = {
            "description": f"skill {skill.name}",
            "prompt": body,
            "subagent_type": skill.fork.agent,
        }
        task |= {"model": skill.fork.model} if skill.fork.model else {}
        task |= {"run_in_background": True} if skill.fork.in_background else {}
        report = await _result_of(TASK_TOOL, task, agent, context)
        told = "follows the skill" if skill.fork.in_background else "has followed the skill"
        return f"A subagent {told} {skill.name}. Its report:\n\n{report}"
    return _wrapped(skill, body, known)


def text_of(skill: Skill, arguments: str) -> str:
    """Return the text for the model of a skill that needs no call and nothing of the session."""
    return _wrapped(skill, "".join(map(str, Filling(arguments).parts(skill.body))).strip(), {})


def _wrapped(skill: Skill, body: str, known: Mapping[str, str]) -> str:
    folder = known.get("CLAUDE_SKILL_DIR", "")
    where = f"Files that it names are in {folder}\n\n" if folder and not skill.is_command else ""
    return f'<skill name="{skill.name}">\n{where}{body}\n</skill>'


def has_calls(skill: Skill) -> bool:
    """Return whether loading a skill runs commands or a subagent."""
    return skill.fork is not None or any(isinstance(part, ShellCommand) for part in parts_of(skill.body))


async def _result_of(tool: str, arguments: Mapping[str, object], agent: Agent, context: ToolContext | None) -> str:
    use = ToolUseBlock(id=f"skill_{new_id()}", name=tool, input=dict(arguments))
    result = await run_call(agent, use, context)
    if not result.result.is_error:
        return result.text
    agent.warn(clean_line(result.text.partition("\n")[0]))  # the user sees no result of it
    return f"[This did not succeed: {result.text}]"


def loaded_skills(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield the skills that messages hold, the newest last: their names, and their texts."""
    calls: dict[str, str] = {}
    for message in messages:
        match message:
            case AssistantMessage():
                calls.update((use.id, use.name) for use in message.tool_uses)
            case ToolResultMessage() if not message.result.is_error and calls.get(message.tool_use_id) == SKILL_TOOL:
                yield from _named(message.text)
            case UserMessage():
                for block in message.content[1:]:
                    yield from _named(getattr(block, "text", ""))
            case SystemReminder(cause=cause, text=text) if cause.startswith(LOADED):
                yield from _named(text)
            case _:
                pass


def _named(text: str) -> Iterator[tuple[str, str]]:
    if found := _BEGIN.match(text):
        yield found[1], text
