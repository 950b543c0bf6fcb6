"""Plays a recorded cassette: the interceptor that replaces the model and, if nothing is run, the tools.

The rule: a request that does not fit what was recorded gets no reply. Which of the two differ first, and where, is the
result of the replay then.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio

from panpan.capabilities.cassettes.recorded_reply import Change, as_final, changed_json, changed_reply
from panpan.capabilities.cassettes.recorded_session import (
    ModelChanged,
    RecordedCompaction,
    RecordedRequest,
    RecordedSession,
    RecordedTurn,
    relocation,
)
from panpan.capabilities.cassettes.replay_parts import (
    ComparedModel,
    LiveHook,
    ReplayedHook,
    ReplayedModel,
    recorded_tool,
    replayed_tool,
    replaying_askers,
    with_current_rules,
)
from panpan.capabilities.cassettes.requests import (
    Difference,
    Divergence,
    canonical_request,
    first_difference,
    outline,
    plain,
)
from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.errors import CassetteError
from panpan.models.provider_kind import known_profiles
from panpan.permissions.rules.rules import CALL_TOOL, SEARCH_TOOL, SERVER_PREFIX, SKILL_TOOL
from panpan.session.context import SessionContext
from panpan.session.frontend import Askers, SessionInterceptor
from panpan.session.setup import SessionSetup
from panpan.system.text.redact import Redactor
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest, Provider
from panpan.types.messages import (
    LAST_REPLY,
    NOTICE,
    RECORD,
    SUMMARY,
    WORDS,
    AssistantMessage,
    Compaction,
    SystemReminder,
    UserMessage,
)

if TYPE_CHECKING:
    from panpan.models.factory import ResolvedModel


_OF_COMPACTION = frozenset({NOTICE, WORDS, RECORD, SUMMARY, LAST_REPLY})


def recorded_pins(compactions: Iterable[Compaction]) -> Iterator[Sequence[SystemReminder]]:
    """Yield the reminders that were pinned, compaction for compaction.

    They are not where output alone leaves, or a compaction is taken back: then older reminders stay, or come back.
    """
    seen: set[str] = set()
    for compaction in compactions:
        new = [reminder for reminder in compaction.added if reminder.uuid not in seen]
        seen.update(reminder.uuid for reminder in new)
        if compaction.trigger != "undo" and any(reminder.cause == NOTICE for reminder in new):
            yield [reminder for reminder in new if reminder.cause not in _OF_COMPACTION]


def with_options_of(setup: SessionSetup, model: ModelChanged) -> SessionSetup:
    """Return a setup whose model is given what another one was given."""
    settings = setup.loaded.settings
    compaction = settings.compaction.model_copy(update={"window_tokens": model.window_tokens})
    loaded = replace(setup.loaded, settings=settings.model_copy(update={"compaction": compaction}))
    return with_profile(replace(setup, loaded=loaded), model.profile)


def with_profile(setup: SessionSetup, name: str) -> SessionSetup:
    """Return a setup whose model is given as much of panpan as the profile of this name says.

    Raises:
        CassetteError: There is none of this name.
    """
    if setup.profile.name == name:
        return setup
    for profile in known_profiles(setup.kinds):
        if profile.name == name:
            return replace(setup, model=replace(setup.model, profile=profile))
    raise CassetteError(f"the recorded model was given what the profile {name} says, and there is none of this name")


Mode: TypeAlias = Literal["strict", "semantic", "live-tools"]
"""Strictness of a replay: every byte of the requests; the calls and whether they failed; the same with real tools."""


_OF_USERS = frozenset({SKILL_TOOL, SEARCH_TOOL, CALL_TOOL})
"""Tools that there are only with skills or servers of the user; a replay takes them from the recording."""
_COMPARED_OPTIONS = ("thinking_budget_tokens", "effort", "temperature", "top_p", "top_k")
"""Options that the user chose and that must be equal. The longest reply is not one: it follows the table of models."""


async def no_wait() -> None:
    """Wait for nothing."""


class Replay(SessionInterceptor):
    """Plays one recorded session.

    In the mode semantic, `asked` has to make the recorded calls; without it the cassette answers. `wait` is awaited
    before each answer of a tool that comes from the cassette.
    """

    def __init__(
        self,
        recorded: RecordedSession,
        mode: Mode,
        *,
        uses_current_rules: bool = False,
        asked: "ResolvedModel | None" = None,
        wait: Callable[[], Awaitable[None]] = no_wait,
    ) -> None:
        self.recorded = recorded
        self.mode = mode
        self.divergence: Divergence | None = None
        self.other_texts: list[Divergence] = []
        """Results of real tools that differ from the recorded ones."""
        self._interrupt: Callable[[], object] = lambda: None
        self.played = 0
        """Number of requests answered."""
        self._uses_current_rules = uses_current_rules
        self._asked = asked
        self._model: ModelChanged | None = None
        self._results = dict(recorded.results)
        self._pins = iter(recorded_pins(recorded.made_shorter))
        self._wait = wait
        self._turn: RecordedTurn | RecordedCompaction | None = None
        self._next = 0  # index of the next request of the turn
        self._counts: Iterator[int | None] = iter(())
        self._given: set[int] = set()
        self._to_here: Change = lambda text: text
        self._as_recorded: Change = lambda text: text

    @property
    def plays_back(self) -> bool:
        return self.mode != "live-tools"

    def askers(self, askers: Askers) -> Askers:
        return replaying_askers(self.recorded)

    def setup(self, setup: SessionSetup) -> SessionSetup:
        if self._asked is not None:
            return replace(setup, model=self._asked)
        return (
            with_profile(setup, self.recorded.header.profile)
            if self._model is None
            else with_options_of(setup, self._model)
        )

    def provider(self, provider: Provider) -> Provider:
        return ComparedModel(provider, self) if self._asked is not None else ReplayedModel(self)

    def offered(self, tools: Sequence[Tool[Any]]) -> Sequence[Tool[Any]]:
        """Return the tools with those of the recording that depend on what its user has, where they were."""
        first = next((request for turn in self.recorded.turns for request in turn.requests), None)
        recorded = first.canonical["tools"] if first is not None else ()
        every, place = list(tools), 0
        for one in recorded if self.mode != "live-tools" else ():
            names = [tool.name for tool in every]
            if one["name"] in names:
                place = names.index(one["name"]) + 1
            elif one["name"] in _OF_USERS or one["name"].startswith(SERVER_PREFIX):
                every.insert(place, recorded_tool(one))
                place += 1
        return every

    def tools(self, tools: Mapping[str, Tool[Any]]) -> Mapping[str, Tool[Any]]:
        is_live = self.mode == "live-tools"  # a subagent's model is not in the cassette
        return {
            name: tool if is_live and not tool.starts_agents else replayed_tool(tool.load(), self._results, self._wait)
            for name, tool in tools.items()
        }

    def hooks(self, hooks: Sequence[Hook]) -> Sequence[Hook]:
        if self.mode == "live-tools":
            return (*hooks, LiveHook(self))
        live: list[SystemReminder] = []
        return [ReplayedHook(hook, self, live, is_last=hook is hooks[-1]) for hook in hooks]

    def capability(self, session: SessionContext) -> None:
        """Learn where the session works."""
        workspace, here = self.recorded.header.workspace, str(session.setup.cwd)
        to_recorded = relocation(here, workspace)
        redact = Redactor().redact
        if self.mode == "live-tools":  # otherwise nothing runs, and the paths stay those of the recording
            self._to_here = relocation(workspace, here)
        self._as_recorded = lambda text: to_recorded(redact(text))

    def interrupt_with(self, interrupt: Callable[[], object]) -> None:
        """Let the session that plays this end a turn where the user ended it."""
        self._interrupt = interrupt

    def interrupt(self) -> None:
        """End the turn."""
        self._interrupt()

    def begin(self, turn: RecordedTurn) -> UserMessage | None:
        """Let the next turn be `turn`, and return its prompt; None: the model is woken."""
        self.expect(turn)
        return None if turn.prompt is None else self.here(turn.prompt)

    def expect(self, step: RecordedTurn | RecordedCompaction) -> None:
        """Let the next requests be those of a step."""
        self._turn, self._next, self._counts = step, 0, iter(step.counts)

    def change_model(self, step: ModelChanged) -> bool:
        """Let the next model be another one, and return whether there is one to change to."""
        self._model = step
        return self._asked is None

    def here(self, message: UserMessage) -> UserMessage:
        """Return a message of the user's with the paths of this folder."""
        said = changed_json(message.model_dump(mode="json"), self._to_here)
        return UserMessage.model_validate(said)

    def was_interrupted_in(self, tool_use_id: str) -> bool:
        """Return True if the user interrupted the turn before this call had done its work."""
        result = self.recorded.results.get(tool_use_id)
        is_last = self._turn is not None and self._turn.is_interrupted and self.is_turn_over
        return is_last and (result is None or result.is_error)

    @property
    def is_turn_over(self) -> bool:
        """True if no more requests of the turn are recorded."""
        return self._turn is None or self._next >= len(self._turn.requests)

    def additions(self, live: Sequence[SystemReminder] = ()) -> Sequence[UserMessage | SystemReminder]:
        """Return the messages that were added before the next request, once."""
        if self._turn is None or self.is_turn_over:
            return ()
        request = self._turn.requests[self._next]
        if request.number in self._given:
            return ()
        self._given.add(request.number)
        if not self._uses_current_rules:
            return request.additions
        return with_current_rules(request.additions, live, self.recorded.header.workspace, self._as_recorded)

    def pinned_reminders(self) -> Sequence[SystemReminder]:
        """Return the reminders that were pinned in the next compaction."""
        return next(self._pins, ())

    def answer(self, request: ModelRequest, options: ModelOptions) -> RecordedRequest:
        """Return the recorded request that this is, if it is as it was.

        Raises:
            CassetteError: It differs, or no more was recorded.
        """
        turn = self._turn
        if turn is None or self._next >= len(turn.requests):
            why = self.recorded.end or ("" if turn is None or turn.is_whole else "the recording was cut off there")
            raise CassetteError(f"no more requests of this turn are recorded{why and f': {why}'}", provider="cassette")
        recorded = turn.requests[self._next]
        now = changed_json(plain(canonical_request(request)), self._as_recorded)
        if difference := self._difference(recorded, now, options):
            self.divergence = Divergence(recorded.number, difference)
            raise CassetteError(f"{self.divergence.sentence}\n{difference.diff}", provider="cassette")
        if self.mode == "live-tools":
            self._note_other_texts(recorded, now)
        self._next += 1
        self.played += 1
        return recorded

    async def events(self, recorded: RecordedRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the recorded reply; raise `ProviderError` if the request failed when it was recorded."""
        reply = changed_reply(recorded.reply, self._to_here)
        for _, event in reply.events:
            yield event
        if reply.failure is not None:
            raise as_final(reply.failure)
        if reply.is_cut_off:
            if self._turn is not None and not self._turn.is_whole:
                raise CassetteError("the recording was cut off in this reply", provider="cassette")
            self.interrupt()  # as the user did in the recording
            await anyio.sleep_forever()

    def count(self) -> int | None:
        """Return the next token count that the provider returned when it was recorded."""
        return next(self._counts, None)

    def check_reply(self, recorded: RecordedRequest, reply: AssistantMessage) -> None:
        """Accept a reply of another model in place of the recorded one if it makes the same calls.

        Raises:
            CassetteError: It makes others, or the recorded one is not whole.
        """
        expected = recorded.reply.message
        if expected is None:
            raise CassetteError("the recorded reply is not whole, so that nothing can be compared", provider="cassette")
        if difference := first_difference({"calls": _calls(expected)}, {"calls": _calls(reply)}):
            self.divergence = Divergence(recorded.number, difference, f"the reply to request {recorded.number}")
            raise CassetteError(f"{self.divergence.sentence}\n{difference.diff}", provider="cassette")
        for before, now in zip(expected.tool_uses, reply.tool_uses, strict=True):
            if before.id in self.recorded.results:
                self._results[now.id] = self.recorded.results[before.id]

    def _difference(
        self, recorded: RecordedRequest, now: Mapping[str, Any], options: ModelOptions
    ) -> Difference | None:
        before = recorded.canonical
        if self.mode != "strict":
            return first_difference({"steps": outline(before["messages"])}, {"steps": outline(now["messages"])})
        names = [name for name in _COMPARED_OPTIONS if name in recorded.options]
        return first_difference(
            {**before, "options": {name: recorded.options[name] for name in names}},
            {**now, "options": {name: getattr(options, name) for name in names}},
        )

    def _note_other_texts(self, recorded: RecordedRequest, now: Mapping[str, Any]) -> None:
        before = {
            message["tool_use_id"]: message
            for message in recorded.canonical["messages"]
            if message["role"] == "tool_result"
        }
        seen = {other.what for other in self.other_texts}
        for message in now["messages"]:
            if message["role"] != "tool_result" or (id_ := message["tool_use_id"]) not in before:
                continue
            what = f"the result of the call {id_}"
            if what not in seen and (difference := first_difference(before[id_]["content"], message["content"])):
                self.other_texts.append(Divergence(recorded.number, difference, what))


def _calls(reply: AssistantMessage) -> list[dict[str, Any]]:
    return [{"name": use.name, "input": plain(use.input)} for use in reply.tool_uses]
