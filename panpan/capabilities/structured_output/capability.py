"""Structured output: the answer of a turn is JSON that fits a schema of the caller.

The model gives it by a call of a tool whose arguments have that schema, which every provider with tools can do. A model
that writes the JSON as its answer is understood, too. The rule: nothing counts as the answer that does not fit.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from panpan.capabilities.structured_output.schema import AnswerSchema, json_in
from panpan.core.conversation import Conversation
from panpan.core.effects import Effects
from panpan.core.hooks import Addition, Hook, Round
from panpan.core.tool import Tool, ToolContext
from panpan.errors import StructuredOutputError, ToolError
from panpan.session.agent import Agent
from panpan.session.capability import Capability, StructuredAnswer
from panpan.session.context import SessionContext
from panpan.types.content import SummaryDisplay
from panpan.types.events import Output, ToolYield
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, SystemReminder

MAX_TRIES = 5
"""Answers that do not fit, or are missing, after which the turn fails."""

DESCRIPTION = (
    "Give your final answer as data. The user's program reads nothing but the arguments of this call. Do the work "
    "first, with the other tools; then end the turn with exactly one call of this one. Its arguments have to fit its "
    "schema: if they do not, you are told why, and you call it again."
)


class StructuredOutputCapability(Capability, StructuredAnswer):
    """Asks the model for an answer that fits the schema of the session, if it has one."""

    name = "structured_output"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        schema = session.config.options.get("json_schema")
        self._answers = None if schema is None else Answers(AnswerSchema.of(schema))

    @property
    def is_wanted(self) -> bool:
        return self._answers is not None

    @property
    def values(self) -> Sequence[Any]:
        return () if self._answers is None else tuple(self._answers.values)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return () if self._answers is None else (StructuredOutputTool(self._answers),)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return () if self._answers is None or not agent.is_main else (self._answers,)


class Answers(Hook):
    """The answers of the turn that runs: the one that fits, and the tries that did not."""

    def __init__(self, schema: AnswerSchema) -> None:
        self.schema = schema
        self.values: list[Any] = []
        """The answer that fits; empty until there is one."""
        self._misses: list[str] = []
        """Problems of each try that did not fit."""

    def give(self, answer: Any) -> Sequence[str]:
        """Take an answer if it fits, and return the problems if it does not."""
        problems = self.schema.problems_of(answer)
        if problems:
            self._misses.append("; ".join(problems))
        else:
            self.values[:] = [answer]
        return problems

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self.values.clear()
        self._misses.clear()
        wanted = self.schema.of_arguments
        if any(tool.name == StructuredOutputTool.name and tool.input_schema == wanted for tool in conversation.tools):
            return ()
        # a resumed session keeps the tools with which it was begun
        schema = _as_text(self.schema.schema)
        return (_reminder(f"End this turn with an answer that is only JSON, without other words. Schema: {schema}"),)

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        self._require_patience()
        return ()

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        if self._is_end(reply) and not self.values:
            try:
                self.give(json_in(reply.text))
            except ValueError:
                self._misses.append("the turn ended without the answer")
            self._require_patience()

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        if not self._is_end(reply) or self.values:
            return ()
        return (_reminder(f"Your final answer is missing ({self._misses[-1]}). Give it now: {self._how(round_)}"),)

    def ends_turn(self, round_: Round) -> bool:
        return bool(self.values)

    def _is_end(self, reply: AssistantMessage) -> bool:
        return not reply.tool_uses and not reply.is_to_be_continued

    def _how(self, round_: Round) -> str:
        has_tool = any(tool.name == StructuredOutputTool.name for tool in round_.conversation.tools)
        return f"call {StructuredOutputTool.name}." if has_tool else "only JSON, without other words."

    def _require_patience(self) -> None:
        if len(self._misses) >= MAX_TRIES:
            raise StructuredOutputError(
                f"the model gave no answer that fits the JSON schema in {MAX_TRIES} tries; the last one: "
                f"{self._misses[-1]}"
            )


class AnyArguments(BaseModel):
    """Arguments of the call; the schema of the session checks them."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def written(self) -> Mapping[str, Any]:
        return self.__pydantic_extra__ or {}


class StructuredOutputTool(Tool[AnyArguments]):
    """Takes the final answer. It changes nothing, so it needs no question and works in every mode."""

    name = "StructuredOutput"
    input_model = AnyArguments
    description = DESCRIPTION
    question_template = "Take the final answer?"
    only_reads: ClassVar[bool] = True
    is_for_subagents: ClassVar[bool] = False
    is_beside_lists: ClassVar[bool] = True
    is_shared: ClassVar[bool] = False

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    @cached_property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(self.name, self.description, self._answers.schema.of_arguments)

    def may_run_in_parallel(self, args: AnyArguments) -> bool:
        return False  # if one reply has two calls, the later one counts

    def may_be_repeated(self, args: AnyArguments) -> bool:
        return True  # the tries are counted here

    def title(self, args: AnyArguments) -> str:
        return "the final answer"

    async def effects(self, args: AnyArguments, ctx: ToolContext) -> Effects:
        return Effects()

    async def run(self, args: AnyArguments, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        if problems := self._answers.give(self._answers.schema.answer_in(args.written)):
            listed = "\n".join(f"- {problem}" for problem in problems)
            raise ToolError(f"the answer does not fit the schema:\n{listed}\nCorrect it and call this tool again")
        yield Output("The answer fits.", SummaryDisplay(text="fits the schema"))


def _as_text(schema: Mapping[str, Any]) -> str:
    import json

    return json.dumps(schema, ensure_ascii=False)


def _reminder(text: str) -> SystemReminder:
    return SystemReminder(text=text, cause="answer:schema")
