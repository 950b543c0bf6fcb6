"""The hooks of one agent: where the loop calls them, and what their answers do.

A no counts in every agent and every face. A yes only answers the question that the user would be asked; it opens
nothing that the user's own yes would not open. A hook that fails is told to the user and the work goes on, unless it
is a guard: then its failure is a no.
"""

import json
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from anyio import create_task_group, sleep

from panpan.capabilities.hooks.actions import Judgement
from panpan.capabilities.hooks.capability import HookRecord
from panpan.capabilities.hooks.configuration import Handler, hooks_of_host
from panpan.capabilities.hooks.contract import MAX_CHARS, STRICTNESS, Answer, Verdict
from panpan.capabilities.hooks.judging import SessionAsker, may_judge
from panpan.capabilities.hooks.running import Said, Server, run_all
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import HookRefusedError
from panpan.permissions.rules.matching import restriction
from panpan.permissions.rules.rules import EDIT_TOOL
from panpan.permissions.subject import subject_of
from panpan.session.agent import Agent
from panpan.session.context import SessionContext
from panpan.session.user_hooks import HookProgress
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.events import Output, PermissionDecided
from panpan.types.messages import AssistantMessage, Compaction, CompactionTrigger, SystemReminder, UserMessage, new_id
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionQuestion, Reason

_NEWEST = 20
"""Messages at the end of a conversation, among which is the one that begins a turn."""
_PATIENCE_S = 3.0
"""Seconds after which the user is told that a hook is waited for."""
_MOST_SHOWN = 1_000
"""Characters of changed arguments that the model is shown."""
MOST_SENT_BACK = 8
"""Times in a row that hooks may send the model back to work."""
_ASKS = "permission_prompt"
_TRIGGERS: Mapping[str, str] = {"overflow": "auto"}
"""Names that hooks know for what began a compaction, where they differ."""
_MAY_REFUSE = frozenset(
    {"PreToolUse", "PermissionRequest", "UserPromptSubmit", "UserPromptExpansion", "PreCompact", "PreModelSwitch"}
    | {"ConfigChange", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult"}
)
"""Events at which the failure of a guard is a no."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Answers of the hooks of one event, put together."""

    verdict: Verdict = ""
    reason: str = ""
    """That of the strictest one, with its place."""
    contexts: Sequence[str] = ()
    stops: str | None = None
    arguments: Mapping[str, Any] | None = None
    """Other arguments for the call, those of the last hook that gave any."""


NOTHING = Outcome()


@contextmanager
def telling(tell: Callable[[HookProgress], None], handler: Handler) -> Generator[Callable[[Answer], None], None, None]:
    """Tell of the beginning and the end of a hook, also if it is cancelled."""
    begun = HookProgress(new_id(), handler.event, handler.title)
    answers: list[Answer] = []
    tell(begun)
    try:
        yield answers.append
    finally:
        answer = answers[0] if answers else Answer()
        outcome: Literal["success", "error", "cancelled"] = "cancelled"
        if answers:
            outcome = "error" if answer.failure else "success"
        said = (answer.reason or answer.context)[:MAX_CHARS]
        tell(replace(begun, outcome=outcome, said=said, failure=answer.failure[:MAX_CHARS]))


RunBeside: TypeAlias = Callable[[Callable[[], Coroutine[Any, Any, object]]], None]
"""Runs something beside the session, until that ends."""


class UserHooks(Hook):
    """Calls the hooks of the user for one agent."""

    def __init__(
        self,
        session: SessionContext,
        agent: Agent,
        handlers: Sequence[Handler],
        run_beside: RunBeside,
        tell: Callable[[HookProgress], None],
    ) -> None:
        self._watch = partial(telling, tell)
        self._run_beside = run_beside
        self._ask_session = SessionAsker(session, agent)
        self._session = session
        self._agent = agent
        self._cwd = agent.context.paths.cwd
        self._configured = handlers
        self._host = session.config.options.get("host")
        self.held: Sequence[Handler] = ()
        """Hooks that hold until the turn ends."""
        self._waiting: dict[str, Sequence[Handler]] = {}
        """Hooks that wait for the turn of a message, by its id."""
        self._done: set[Handler] = set()
        """Hooks that run once, and have."""
        self._judged: dict[str, tuple[Mapping[str, Any], Outcome]] = {}
        """Arguments that were judged, and the answers, of calls that did not end yet, by id."""
        self._stops: str | None = None
        """Reason that a hook gave to end the turn."""
        self._sent_back = 0
        self._at_start: list[SystemReminder] = []
        """Words for the model when the session has begun."""
        self._behind: dict[str, Sequence[SystemReminder]] = {}
        """Words behind messages of the user that are not in the conversation yet, by their ids."""
        self.has_begun = False
        """True once a turn of the session, or the work of the subagent, has begun."""

    async def look_at_prompt(self, prompt: UserMessage) -> None:
        """Let hooks look at a message of the user, the first of a session after those of its start.

        Raises:
            HookRefusedError: One says no.
        """
        if not self.has_begun:
            self.has_begun = True
            source = "resume" if self._session.opened.before.messages else "startup"
            begun = await self.fire("SessionStart", source, {"source": source})
            self._at_start += [SystemReminder(text=text, cause="hook:session_start") for text in begun.contexts]
        outcome = await self.fire("UserPromptSubmit", "", {"prompt": prompt.text})
        if outcome.verdict == "deny" or outcome.stops is not None:
            raise HookRefusedError(f"your message was not sent: {outcome.reason or outcome.stops}")
        if outcome.contexts:
            self._behind[prompt.uuid] = [SystemReminder(text=text, cause="hook:prompt") for text in outcome.contexts]

    @property
    def _handlers(self) -> Sequence[Handler]:
        if self._host is not None:
            return (*self._configured, *hooks_of_host(self._host), *self.held)
        return (*self._configured, *self.held) if self.held else self._configured

    def hold(self, handlers: Sequence[Handler], message: str = "") -> None:
        """Let further hooks run until the turn ends, which may be that of a message that is not sent yet."""
        if message:
            self._waiting = {message: handlers}  # of one that is never sent, nothing is left
        else:
            self.held = (*self.held, *(one for one in handlers if one not in self._handlers))

    def let_go(self) -> None:
        """End what holds until a turn ends."""
        self.held = ()
        self._done.clear()

    async def turn_ended(self, conversation: Conversation) -> None:
        self.let_go()

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._judged.clear()
        self._stops, self._sent_back = None, 0
        newest = {message.uuid for message in conversation.messages[-_NEWEST:]}
        for uuid in self._waiting.keys() & newest:
            self.hold(self._waiting.pop(uuid))
        if self.has_begun or self._agent.is_main:  # the message of the user has begun it
            return ()
        self.has_begun = True
        begun = await self.fire("SubagentStart", self._kind, {})
        self._note_end(begun)
        return [SystemReminder(text=text, cause="hook:subagent_start") for text in begun.contexts]

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        additions, self._at_start = self._at_start, []
        if self._behind:
            sent = self._behind.keys() & {message.uuid for message in round_.conversation.messages}
            for uuid in sorted(sent):
                additions += self._behind.pop(uuid)
        return additions

    async def revise_call(self, call: ToolCall) -> Mapping[str, Any] | None:
        return (await self._judge(call)).arguments

    async def _judge(self, call: ToolCall) -> Outcome:
        """Let hooks judge a call, and keep what they say of these arguments."""
        outcome = await self.fire("PreToolUse", call.tool.name, _told_of(call), call)
        self._note_end(outcome)
        self._judged[call.tool_use_id] = (dict(call.input), outcome)
        return outcome

    def _note_end(self, outcome: Outcome) -> None:
        if self._stops is None:
            self._stops = outcome.stops

    async def before_tool(self, call: ToolCall) -> Decision | None:
        judged, outcome = self._judged[call.tool_use_id]
        if judged != call.input:  # it has other arguments now, which no hook has seen
            first, second = outcome, await self._judge(call)
            outcome = first if first.verdict in ("deny", "ask") and second.verdict != "deny" else second
            outcome = replace(
                outcome,
                contexts=(*first.contexts, *second.contexts),
                stops=first.stops or second.stops,
                arguments=call.input,
            )
            self._judged[call.tool_use_id] = (judged, outcome)
        if outcome.verdict == "deny" or outcome.stops is not None:
            return Deny(Reason(outcome.reason or f"a hook ended the turn: {outcome.stops}"))
        if outcome.verdict == "ask":
            return Ask(Reason(outcome.reason))
        return None

    async def answer_question(self, call: ToolCall, question: PermissionQuestion) -> Allow | Deny | None:
        _, judged = self._judged[call.tool_use_id]
        if judged.verdict == "allow":
            return Allow(Reason(judged.reason))
        outcome = await self.fire("PermissionRequest", call.tool.name, _told_of(call), call)
        self._note_end(outcome)
        if outcome.verdict == "deny" or outcome.stops is not None:
            return Deny(Reason(outcome.reason or f"a hook ended the turn: {outcome.stops}"))
        if outcome.verdict == "allow":
            return Allow(Reason(outcome.reason))
        if self._session.frontend.askers.permission is not None and self._has("Notification"):
            told = {
                "message": f"panpan asks about {call.tool.name}: {question.on_one_line}",
                "notification_type": _ASKS,
            }
            self._run_beside(partial(self.fire, "Notification", _ASKS, told))
        return None

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        event = "PostToolUseFailure" if output.is_error else "PostToolUse"
        told = {**_told_of(call), "tool_response": output.text}
        outcome = await self.fire(event, call.tool.name, told, call)
        self._note_end(outcome)
        _, judged = self._judged.pop(call.tool_use_id)
        changed = (
            [] if judged.arguments is None else [f"a hook gave the call other arguments: {_shown(judged.arguments)}"]
        )
        said = [outcome.reason] if outcome.verdict == "deny" else []
        for text in (*changed, *judged.contexts, *said, *outcome.contexts):
            output = output.with_note(text)
        before, self._cwd = self._cwd, self._agent.context.paths.cwd
        if before != self._cwd:
            await self.fire("CwdChanged", "", {"old_cwd": str(before), "new_cwd": str(self._cwd)})
        return output

    async def call_refused(self, decided: PermissionDecided) -> None:
        use = self._agent.conversation.open_tool_uses.get(decided.tool_use_id)
        told = {
            "tool_name": decided.name,
            "tool_input": {} if use is None else dict(use.input),
            "tool_use_id": decided.tool_use_id,
            "reason": decided.reason,
        }
        await self.fire("PermissionDenied", decided.name, told)

    async def compaction_starts(self, trigger: CompactionTrigger, hint: str) -> None:
        told = {"trigger": _TRIGGERS.get(trigger, trigger), "custom_instructions": hint}
        outcome = await self.fire("PreCompact", told["trigger"], told)
        if outcome.verdict == "deny" or outcome.stops is not None:
            raise HookRefusedError(f"the conversation is not compacted: {outcome.reason or outcome.stops}")

    async def compaction_made(self, compaction: Compaction) -> None:
        trigger = _TRIGGERS.get(compaction.trigger, compaction.trigger)
        summary = "\n".join(reminder.text for reminder in compaction.added)
        await self.fire("PostCompact", trigger, {"trigger": trigger, "compact_summary": summary})
        if self._agent.is_main:
            begun = await self.fire("SessionStart", "compact", {"source": "compact"})
            self._at_start += [SystemReminder(text=text, cause="hook:session_start") for text in begun.contexts]

    async def tell(self, event: str, subject: str, told: Mapping[str, Any]) -> None:
        """Run the hooks of an event of the session.

        Raises:
            HookRefusedError: One says no, where a no means something.
        """
        outcome = await self.fire(event, subject, told)
        if event in _MAY_REFUSE and (outcome.verdict == "deny" or outcome.stops is not None):
            raise HookRefusedError(f"a hook refuses it: {outcome.reason or outcome.stops}")

    def _has(self, event: str) -> bool:
        return any(handler.event == event for handler in self._handlers)

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        additions: list[SystemReminder] = []
        if reply.tool_uses:
            calls = [
                {"tool_name": use.name, "tool_input": dict(use.input), "tool_use_id": use.id} for use in reply.tool_uses
            ]
            batch = await self.fire("PostToolBatch", "", {"tool_calls": calls})
            self._note_end(batch)
            said = [batch.reason] if batch.verdict == "deny" else []
            additions += [SystemReminder(text=text, cause="hook:batch") for text in (*said, *batch.contexts)]
        if self._stops is not None:
            raise HookRefusedError(f"a hook ended the turn: {self._stops}")
        is_over = not (reply.tool_uses or round_.conversation.awaits_model)
        if not is_over or round_.is_last or self._sent_back >= MOST_SENT_BACK:
            return additions
        told = {"stop_hook_active": self._sent_back > 0, "last_assistant_message": reply.text}
        event = "Stop" if self._agent.is_main else "SubagentStop"
        outcome = await self.fire(event, self._kind, told)
        if outcome.verdict != "deny" or outcome.stops is not None:
            return ()
        self._sent_back += 1
        return (SystemReminder(text=outcome.reason, cause="hook:stop"),)

    async def fire(self, event: str, subject: str, told: Mapping[str, Any], call: ToolCall | None = None) -> Outcome:
        """Run the hooks of an event and return what they say together.

        Args:
            event: Its name.
            subject: Name that matchers are compared with.
            told: What the hooks are told beside what each is told.
            call: The call that the event is about.
        """
        runs: list[tuple[Handler, Mapping[str, Any]]] = []
        for handler in (one for one in self._handlers if one.event == event):
            if handler.condition is not None and not await _speaks_of(handler, call):
                continue
            if isinstance(handler.action, Judgement) and not may_judge(handler.action):
                continue
            if handler in self._done:
                continue
            if not subject or handler.matches(subject):
                runs.append((handler, told))
            elif call is not None and handler.sees_edits_of(subject):
                runs += [(handler, {**told, **as_edit}) for as_edit in _as_edits(call)]
        if not runs:
            return NOTHING
        self._done |= {handler for handler, _ in runs if handler.once and handler in self.held}
        told_to_all = self._common()
        runs = [(handler, {**told_to_all, **told}) for handler, told in runs]
        if beside := [one for one in runs if one[0].is_async and event != "SessionEnd"]:
            self._run_beside(partial(self._run, beside, call))
        return await self._run([one for one in runs if one not in beside], call)

    async def _run(self, runs: Sequence[tuple[Handler, Mapping[str, Any]]], call: ToolCall | None) -> Outcome:
        context = self._agent.context
        root = self._session.setup.locations.project_root  # not the working directory, which the model chooses
        env = {**context.user_environment, "CLAUDE_PROJECT_DIR": str(root)}
        server = Server(self._session.network, self._session.user_agent, self._session.setup.env)
        marked = context.processes.marked(env)
        async with create_task_group() as tasks:
            tasks.start_soon(self._tell_of_waiting, [handler for handler, _ in runs])
            said = await run_all(
                runs, cwd=root, env=marked, server=server, ask_session=self._ask_session, watch=self._watch
            )
            tasks.cancel_scope.cancel("they have ended")
        return _together([(one.handler, self._settled(one, call)) for one in said])

    async def _tell_of_waiting(self, handlers: Sequence[Handler]) -> None:
        await sleep(_PATIENCE_S)
        places = ", ".join(dict.fromkeys(handler.place for handler in handlers if not handler.is_async))
        if places:
            longest = max(handler.timeout_s for handler in handlers)
            text = f"waiting for a hook of {handlers[0].event} ({places}), for {longest:g} s at most"
            self._session.warn(clean_line(text))

    def _common(self) -> Mapping[str, Any]:
        """Return what every hook is told."""
        agent, log = self._agent, self._session.opened.log.path
        common = {
            "session_id": self._session.id,
            "transcript_path": "" if log is None else str(log),
            "cwd": str(agent.context.paths.cwd),
            "permission_mode": agent.gate.mode,
        }
        return common if agent.is_main else {**common, "agent_id": agent.id, "agent_type": self._kind}

    @property
    def _kind(self) -> str:
        """Kind of the subagent; empty for the main agent."""
        return self._agent.identity.label.partition(": ")[0]

    def _settled(self, said: Said, call: ToolCall | None) -> Answer:
        """Record what a hook said, tell the user what they should know, and return what counts."""
        handler, answer = said.handler, said.answer
        name = f"the hook of {handler.place}"
        shorten = partial(self._agent.context.outputs.shorten, "hook", max_chars=MAX_CHARS)
        answer = replace(answer, reason=shorten(answer.reason), context=shorten(answer.context))
        for text in answer.told:
            self._session.warn(f"{name}: {clean_line(text)}")
        if answer.failure and answer.verdict != "deny" and handler.is_guard and handler.event in _MAY_REFUSE:
            answer = replace(answer, verdict="deny", reason=f"it is a guard, and it failed: {answer.failure}")
        elif answer.failure and answer.verdict not in ("deny", "ask"):
            self._session.warn(f"{name} failed: {clean_line(answer.failure)}; the work goes on without it")
        if handler.event in _MAY_REFUSE and answer.verdict in ("deny", "ask"):
            answer = replace(answer, reason=f"{answer.reason} ({name})")
        elif answer.verdict == "allow":
            answer = replace(answer, reason=f"{name} allows it{f': {answer.reason}' if answer.reason else ''}")
        record = HookRecord(
            event=handler.event,
            hook=handler.title,
            place=handler.place,
            verdict=answer.verdict,
            reason=answer.reason,
            failure=answer.failure,
            tool_use_id="" if call is None else call.tool_use_id,
            duration_ms=said.duration_ms,
        )
        self._agent.transcript.recorder.record_decision(record.as_json())
        return answer


def _told_of(call: ToolCall) -> Mapping[str, Any]:
    return {"tool_name": call.tool.name, "tool_input": dict(call.input), "tool_use_id": call.tool_use_id}


def _as_edits(call: ToolCall) -> Iterator[Mapping[str, Any]]:
    """Yield a call that changes several files as an edit of each, for hooks that know no such tool."""
    for path in (*call.effects.writes, *call.effects.deletes):
        absolute = str(call.context.paths.absolute(path))
        yield {"tool_name": EDIT_TOOL, "tool_input": {**call.input, "file_path": absolute}}


def _shown(arguments: Mapping[str, Any]) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


async def _speaks_of(handler: Handler, call: ToolCall | None) -> bool:
    """Return True if the condition of a hook may be about a call; in doubt it is, since the hook may say no."""
    if call is None or handler.condition is None:
        return True
    return restriction(handler.condition, await subject_of(call)) is not None


def _together(said: Sequence[tuple[Handler, Answer]]) -> Outcome:
    """Return what hooks say together; a hook allows a call of several files only if it allows each of them."""
    silent = {handler for handler, answer in said if answer.verdict != "allow"}
    answers = [
        replace(answer, verdict="") if answer.verdict == "allow" and handler in silent else answer
        for handler, answer in said
    ]
    verdicts = {one.verdict for one in answers}
    verdict: Verdict = next((one for one in STRICTNESS if one in verdicts), "")
    reasons = [one.reason for one in answers if one.verdict == verdict and one.reason]
    stops = next((one.stops for one in answers if one.stops is not None), None)
    arguments = next((one.arguments for one in reversed(answers) if one.arguments is not None), None)
    contexts = tuple(one.context for one in answers if one.context)
    return Outcome(verdict, "; ".join(reasons), contexts, stops, arguments)
