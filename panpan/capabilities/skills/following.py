"""Skills in a conversation: the list of them, and those that an agent follows, with what they allow and forbid.

The rule: a skill allows only what the user would be asked about and could answer by a rule, in the agent that follows
it, until the turn ends. It opens nothing that rules, modes or places of the user close.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from anyio import to_thread

from panpan.capabilities.skills.catalogue import SkillSet, catalogue, digest_of, room_tokens
from panpan.capabilities.skills.loading import LOADED, loaded_skills
from panpan.capabilities.skills.skill_file import Skill
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import ConfigError, ToolError
from panpan.permissions.rules.matching import allowing_rules, covering_rule, restriction
from panpan.permissions.rules.rules import SKILL_TOOL, Rule, parse_rule
from panpan.permissions.subject import Subject, subject_of
from panpan.session.agent import Agent
from panpan.session.reminders import ReminderSource
from panpan.system.files.canonical import is_below
from panpan.system.files.globs import compile_rooted, expand_braces
from panpan.types.dataclass import dataclass
from panpan.types.events import Output
from panpan.types.messages import Message, SystemReminder
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionQuestion, Reason

_LIST = "skill:list:"
_MOST_KEPT_CHARS = 20_000
"""Most characters of one skill that stay in a compacted conversation."""
_MOST_KEPT_OF_ALL = 100_000
_NEWEST = 20
"""Messages at the end of a conversation, among which is the one that begins a turn."""
_ANSWERED = frozenset({"not-allowed", "unknown", "outside"})
"""Reasons of questions that an allowing rule would have kept from being asked."""


class ListedSkills(ReminderSource):
    """Tells the model which skills it may load.

    Args:
        skills: The skills.
        agent: The agent.
    """

    def __init__(self, skills: SkillSet, agent: Agent) -> None:
        self._skills = skills
        self._agent = agent
        self._list: str | None = None
        self._untouched: dict[str, Sequence[re.Pattern[str]]] = {}
        """Skills for certain files, of which none was touched yet, and the patterns of these."""
        self._touched: dict[str, str] = {}
        """Those of which one was touched, and the first such file."""

    async def after_tool(self, call: ToolCall, output: Output) -> None:
        if not self._untouched or output.is_error:
            return
        root = call.context.paths.root
        try:
            places = [call.context.paths.locate(use.path).path for use in call.effects.path_uses]
        except ToolError:
            return
        files = [place.relative_to(root).as_posix() for place in places if is_below(place, root) and place != root]
        for name, patterns in list(self._untouched.items()):
            if (file := next((one for one in files if any(p.fullmatch(one) for p in patterns)), None)) is not None:
                self._touched[name] = file
                del self._untouched[name]

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if all(tool.name != SKILL_TOOL for tool in round_.conversation.tools):
            return ()
        if self._list is None:
            self._list = await to_thread.run_sync(self._listed)
        told = []
        if self._list:
            text = f"Skills that you can load with Skill, each a name and what it is for:\n{self._list}"
            told.append(SystemReminder(text=text, cause=f"{_LIST}{digest_of(self._list)}"))
        for name, file in self._touched.items():
            skill = self._skills.all[name]
            text = f"There is a skill for files such as {file}. Load it with Skill: {name}: {skill.description}"
            told.append(SystemReminder(text=text, cause=f"skill:for_file:{name}"))
        return told

    def _listed(self) -> str:
        """Return the list of skills for all work; note those for certain files."""
        every = self._skills.for_model
        for skill in (skill for skill in every if skill.paths):
            with suppress(ToolError):  # it has no pattern that can be read
                patterns = [compile_rooted(one) for written in skill.paths for one in expand_braces(written)]
                self._untouched[skill.name] = patterns
        room = room_tokens(self._agent.model.context_window)
        return catalogue((skill for skill in every if not skill.paths), room)


@dataclass(frozen=True, slots=True)
class SkillRules:
    """Permission rules that hold while a skill is followed."""

    allow: Sequence[Rule] = ()
    deny: Sequence[Rule] = ()

    @classmethod
    def of(cls, skill: Skill, tell: Callable[[str], None], *, allows: bool = True) -> "SkillRules":
        """Return the rules of a skill; one that cannot be read is told and left out, and the others hold."""
        allow, deny = (
            [rule for text in texts if (rule := _rule(text, skill, tell)) is not None]
            for texts in (skill.allowed_tools if allows else (), skill.disallowed_tools)
        )
        return cls(allow, deny)


def _rule(text: str, skill: Skill, tell: Callable[[str], None]) -> Rule | None:
    try:
        return parse_rule(text, skill.place)
    except ConfigError as error:
        tell(f"a rule of the skill {skill.name} does not hold: {error}")
        return None


class FollowedSkills(Hook):
    """Keeps the skills that an agent has loaded, and lets their rules hold until the turn ends.

    Args:
        messages: Returns the messages of its conversation.
    """

    def __init__(self, messages: Callable[[], Sequence[Message]]) -> None:
        self._messages = messages
        self._in_force: list[SkillRules] = []
        self._sent: dict[str, SkillRules] = {}
        """Rules that wait for the turn of a message of the user, by its id."""

    def follow(self, rules: SkillRules) -> None:
        """Let rules hold until the turn ends."""
        self._in_force.append(rules)

    @contextmanager
    def following(self, rules: SkillRules) -> Iterator[None]:
        """Let rules hold during the block."""
        self._in_force.append(rules)
        try:
            yield
        finally:
            self._in_force.remove(rules)

    def follow_with(self, message: str, rules: SkillRules) -> None:
        """Let rules hold in the turn that a message of this id begins; in none if it is not sent."""
        self._sent[message] = rules

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        begun = {message.uuid for message in conversation.messages[-_NEWEST:]}
        self._in_force = [self._sent.pop(uuid) for uuid in list(self._sent) if uuid in begun]
        return ()

    async def turn_ended(self, conversation: Conversation) -> None:
        self._in_force = []

    async def before_tool(self, call: ToolCall) -> Decision | None:
        denying = [rule for rules in self._in_force for rule in rules.deny]
        if not denying or (subject := await _subject(call)) is None:
            return None
        found = [(rule, restriction(rule, subject)) for rule in denying]
        for rule, how in found:
            if how == "holds":
                return Deny(Reason(f"a skill forbids it: {rule}", "rule", rule.text, rule.source))
        for rule, how in found:
            if how is not None:
                return Ask(Reason(f"a skill may forbid it: {rule}", "unclear", rule.text, rule.source))
        return None

    async def answer_question(self, call: ToolCall, question: PermissionQuestion) -> Allow | Deny | None:
        allowing = [rule for rules in self._in_force for rule in rules.allow]
        if not allowing or not {reason.kind for reason in question.reasons} <= _ANSWERED:
            return None
        if (subject := await _subject(call)) is None:
            return None
        rules = allowing_rules(allowing, subject)
        closed = (use for use in subject.uses if not use.is_open)
        if rules is None or any(covering_rule(allowing, use, subject) is None for use in closed):
            return None
        return Allow(Reason(f"a skill allows it: {rules[0]}", "rule", rules[0].text, rules[0].source))

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


async def _subject(call: ToolCall) -> Subject | None:
    try:
        return await subject_of(call)
    except ToolError:  # the gate denies it
        return None
