"""Loading a skill: its text for the model, filled in, with the output of its commands or the report of its subagent.

The rule: a command in a skill, and its subagent, run as calls of the agent that loads it. So gate, hooks, sandbox and
log hold for them, and what is refused stays out. What is filled in is never read again, so that no argument becomes a
command or a placeholder.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from panpan.capabilities.skills.skill_file import Skill
from panpan.core.tool import ToolContext
from panpan.permissions.rules.rules import COMMAND_TOOL, SKILL_TOOL, TASK_TOOL
from panpan.session.agent import Agent
from panpan.session.turn import run_call
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import (
    AssistantMessage,
    Message,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
    new_id,
)
from panpan.types.pattern import compile_late

_PLACEHOLDER = compile_late(
    r"\$\{(?P<known>[A-Z][A-Z0-9_]*)\}|\$ARGUMENTS\[(?P<number>\d+)\]|\$(?P<all>ARGUMENTS)\b|\$(?P<short>\d+)"
    r"|\$(?P<name>[A-Za-z_]\w*)"
)
_COMMAND = compile_late(r"(?ms)^[ \t]*```![ \t]*\n(?P<lines>.*?)^[ \t]*```[ \t]*$|(?<!\S)!`(?P<line>[^`\n]+)`")


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command in a body, whose output takes its place."""

    line: str


@dataclass(frozen=True, slots=True)
class Filling:
    """The words that take the place of placeholders."""

    arguments: str = ""
    """Words behind the name of the skill, as they were written."""
    names: Sequence[str] = ()
    """Names of the arguments, in order."""
    known: Mapping[str, str] | None = None
    """Values of the session by their names, such as `CLAUDE_SESSION_ID`."""

    def parts(self, body: str) -> Sequence[str | ShellCommand]:
        """Return a body as texts and commands, filled in; arguments that it has no place for stand at its end.

        A placeholder that there is nothing for stays as it is written.
        """
        parts = list(self._parts(body))
        if self.arguments and not any(map(self._is_argument, _PLACEHOLDER.finditer(body))):
            parts.append(f"\n\nARGUMENTS: {self.arguments}")
        return parts

    def _parts(self, body: str) -> Iterator[str | ShellCommand]:
        begin = 0
        for found in _COMMAND.finditer(body):
            yield self._filled(body[begin : found.start()])
            line = found["line"] or found["lines"] or ""
            if line.strip():
                yield ShellCommand(self._filled(line.strip()))
            begin = found.end()
        yield self._filled(body[begin:])

    def _filled(self, text: str) -> str:
        return _PLACEHOLDER.sub(self._value, text)

    def _is_argument(self, found: re.Match[str]) -> bool:
        return bool(found["all"] or found["number"] or found["short"] or found["name"] in self.names)

    def _value(self, found: re.Match[str]) -> str:
        if found["all"]:
            return self.arguments
        if found["known"]:
            return (self.known or {}).get(found["known"], found[0])
        number = found["number"] or found["short"]
        if number is None and found["name"] not in self.names:
            return found[0]
        at = list(self.names).index(found["name"]) if number is None else int(number)
        words = _words(self.arguments)
        return words[at] if at < len(words) else found[0]


def _words(arguments: str) -> Sequence[str]:
    """Return arguments as a shell parts them; where it could not, by blanks."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


LOADED = "skill:loaded:"
"""Beginning of the causes of reminders that hold a skill."""
_BEGIN = compile_late(r'<skill name="([^"\n]+)">')


async def load_skill(
    skill: Skill, arguments: str, agent: Agent, known: Mapping[str, str], context: ToolContext | None = None
) -> str:
    """Return the text of a skill for the model.

    Args:
        skill: The skill.
        arguments: What stands behind its name.
        agent: The agent that loads it.
        known: What is known of the session, by the names of variables.
        context: Context of the call that loads it; None if the user does.
    """
    filling = Filling(arguments, skill.arguments, known)
    texts: list[str] = []
    for part in filling.parts(skill.body):
        if isinstance(part, ShellCommand):
            part = await _result_of(COMMAND_TOOL, {"command": part.line}, agent, context)
        texts.append(part)
    body = "".join(texts).strip()
    if skill.agent is not None:
        task = {"description": f"skill {skill.name}", "prompt": body, "subagent_type": skill.agent}
        report = await _result_of(TASK_TOOL, task, agent, context)
        return f"A subagent has followed the skill {skill.name}. Its report:\n\n{report}"
    folder = known.get("CLAUDE_SKILL_DIR", "")
    where = f"Files that it names are in {folder}\n\n" if folder and not skill.is_command else ""
    return f'<skill name="{skill.name}">\n{where}{body}\n</skill>'


def has_calls(skill: Skill, arguments: str) -> bool:
    """Return whether loading a skill runs commands or a subagent."""
    parts = Filling(arguments, skill.arguments).parts(skill.body)
    return skill.agent is not None or any(isinstance(part, ShellCommand) for part in parts)


async def _result_of(tool: str, arguments: Mapping[str, str], agent: Agent, context: ToolContext | None) -> str:
    use = ToolUseBlock(id=f"skill_{new_id()}", name=tool, input=dict(arguments))
    result = await run_call(agent, use, context)
    if not result.result.is_error:
        return result.text
    if context is None:  # the user sees no result of it
        agent.warn(clean_line(result.text.partition("\n")[0]))
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
