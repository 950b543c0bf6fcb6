"""Records a session: the interceptor that writes a cassette of all that crosses the session's borders.

Records of the log are written as the log has them. Between them are the requests, the streams of the replies with their
times, and questions with their answers. Secrets are redacted before anything is written.
"""

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from panpan.capabilities.cassettes.recorded_file import CassetteWriter, header_line
from panpan.capabilities.cassettes.recorded_reply import RecordedReply, changed_json, changed_reply
from panpan.capabilities.cassettes.requests import RequestWriter
from panpan.config.known_secrets import known_secrets
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook
from panpan.errors import ProviderError
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.context import SessionContext
from panpan.session.frontend import Askers, SessionInterceptor
from panpan.session.log.record_kinds import CompactionRecord
from panpan.session.log.records import message_of, record_of
from panpan.session.setup import SessionSetup
from panpan.system.files.canonical import canonical_path
from panpan.system.text.redact import Redactor
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest, Provider
from panpan.types.messages import AssistantMessage, Message, UserMessage
from panpan.types.permission import (
    Asker,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanApproved,
    PlanAsker,
    PlanEdited,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserAsker,
    UserQuestion,
    is_permission_mode,
)

Note: TypeAlias = Callable[[Mapping[str, Any]], None]


def recording_askers(askers: Askers, note: Note) -> Askers:
    """Return the same askers, whose answers are written down."""
    permission, user, plan = askers.permission, askers.user, askers.plan
    return Askers(
        None if permission is None else _recording_permission(permission, note),
        None if user is None else _recording_user(user, note),
        None if plan is None else _recording_plan(plan, note),
    )


def _recording_permission(asker: Asker, note: Note) -> Asker:
    async def ask(question: PermissionQuestion) -> PermissionAnswer:
        answer = await asker(question)
        asked = {"toolUseId": question.tool_use_id, "tool": question.tool_name, "title": question.title}
        note({"asked": "permission", **asked, "reason": question.on_one_line, "answer": asdict(answer)})
        return answer

    return ask


def _recording_user(asker: UserAsker, note: Note) -> UserAsker:
    async def ask(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        answers = await asker(questions)
        said = None if answers is None else [{"chosen": list(one.chosen), "text": one.text} for one in answers]
        note({"asked": "user", "questions": [question.question for question in questions], "answer": said})
        return answers

    return ask


def _recording_plan(asker: PlanAsker, note: Note) -> PlanAsker:
    async def ask(proposal: PlanProposal) -> PlanAnswer:
        answer = await asker(proposal)
        note({"asked": "plan", "plan": proposal.text, "answer": {"kind": type(answer).__name__, **asdict(answer)}})
        return answer

    return ask


def is_answer(line: Mapping[str, Any]) -> bool:
    """Return True if a line says what somebody was asked and answered."""
    match line:
        case {"asked": "permission", "toolUseId": str(), "answer": {"is_allowed": bool()}}:
            return True
        case {"asked": "user", "answer": list(answers)}:
            return all(isinstance(one, dict) and isinstance(one.get("chosen"), list) for one in answers)
        case {"asked": "user", "answer": None} | {"asked": "plan", "answer": dict()}:
            return True
        case _:
            return False


def user_answers(said: Any) -> Sequence[UserAnswer] | None:
    """Return the user's recorded answers; None if they declined."""
    if not isinstance(said, list):
        return None
    return [UserAnswer(tuple(map(str, one["chosen"])), str(one.get("text", ""))) for one in said]


def plan_answer(said: Any) -> PlanAnswer:
    """Return the recorded answer to a plan; a no if the line is not clear."""
    match said:
        case {"kind": "PlanApproved", "mode": str(mode)} if is_permission_mode(mode):
            return PlanApproved(mode)
        case {"kind": "PlanEdited", "text": str(text)}:
            return PlanEdited(text)
        case {"kind": "PlanRejected", "comments": str(comments)}:
            return PlanRejected(comments)
        case _:
            return PlanRejected()


_NOT_PLAYED = ("session_start", "prefix", "opened")
"""Records that the requests make needless, or that say nothing of what happens in the session."""


class Recording(SessionInterceptor):
    """Records one session into a file that does not exist yet; `warn` is told why it ended early.

    Raises:
        ConfigError: The file cannot be made.
    """

    def __init__(
        self, path: Path, *, warn: Callable[[str], None] = lambda _: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._writer = CassetteWriter(path, warn)
        self._clock = clock
        self._began_s = clock()
        self._askers = Askers()
        self._redact = Redactor().redact
        self._requests = RequestWriter(self._redacted)
        self._number = 0
        self._is_open = False

    @property
    def own_files(self) -> Sequence[Path]:
        return (canonical_path(self._writer.path),)

    def askers(self, askers: Askers) -> Askers:
        self._askers = askers
        return recording_askers(askers, self._answered)

    def setup(self, setup: SessionSetup) -> SessionSetup:
        if self._is_open:  # the user has chosen another model
            self.mark(
                "cassette_model", model=setup.model.model, profile=setup.profile.name, window=setup.context_window
            )
        return setup

    def provider(self, provider: Provider) -> Provider:
        return _RecordedProvider(provider, self)

    def capability(self, session: SessionContext) -> Capability:
        return _RecordingCapability(session, self)

    def begin(self, session: SessionContext) -> None:
        """Write down what the session begins with, and from then on what its log is told."""
        self._redact = Redactor(known_secrets(session.setup.env, session.settings, session.setup.loaded.keys)).redact
        self._writer.write(changed_json(header_line(session, self._askers), self._redact))
        before = session.opened.before
        for message in before.messages:
            self._note_record(record_of(message))
        for compaction in before.compactions:
            self._note_record(CompactionRecord.of(compaction).as_json())
        self.mark("cassette_opened")
        self._is_open = True
        session.opened.log.listen(self._note_record)

    def end(self) -> None:
        """Write no more."""
        self._writer.close()

    def request(self, request: ModelRequest, options: ModelOptions) -> int:
        """Write a request down and return its number."""
        self._number += 1
        self._write("cassette_request", {"number": self._number, **self._requests.line(request, options)})
        return self._number

    def reply(self, number: int, reply: RecordedReply) -> None:
        """Write down what came of a request."""
        said = changed_reply(reply, self._redact).as_json()
        said["failure"] = changed_json(said["failure"], self._redact)
        self._write("cassette_reply", {"number": number, **said})

    def mark(self, type_: str, **said: Any) -> None:
        """Write down what happened between the requests, such as that a turn began."""
        self._write(type_, said)

    def seconds(self) -> float:
        """Return the time of the recording."""
        return self._clock() - self._began_s

    def _answered(self, answer: Mapping[str, Any]) -> None:
        self._write("cassette_answer", changed_json(answer, self._redact))

    def _redacted(self, text: str) -> str:
        return self._redact(text)

    def _note_record(self, record: Mapping[str, Any]) -> None:
        if record.get("subtype") in _NOT_PLAYED:
            return
        if (message := message_of(record)) is not None:
            self._requests.note(message)
        self._writer.write(changed_json(record, self._redact))

    def _write(self, type_: str, said: Mapping[str, Any]) -> None:
        self._writer.write({"type": type_, "at": round(self.seconds(), 3), **said})


class _RecordedProvider:
    """Implements `Provider` by another one, and writes down what that yields."""

    def __init__(self, inner: Provider, recording: Recording) -> None:
        self.name = inner.name
        self._inner = inner
        self._recording = recording

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        number = self._recording.request(request, options)
        began_s = self._recording.seconds()
        events: list[tuple[float, StreamEvent]] = []
        failure: ProviderError | None = None
        is_written = False
        try:
            async with aclosing(self._inner.stream(request, options)) as stream:
                async for event in stream:
                    events.append((self._recording.seconds() - began_s, event))
                    if isinstance(event, AssistantMessage):  # write before anybody sees it
                        is_written = True
                        self._recording.reply(number, RecordedReply(tuple(events)))
                    yield event
        except ProviderError as error:
            failure = error
            raise
        finally:
            if not is_written:
                self._recording.reply(number, RecordedReply(tuple(events), failure))

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        tokens = await self._inner.count_tokens(request, options)
        self._recording.mark("cassette_count", tokens=tokens)
        return tokens

    async def prepare(self) -> None:
        await self._inner.prepare()

    async def aclose(self) -> None:
        await self._inner.aclose()


class _RecordingCapability(Capability):
    """Records the session as long as it is open. It is the first, so that it sees the prompt before what hooks add."""

    name = "recording"

    def __init__(self, session: SessionContext, recording: Recording) -> None:
        super().__init__(session)
        self._recording = recording

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (_TurnMarks(self._recording),) if agent.is_main else ()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        self._recording.begin(self.session)
        try:
            yield
        finally:
            self._recording.end()


class _TurnMarks(Hook):
    """Writes down where turns begin and end."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._is_interrupted = False
        self._newest: Message | None = None
        """Last message at the end of the previous turn; a prompt if that turn failed."""

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._is_interrupted = False
        newest = conversation.messages[-1] if conversation.messages else None
        has_prompt = isinstance(newest, UserMessage) and newest is not self._newest
        self._recording.mark("cassette_turn", **({} if has_prompt else {"isWoken": True}))
        return ()

    async def interrupted(self, conversation: Conversation) -> None:
        self._is_interrupted = True

    async def turn_ended(self, conversation: Conversation) -> None:
        self._newest = conversation.messages[-1] if conversation.messages else None
        self._recording.mark("cassette_turn_end", isInterrupted=self._is_interrupted)
