"""Skills: instructions for kinds of tasks, which the model loads when it needs them and the user calls as commands."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from anyio import to_thread

from panpan.config.places import BroughtFile
from panpan.core.hooks import Hook
from panpan.core.late_tool import late_tool
from panpan.core.tool import Tool
from panpan.errors import ConfigError
from panpan.permissions.rules.rules import SKILL_TOOL
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.session.context import SessionContext
from panpan.session.reminders import ReminderSource
from panpan.session.user_hooks import HooksOfUser
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import UserMessage

if TYPE_CHECKING:
    from panpan.capabilities.skills.catalogue import SkillSet
    from panpan.capabilities.skills.following import FollowedSkills
    from panpan.capabilities.skills.skill_file import Skill

OWN_SKILLS: Mapping[str, str] = {
    "commit": "Let the model commit your changes",
    "init": "Let the model look around and write AGENTS.md",
    "review": "Let the model review your uncommitted changes",
    "run": "Say in words what to run, and the model finds the command",
}
"""Skills that come with panpan, for the user alone. Their texts are in the folder `own`."""


class SkillsCapability(Capability):
    """Lets the model load skills, and the user call them by `/NAME`."""

    name = "skills"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._followed: WeakKeyDictionary[Agent, FollowedSkills] = WeakKeyDictionary()
        """Skills that agents follow."""
        self._has_told = False

    @cached_property
    def skills(self) -> "SkillSet":
        from panpan.capabilities.skills.catalogue import SkillSet

        only = self.session.config.options.get("skills")
        return SkillSet(self.session.setup.loaded.places, list(map(_own_skill, OWN_SKILLS)), only)

    @cached_property
    def _has_any(self) -> bool:
        """True if there is a file of a skill or command, or what should be one; then more is imported."""
        problems: list[str] = []
        files = self.session.setup.loaded.places.files(("commands", "skills"), problems)
        return next(files, None) is not None or bool(problems)

    @cached_property
    def _are_for_model(self) -> bool:
        return self._has_any and self.skills.are_for_model

    def services(self) -> Iterable[object]:
        return (self,)

    def described(self) -> Mapping[str, Callable[[], object]]:
        return {"skills": lambda: list(self.skills.all) if self._has_any else []}

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        if self._are_for_model:
            followed = self._followed_by(agent)
            yield late_tool(
                __package__, SKILL_TOOL, "skill:SkillTool", self.skills, agent, self.known, followed, self.hold
            )

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (self._followed_by(agent),) if self._has_any else ()

    def _followed_by(self, agent: Agent) -> "FollowedSkills":
        from panpan.capabilities.skills.following import FollowedSkills

        if agent not in self._followed:
            conversation = agent.conversation
            self._followed[agent] = FollowedSkills(lambda: conversation.messages)
        return self._followed[agent]

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        if not self._are_for_model:
            return ()
        from panpan.capabilities.skills.following import ListedSkills

        return (ListedSkills(self.skills, agent),)

    async def prepare_message(self, message: UserMessage) -> UserMessage:
        if self._has_any and not self._has_told:
            self._has_told = True
            await to_thread.run_sync(lambda: self.skills.all)
            self._tell_problems()
        return message

    def known(self, skill: "Skill") -> Mapping[str, str]:
        """Return what the body of a skill may be filled in with, by the names of variables."""
        setup = self.session.setup
        return {
            **(skill.plugin.variables if skill.plugin else {}),
            "CLAUDE_SESSION_ID": self.session.id,
            "CLAUDE_EFFORT": self.session.main.model.effort or "",
            "CLAUDE_SKILL_DIR": self.skills.folder_of(skill),
            "CLAUDE_PROJECT_DIR": str(setup.locations.project_root),
        }

    def hold(self, agent: Agent, skill: "Skill", message: str = "") -> None:
        """Let the hooks of a skill run in an agent until its turn ends, which may begin with a message."""
        if (hooks := self.session.capabilities.find(HooksOfUser)) is not None and skill.hooks:
            file = BroughtFile("hooks", skill.place, skill.hooks, True, skill.plugin, has_lines=False)
            hooks.hold(agent, file, message=message)

    def _tell_problems(self) -> None:
        if refused := self.skills.refused:
            more = f" (and {len(refused) - 1} more: panpan skills list)" if len(refused) > 1 else ""
            self.session.warn(clean_line(f"a skill is not used: {refused[0]}{more}"))

    async def begin(self, terminal: Terminal, name: str, arguments: str) -> None:
        """Send a skill to the model, as the user asks for by `/NAME`.

        Raises:
            BudgetError: Its commands take more time than is left.
            ConfigError: It was interrupted.
        """
        from panpan.capabilities.skills.following import SkillRules
        from panpan.capabilities.skills.loading import has_calls, load_skill

        every = await to_thread.run_sync(lambda: self.skills.all)
        skill, followed = every[name], self._followed_by(self.session.main)
        rules = SkillRules.of(skill, self.session.warn)
        load = partial(load_skill, skill, arguments, self.session.main, self.known(skill))
        await _tell_hooks(terminal, name, arguments)
        hooks = self.session.capabilities.find(HooksOfUser) if skill.hooks else None
        self.hold(self.session.main, skill)
        try:
            with followed.following(rules):
                text = await (self._at_work(terminal, name, load) if has_calls(skill) else load())
        finally:
            if hooks is not None:
                hooks.let_go(self.session.main)
        message = _message(name, arguments, text)
        self.hold(self.session.main, skill, message.uuid)
        if skill.following.model or skill.following.effort:
            # Whoever wrote a skill of a project or plug-in does not choose who reads the conversation.
            is_foreign = skill.is_of_project or skill.plugin is not None
            terminal.session.ask_with(message.uuid, skill.following.model, skill.following.effort, only_here=is_foreign)
        followed.follow_with(message.uuid, rules)
        terminal.submit(message)

    async def _at_work(self, terminal: Terminal, name: str, load: Callable[[], Awaitable[str]]) -> str:
        """Return the text of a skill that runs something, which an interrupt and the budget may end."""
        if self.session.frontend.is_interactive:
            say(terminal, f"/{name} runs what it needs first; esc stops it", "dim")
        agent, text = self.session.main, None
        with agent.exclusive() as scope, scope, agent.budget.turn():
            text = await load()
        if text is None:
            raise ConfigError(f"/{name} was interrupted, and nothing was sent")
        return text

    @classmethod
    def commands(cls) -> Iterable[Command]:
        for name, help_ in OWN_SKILLS.items():
            yield Command(
                name,
                help_,
                partial(_begin_own, name),
                arguments="[what matters]",
                is_immediate=True,
                sends_itself=True,
            )
        yield Command("skills", "Show the skills and your own commands", _show, is_immediate=True)

    def session_commands(self) -> Iterable[Command]:
        if not self._has_any:
            return
        from panpan.capabilities.skills.loading import has_calls

        for skill in self.skills.all.values():
            if skill.is_for_user and skill.place:
                stands_alone = not (has_calls(skill) or skill.allowed_tools or skill.disallowed_tools or skill.hooks)
                yield Command(
                    skill.name,
                    clean_line(skill.description),
                    partial(_begin, skill.name),
                    arguments=clean_line(skill.argument_hint),
                    is_immediate=stands_alone,
                    sends_itself=True,
                )

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        places = self.session.setup.loaded.places
        for line in places.told_waiting("skills and commands", "commands", "skills"):
            self.session.warn(line)
        yield


def _own_skill(name: str) -> "Skill":
    from panpan.capabilities.skills.skill_file import Skill

    body = (Path(__file__).parent / "own" / f"{name}.md").read_text(encoding="utf-8")
    return Skill(name, OWN_SKILLS[name], body, "", is_command=True, is_for_model=False)


def _message(name: str, arguments: str, text: str) -> UserMessage:
    from panpan.types.content import TextBlock, for_model  # the first screen needs this module, but no messages

    typed = TextBlock(text=f"/{name} {arguments}".rstrip())
    return UserMessage(content=(typed, for_model(text)))


async def _tell_hooks(terminal: Terminal, name: str, arguments: str) -> None:
    """Tell hooks that the user calls a skill; raise `HookRefusedError` if one says no."""
    if (hooks := terminal.session.find(HooksOfUser)) is not None:
        told = {"command_name": name, "command_args": arguments, "prompt": f"/{name} {arguments}".rstrip()}
        await hooks.tell("UserPromptExpansion", name, told)


async def _begin_own(name: str, terminal: Terminal, arguments: str) -> None:
    from panpan.capabilities.skills.loading import text_of

    await _tell_hooks(terminal, name, arguments)
    terminal.submit(_message(name, arguments, text_of(_own_skill(name), arguments)))


async def _begin(name: str, terminal: Terminal, arguments: str) -> None:
    await terminal.session[SkillsCapability].begin(terminal, name, arguments)


async def _show(terminal: Terminal, rest: str) -> None:
    skills = terminal.session[SkillsCapability].skills
    every = await to_thread.run_sync(lambda: skills.all)
    say_pairs(terminal, [(f"/{skill.name}", told_of(skill)) for skill in every.values()])
    for line in (*skills.refused, *skills.asides):
        say(terminal, clean_line(line), "warn")


def told_of(skill: "Skill") -> str:
    """Return a skill for people, in two lines."""
    who = "you and the model" if skill.is_for_model and skill.is_for_user else ""
    who = who or ("the model" if skill.is_for_model else "you")
    lines: Sequence[str] = (skill.description, f"for {who} · from {skill.place or 'panpan'}")
    return "\n".join(clean_line(line) for line in lines)
