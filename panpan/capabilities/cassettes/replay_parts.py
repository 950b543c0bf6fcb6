"""Replacements for parts of a session in a replay: the model, the tools, those who are asked, and the hooks.

The rule: a cassette is a file, and a file grants nothing that matters. With real tools, a call may run that ran in the
recording, within the workspace and the sandbox. What is protected, lies outside or would leave the sandbox stays
closed, whatever the cassette says. Rules files outside the workspace stay as they were recorded: they differ from user
to user.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from panpan.capabilities.cassettes.recorded_reply import Change
from panpan.capabilities.cassettes.recorded_session import RecordedRequest, RecordedSession
from panpan.capabilities.cassettes.recording import plan_answer, user_answers
from panpan.core.conversation import Conversation
from panpan.core.effects import Effects
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ContextOverflowError, ToolError
from panpan.session.frontend import Askers
from panpan.types.events import Compacted, FileChange, Output, StreamEvent, ToolYield, Verification, Waiting
from panpan.types.llm import ModelClient, ModelOptions, ModelRequest, Provider, ToolDefinition
from panpan.types.messages import (
    MEMORY,
    PROJECT_CONTEXT,
    AssistantMessage,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
)
from panpan.types.pattern import compile_late
from panpan.types.permission import (
    Asker,
    Decision,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanApproved,
    PlanAsker,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserAsker,
    UserQuestion,
)

if TYPE_CHECKING:
    from panpan.capabilities.cassettes.replay import Replay


class ReplayedModel(Provider):
    """Plays the recorded replies."""

    name = "cassette"

    def __init__(self, replay: "Replay") -> None:
        self._replay = replay

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        recorded = self._replay.answer(request, options)
        async with aclosing(self._replay.events(recorded)) as events:
            async for event in events:
                yield event

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return self._replay.count()


class ComparedModel:
    """Implements `Provider` by another one, whose replies are compared before anything that they call is answered."""

    def __init__(self, inner: Provider, replay: "Replay") -> None:
        self.name = inner.name
        self._inner = inner
        self._replay = replay
        self._asked: RecordedRequest | None = None

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        recorded = self._asked or self._replay.answer(request, options)
        self._asked = recorded  # the request may be retried
        async with aclosing(self._inner.stream(request, options)) as stream:
            async for event in stream:
                if isinstance(event, AssistantMessage):
                    self._replay.check_reply(recorded, event)
                    self._asked = None
                yield event

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return await self._inner.count_tokens(request, options)

    async def prepare(self) -> None:
        await self._inner.prepare()

    async def aclose(self) -> None:
        await self._inner.aclose()


def replayed_tool(
    tool: Tool[Any], results: Mapping[str, ToolResultMessage], wait: Callable[[], Awaitable[None]]
) -> Tool[Any]:
    """Return a tool that looks like `tool` and answers as it was recorded."""
    kept = (
        "name",
        "input_model",
        "only_reads",
        "is_shared",
        "is_for_subagents",
        "starts_agents",
        "asks_user",
        "count_label",
    )
    looks = {name: getattr(tool, name) for name in kept}
    made: Tool[Any] = type("ReplayedTool", (_ReplayedTool,), looks)(tool, results, wait)
    return made


def recorded_tool(recorded: Mapping[str, Any]) -> Tool[Any]:
    """Return a tool of the recording that this session has not, such as one of the user's servers; it cannot run."""
    looks = {"name": recorded["name"], "definition": ToolDefinition(**recorded)}
    made: Tool[Any] = type("RecordedTool", (_RecordedTool,), looks)()
    return made


class _AnyArguments(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _RecordedTool(Tool[_AnyArguments]):
    input_model = _AnyArguments
    is_shared = False

    def title(self, args: _AnyArguments) -> str:
        return ", ".join(f"{name}: {value}" for name, value in (args.model_extra or {}).items())

    async def run(self, args: _AnyArguments, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        yield Output("a tool of a recording cannot run", is_error=True)


class _ReplayedTool(Tool[Any]):
    timeout_s = None

    def __init__(
        self, tool: Tool[Any], results: Mapping[str, ToolResultMessage], wait: Callable[[], Awaitable[None]]
    ) -> None:
        self._tool = tool
        self._results = results
        self._wait = wait

    def may_run_in_parallel(self, args: Any) -> bool:
        return self._tool.may_run_in_parallel(args)

    def title(self, args: Any) -> str:
        return self._tool.title(args)

    async def effects(self, args: Any, ctx: ToolContext) -> Effects:
        return Effects()  # nothing runs

    async def run(self, args: Any, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        await self._wait()
        result = self._results.get(ctx.tool_use_id)
        if result is None:
            raise ToolError(f"the cassette has no result of the call {ctx.tool_use_id}")
        yield Output(result.result.content, result.display, is_error=result.is_error)


_CLOSED = ("protected", "outside", "sandbox", "rule", "unclear", "withheld", "doom-loop")
"""Kinds of questions that a cassette does not answer: those that ask for more than the workspace, or that the user's
own rules want to be asked."""


def replaying_askers(recorded: RecordedSession) -> Askers:
    """Return who answers in a replay: somebody for each kind of question for which somebody was there."""
    asks = recorded.header.asks
    return Askers(
        _permission(recorded),
        _user(recorded) if "user" in asks else None,
        _plan(recorded) if "plan" in asks else None,
    )


def _permission(recorded: RecordedSession) -> Asker:
    answers = {line["toolUseId"]: line["answer"] for line in _answers(recorded, "permission")}
    ran = recorded.begun | {id_ for id_, answer in answers.items() if answer.get("is_allowed") is True}

    async def ask(question: PermissionQuestion) -> PermissionAnswer:
        id_ = question.tool_use_id
        if question.is_protected or any(reason.kind in _CLOSED for reason in question.reasons):
            return PermissionAnswer(is_allowed=False, feedback="a cassette does not open this", is_persons=False)
        return PermissionAnswer(is_allowed=id_ in ran, feedback=str(answers.get(id_, {}).get("feedback", "")))

    return ask


def _user(recorded: RecordedSession) -> UserAsker:
    said = _answers(recorded, "user")

    async def ask(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        line = next(said, None)
        answers = None if line is None else user_answers(line["answer"])
        return answers if answers is not None and len(answers) == len(questions) else None

    return ask


def _plan(recorded: RecordedSession) -> PlanAsker:
    said = _answers(recorded, "plan")

    async def ask(proposal: PlanProposal) -> PlanAnswer:
        line = next(said, None)
        answer = PlanRejected() if line is None else plan_answer(line["answer"])
        is_open = not isinstance(answer, PlanApproved) or answer.mode in ("default", "acceptEdits")
        return answer if is_open else PlanRejected()

    return ask


def _answers(recorded: RecordedSession, asked: str) -> Iterator[Mapping[str, Any]]:
    return (line for line in recorded.answers if line["asked"] == asked)


class ReplayedHook(Hook):
    """One service. It decides about no call, since none is run."""

    def __init__(self, inner: Hook, replay: "Replay", live: list[SystemReminder], *, is_last: bool) -> None:
        self._inner = inner
        self._replay = replay
        self._live = live
        self._is_last = is_last

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._collect(await self._inner.turn_started(conversation))
        return ()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        self._collect(await self._inner.before_request(round_))
        return self._said() if self._is_last else ()

    async def compact(
        self, round_: Round, llm: ModelClient, refusal: ContextOverflowError | None
    ) -> AsyncGenerator[Waiting | Compacted, None]:
        async with aclosing(self._inner.compact(round_, llm, refusal)) as changes:
            async for change in changes:
                yield change

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        await self._inner.after_reply(round_, reply)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        await self._inner.after_tool(call, output)
        return output

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        self._collect(await self._inner.after_round(round_, reply))
        return self._said() if self._is_last and not round_.conversation.awaits_model else ()

    def ends_turn(self, round_: Round) -> bool:
        return self._inner.ends_turn(round_) or (self._is_last and self._replay.is_turn_over)

    @property
    def turn_files(self) -> Sequence[FileChange]:
        return self._inner.turn_files

    @property
    def verification(self) -> Verification | None:
        return self._inner.verification

    async def pinned_reminders(self) -> Sequence[SystemReminder]:
        return self._replay.pinned_reminders() if self._is_last else ()

    async def interrupted(self, conversation: Conversation) -> None:
        await self._inner.interrupted(conversation)

    async def history_replaced(self, conversation: Conversation) -> None:
        await self._inner.history_replaced(conversation)

    async def turn_ended(self, conversation: Conversation) -> None:
        await self._inner.turn_ended(conversation)

    def _collect(self, additions: Sequence[Addition]) -> None:
        self._live += [addition for addition in additions if isinstance(addition, SystemReminder)]

    def _said(self) -> Sequence[Addition]:
        live = list(self._live)
        self._live.clear()
        return self._replay.additions(live)


class LiveHook(Hook):
    """Repeats, with real services, what the user did while a turn ran, and ends turns where the cassette does."""

    def __init__(self, replay: "Replay") -> None:
        self._replay = replay

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return self._said()

    async def before_tool(self, call: ToolCall) -> Decision | None:
        if self._replay.was_interrupted_in(call.tool_use_id):
            self._replay.interrupt()
        return None

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        return () if round_.conversation.awaits_model else self._said()

    def ends_turn(self, round_: Round) -> bool:
        return self._replay.is_turn_over

    def _said(self) -> Sequence[Addition]:
        return [addition for addition in self._replay.additions() if isinstance(addition, UserMessage)]


_RULES_BLOCK = compile_late(
    r'\n?<context name="rules">\n(?P<explanation>[^\n]*)\n(?P<rules>.*)\n</context>\Z', re.DOTALL
)
_RULES_OF_FILE = compile_late(r'<rules file="(?P<file>[^"]*)"[^>]*>\n.*?\n</rules>', re.DOTALL)


def with_current_rules(
    recorded: Sequence[UserMessage | SystemReminder],
    live: Sequence[SystemReminder],
    workspace: str,
    as_recorded: Change,
) -> list[UserMessage | SystemReminder]:
    """Return the recorded additions with the rules of the workspace as `live`, the reminders of now, have them.

    `as_recorded` puts the folder of the recording for the folder of now.
    """
    now = [reminder.model_copy(update={"text": as_recorded(reminder.text)}) for reminder in live]
    starts = [reminder for reminder in now if reminder.cause == PROJECT_CONTEXT]
    additions: list[UserMessage | SystemReminder] = []
    for addition in recorded:
        cause = addition.cause if isinstance(addition, SystemReminder) else ""
        if isinstance(addition, SystemReminder) and cause == PROJECT_CONTEXT and starts:
            text = _with_rules(addition.text, starts[0].text, workspace)
            additions.append(addition.model_copy(update={"text": text}))
        elif not cause.startswith(f"{MEMORY}{workspace}/"):
            additions.append(addition)
    return [*additions, *(reminder for reminder in now if reminder.cause.startswith(MEMORY))]


def _with_rules(recorded: str, live: str, workspace: str) -> str:
    before, now = _RULES_BLOCK.search(recorded), _RULES_BLOCK.search(live)
    kept = [text for file, text in _rules(before) if not file.startswith(f"{workspace}/")]
    of_now = [text for file, text in _rules(now) if file.startswith(f"{workspace}/")]
    start = _RULES_BLOCK.sub("", recorded)
    if not kept and not of_now:
        return start
    explanation = (now or before or {"explanation": ""})["explanation"]
    rules = "\n".join([*kept, *of_now])
    return f'{start}\n<context name="rules">\n{explanation}\n{rules}\n</context>'


def _rules(block: re.Match[str] | None) -> Iterator[tuple[str, str]]:
    for match in _RULES_OF_FILE.finditer(block["rules"]) if block else ():
        yield match["file"], match.group()
