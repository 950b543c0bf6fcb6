"""Skill: load a skill, so that its instructions are in the conversation."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import ClassVar

from pydantic import Field

from panpan.capabilities.skills.catalogue import SkillSet
from panpan.capabilities.skills.following import FollowedSkills, SkillRules
from panpan.capabilities.skills.loading import has_calls, load_skill
from panpan.capabilities.skills.skill_file import Skill, hook_lines
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.session.agent import Agent
from panpan.system.text.terminal_text import clean_line, escape_invisible
from panpan.types.content import Frozen, SummaryDisplay, for_model
from panpan.types.events import Output, ToolYield, known_name

MAX_ARGUMENTS = 100_000


class SkillInput(Frozen):
    """Arguments of Skill."""

    skill: str = Field(min_length=1, max_length=500, description="Its name")
    args: str = Field(default="", max_length=MAX_ARGUMENTS)


class SkillTool(Tool[SkillInput]):
    """Load a skill. What its text asks for is done by other calls, each with a decision of its own."""

    name = "Skill"
    input_model = SkillInput
    question_template = "Use the skill {title}?"
    timeout_s: ClassVar[float | None] = None
    is_shared: ClassVar[bool] = False
    waits: ClassVar[bool] = True
    stays_in_context: ClassVar[bool] = True

    def __init__(
        self,
        skills: SkillSet,
        agent: Agent,
        known: Callable[[Skill], Mapping[str, str]],
        followed: FollowedSkills,
        hold: Callable[[Agent, Skill], None],
    ) -> None:
        self._hold = hold
        self._skills = skills
        self._agent = agent
        self._known = known
        self._followed = followed
        self._may_allow: dict[str, bool] = {}
        """True for a call about which the user is asked, so that the skill may allow others; by its id."""

    def may_run_in_parallel(self, args: SkillInput) -> bool:
        skill = self._find(args.skill)
        return skill is None or not (has_calls(skill) or skill.allowed_tools or skill.disallowed_tools or skill.hooks)

    async def effects(self, args: SkillInput, ctx: ToolContext) -> Effects:
        skill = self._get(args.skill)
        may_allow = bool(skill.allowed_tools) and self._agent.gate.mode != "plan"
        self._may_allow[ctx.tool_use_id] = may_allow
        return Effects(names=(skill.name,), is_complete=not (may_allow or skill.hooks))

    def title(self, args: SkillInput) -> str:
        return f"{args.skill} {args.args}".rstrip()

    async def describe(self, args: SkillInput, ctx: ToolContext) -> str:
        skill = self._get(args.skill)
        rules = ", ".join(map(clean_line, skill.allowed_tools))
        said = [f"Until your next message, these run without a question: {rules}"] if rules else []
        if skill.hooks:
            said.append("Its hooks run until then, outside the sandbox:")
            said += map(escape_invisible, hook_lines(skill))
        return "\n".join(said)

    async def run(self, args: SkillInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        skill = self._get(args.skill)
        allows = self._may_allow.pop(ctx.tool_use_id, False)
        self._followed.follow(SkillRules.of(skill, self._agent.warn, allows=allows))
        self._hold(self._agent, skill)
        text = await load_skill(skill, args.args, self._agent, self._known(skill), ctx)
        yield Output((for_model(text),), SummaryDisplay(text=f"{text.count(chr(10)) + 1:,} lines"))

    def _find(self, name: str) -> Skill | None:
        every = self._skills.all
        found = every.get(known_name(name.strip().removeprefix("/"), every.keys()))
        return found if found is not None and found.is_for_model else None

    def _get(self, name: str) -> Skill:
        """Return a skill that the model may load.

        Raises:
            ToolError: There is none of the name; says which ones may be meant.
        """
        if (found := self._find(name)) is not None:
            return found
        if near := self._skills.near(name):
            lines = "\n".join(f"- {one.name}: {one.description}" for one in near)
            raise ToolError(f"there is no skill {name!r}; these are near:\n{lines}")
        raise ToolError(f"there is no skill {name!r}; go on without one")
