"""Skills in a conversation: the list of them, and those that an agent follows, which stay when it is compacted."""

import re
from collections.abc import Callable, Collection, Sequence

from anyio import to_thread

from panpan.capabilities.skills.catalogue import SkillSet, catalogue, digest_of, room_chars
from panpan.capabilities.skills.loading import LOADED, loaded_skills
from panpan.capabilities.skills.skill_file import Skill
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import ToolError
from panpan.permissions.rules.rules import SKILL_TOOL
from panpan.session.agent import Agent
from panpan.session.reminders import ReminderSource
from panpan.system.files.canonical import is_below
from panpan.system.files.globs import compile_gitignore, expand_braces
from panpan.types.events import Output
from panpan.types.messages import Message, SystemReminder, UserMessage

_LIST = "skill:list:"
_MOST_KEPT_CHARS = 20_000
"""Most characters of one skill that stay in a compacted conversation."""
_MOST_KEPT_OF_ALL = 100_000
_NEWEST = 10
"""Messages at the end of a conversation, among which is the one that begins a turn."""


class ListedSkills(ReminderSource):
    """Tells the model which skills it may load.

    Args:
        skills: The skills.
        agent: The agent.
        tell_problems: Called once they are read.
    """

    def __init__(self, skills: SkillSet, agent: Agent, tell_problems: Callable[[], None]) -> None:
        self._skills = skills
        self._agent = agent
        self._tell_problems = tell_problems
        self._list: str | None = None
        self._for_files: dict[str, str] = {}
        """Skills for certain files, of which one was touched, and the first such file."""

    async def after_tool(self, call: ToolCall, output: Output) -> None:
        if self._list is not None and not output.is_error:
            for skill in self._skills.all.values():
                if skill.paths and skill.is_for_model and skill.name not in self._for_files:
                    self._note(skill, call)

    def _note(self, skill: Skill, call: ToolCall) -> None:
        root = call.context.paths.root
        try:
            places = [call.context.paths.locate(use.path).path for use in call.effects.path_uses]
            patterns = _patterns(skill)
        except ToolError:
            return
        for place in places:
            if is_below(place, root) and place != root:
                relative = place.relative_to(root).as_posix()
                if any(pattern.fullmatch(relative) for pattern in patterns):
                    self._for_files[skill.name] = relative
                    return

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if all(tool.name != SKILL_TOOL for tool in round_.conversation.tools):
            return ()
        if self._list is None:
            self._list = await to_thread.run_sync(self._listed)
            self._tell_problems()
        told = []
        if self._list:
            text = f"Skills that you can load with Skill, each a name and what it is for:\n{self._list}"
            told.append(SystemReminder(text=text, cause=f"{_LIST}{digest_of(self._list)}"))
        for name, file in self._for_files.items():
            skill = self._skills.all[name]
            text = f"There is a skill for files such as {file}. Load it with Skill: {name}: {skill.description}"
            told.append(SystemReminder(text=text, cause=f"skill:for_file:{name}"))
        return told

    def _listed(self) -> str:
        return catalogue(self._skills.listed(), room_chars(self._agent.model.context_window))


def _patterns(skill: Skill) -> Sequence[re.Pattern[str]]:
    every = [pattern for written in skill.paths for pattern in expand_braces(written)]
    anchored = [one if one.startswith("**/") else f"/{one.removeprefix('./').lstrip('/')}" for one in every]
    return [compile_gitignore(one) for one in anchored]


class FollowedSkills(Hook):
    """Keeps the skills that an agent has loaded, and ends what they allow with the turn.

    Args:
        messages: Returns the messages of its conversation.
        keep_only: Takes back what skills allow, but for those of the given names.
    """

    def __init__(self, messages: Callable[[], Sequence[Message]], keep_only: Callable[[Collection[str]], None]) -> None:
        self._messages = messages
        self._keep_only = keep_only

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        """End what a skill allows whose message was not sent after all."""
        newest = [one for one in conversation.messages[-_NEWEST:] if isinstance(one, UserMessage)]
        self._keep_only({name for name, _ in loaded_skills(newest[-1:])})
        return ()

    async def pinned_reminders(self) -> Sequence[SystemReminder]:
        messages = self._messages()
        told = [one for one in messages if isinstance(one, SystemReminder) and one.cause.startswith(_LIST)]
        newest = dict(loaded_skills(messages))
        kept: list[SystemReminder] = []
        room = _MOST_KEPT_OF_ALL
        for name, text in reversed(newest.items()):
            shown = text if len(text) <= _MOST_KEPT_CHARS else f"{text[:_MOST_KEPT_CHARS]}\n… the rest: load it again"
            if (room := room - len(shown)) < 0:
                break
            kept.append(SystemReminder(text=shown, cause=f"{LOADED}{name}"))
        return [*told[-1:], *kept[::-1]]

    async def turn_ended(self, conversation: Conversation) -> None:
        self._keep_only(())
