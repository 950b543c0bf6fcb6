"""Skills: instructions for kinds of tasks, which the model loads when it needs them and the user calls as commands."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import CancelScope, to_thread

from panpan.config.places import brought_files, waiting_files
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
from panpan.system.text.terminal_text import clean_line

if TYPE_CHECKING:
    from panpan.capabilities.skills.catalogue import SkillSet
    from panpan.capabilities.skills.skill_file import Skill

OWN_SKILLS: Mapping[str, str] = {
    "commit": "Let the model commit your changes",
    "init": "Let the model look around and write AGENTS.md",
    "review": "Let the model review your uncommitted changes",
}
"""Skills that come with panpan, for the user alone. Their texts are in the folder `own`."""


class SkillsCapability(Capability):
    """Lets the model load skills, and the user call them by `/NAME`."""

    name = "skills"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._grants: dict[str, Callable[[], None]] = {}
        """Skills whose rules hold in this turn, and what takes these back."""

    @cached_property
    def skills(self) -> "SkillSet":
        from panpan.capabilities.skills.catalogue import SkillSet
        from panpan.capabilities.skills.skill_file import Skill

        own = [
            Skill(name, help_, (Path(__file__).parent / "own" / f"{name}.md").read_text(encoding="utf-8"), "",
                  is_command=True, is_for_model=False, argument_hint="[what matters]")
            for name, help_ in OWN_SKILLS.items()
        ]  # fmt: skip
        setup = self.session.setup
        return SkillSet(setup.locations.home, setup.loaded.trust, own)

    @cached_property
    def _has_any(self) -> bool:
        """True if there is a file of a skill or command; then more is imported."""
        setup = self.session.setup
        files = brought_files(("commands", "skills"), setup.locations.home, setup.loaded.trust, [])
        return next(files, None) is not None

    @cached_property
    def _are_for_model(self) -> bool:
        return self._has_any and self.skills.are_for_model

    def services(self) -> Iterable[object]:
        return (self,)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        if self._are_for_model:
            yield late_tool(__package__, SKILL_TOOL, "skill:SkillTool", self.skills, agent, self.known, self.grant)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        if not self._has_any:
            return ()
        from panpan.capabilities.skills.following import FollowedSkills

        keep_only = self.keep_only if agent.is_main else lambda _: None
        return (FollowedSkills(lambda: agent.conversation.messages, keep_only),)

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        if not self._are_for_model:
            return ()
        from panpan.capabilities.skills.following import ListedSkills

        return (ListedSkills(self.skills, agent, self._tell_problems if agent.is_main else lambda: None),)

    def known(self, skill: "Skill") -> Mapping[str, str]:
        """Return what the body of a skill may be filled in with, by the names of variables."""
        setup = self.session.setup
        return {
            "CLAUDE_SESSION_ID": self.session.id,
            "CLAUDE_EFFORT": self.session.main.model.effort or "",
            "CLAUDE_SKILL_DIR": self.skills.folder_of(skill),
            "CLAUDE_PROJECT_DIR": str(setup.locations.project_root),
        }

    def grant(self, skill: "Skill") -> None:
        """Let the rules of a skill hold until the turn ends."""
        if skill.name in self._grants or not (skill.allowed_tools or skill.disallowed_tools):
            return
        allow, deny, place = skill.allowed_tools, skill.disallowed_tools, skill.place
        try:
            self._grants[skill.name] = self.session.gate.grant(allow, deny, place)
        except ConfigError as error:
            self.session.warn(f"the skill {skill.name} changes no permission: {error}")

    def keep_only(self, followed: Collection[str]) -> None:
        """Take back the rules of all skills but these."""
        for name in self._grants.keys() - set(followed):
            self._grants.pop(name)()

    def _tell_problems(self) -> None:
        if refused := self.skills.refused:
            more = f" (and {len(refused) - 1} more: panpan skills list)" if len(refused) > 1 else ""
            self.session.warn(clean_line(f"a skill is not used: {refused[0]}{more}"))

    async def begin(self, terminal: Terminal, name: str, arguments: str) -> None:
        """Send a skill to the model, as the user asks for by `/NAME`."""
        from panpan.capabilities.skills.loading import has_calls, load_skill
        from panpan.types.content import TextBlock, for_model
        from panpan.types.messages import UserMessage

        every = await to_thread.run_sync(lambda: self.skills.all)
        skill, agent = every[name], self.session.main
        self.grant(skill)
        work: AbstractContextManager[CancelScope] = nullcontext(CancelScope())
        if has_calls(skill, arguments):
            say(terminal, f"/{name} runs what it needs first; esc stops it", "dim")
            work = agent.exclusive()
        with work as scope, scope:
            text = await load_skill(skill, arguments, agent, self.known(skill))
        if scope.cancelled_caught:
            say(terminal, f"/{name} was interrupted, and nothing was sent", "warn")
            return
        typed = TextBlock(text=f"/{name} {arguments}".rstrip())
        terminal.submit(UserMessage(content=(typed, for_model(text))))

    @classmethod
    def commands(cls) -> Iterable[Command]:
        for name, help_ in OWN_SKILLS.items():
            yield Command(
                name,
                help_,
                partial(_begin, name),
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
                stands_alone = not (has_calls(skill, "") or skill.allowed_tools or skill.disallowed_tools)
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
        trust = self.session.setup.loaded.trust
        waiting = [*waiting_files("commands", trust), *waiting_files("skills", trust)]
        if waiting and trust.may_be_asked:
            of = f"{waiting[0]} and {len(waiting) - 1} more" if len(waiting) > 1 else waiting[0]
            self.session.warn(clean_line(f"skills of the project do not count until you trust it: panpan trust ({of})"))
        yield


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
