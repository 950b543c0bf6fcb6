"""Turns that clients asked for: each runs a session of its own, also between two requests of its client.

The rule: a turn belongs to one call. It ends when nobody waits for it any more, and a question that nobody answers is a
refusal.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from secrets import token_urlsafe
from time import perf_counter
from typing import Any

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup

from panpan.app import opened_session
from panpan.cli_kit.failures import report_failure
from panpan.core.background import Background
from panpan.errors import PanpanError, ToolError
from panpan.faces.headless.face import Outcome, TurnSummary, outcome_of_end, outcome_of_error
from panpan.faces.headless.output_formats import result_line
from panpan.faces.mcp_server.forms import (
    Filled,
    Form,
    permission_answer,
    permission_form,
    questions_answers,
    questions_form,
)
from panpan.faces.turn_text import ToolLines
from panpan.session.frontend import Askers, Frontend, SessionConfig
from panpan.session.session import Session
from panpan.types.dataclass import dataclass
from panpan.types.events import TurnEnded
from panpan.types.messages import UserMessage
from panpan.types.permission import PermissionAnswer, PermissionQuestion, UserAnswer, UserQuestion

MAX_TURNS = 8
"""Most turns at the same time, with those that wait for an answer."""
AWAY_S = 60.0
"""Seconds that a client has to come back before its turn may have to make room for another one."""
_END_S = 20.0
"""Seconds that a turn has to end once it is not wanted any more; panpan's own limits for that are shorter."""
_MAX_LINES = 200
_MAX_LINE_CHARS = 300


class Question:
    """A form that waits for its answer."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.filled = Filled()
        self.closed = anyio.Event()
        """Set when it is answered, or withdrawn."""

    def answer(self, filled: Filled) -> None:
        """Take the answer; only the first counts."""
        if not self.closed.is_set():
            self.filled = filled
            self.closed.set()


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of a turn."""

    text: str
    is_error: bool
    result: Mapping[str, Any] | None = None
    """The result object of `panpan -p -f json`; None if no session was opened."""


def unexpected(error: Exception) -> str:
    """Return what a client is told of a bug in panpan; the report is on standard error."""
    return f"panpan failed with an unexpected {type(error).__name__}; standard error of the server says more"


class Turn:
    """One turn, and what its caller has to know of it.

    Args:
        config: The session that it runs in.
        prompt: The prompt. A slash command in it is plain text, since some of them approve things.
        answer_s: Seconds that the client has to answer a question; None if it can put none to a person.
        warn: Prints one line on standard error.
    """

    def __init__(
        self, config: SessionConfig, prompt: str, *, answer_s: float | None, warn: Callable[[str], None]
    ) -> None:
        self.news = anyio.Event()
        """Set when there is a line, a question or the end; then there is another."""
        self.lines: deque[str] = deque(maxlen=_MAX_LINES)
        """Lines of progress that the caller has not been told yet."""
        self.question: Question | None = None
        self.end: TurnEnd | None = None
        self.is_held = False
        """True while no request of the client is open."""
        self.held_at = 0.0
        """Time since when that is so."""
        self._config = config
        self._prompt = prompt
        self._warn = warn
        self._answer_s = answer_s
        self._scope = CancelScope()
        self._over = anyio.Event()
        self._asking = anyio.Lock()

    async def run(self) -> None:
        """Run it; never raises."""
        try:
            with self._scope:
                self.end = await self._turn()
        except PanpanError as error:
            self.end = TurnEnd(str(error), is_error=True)
        except Exception as error:
            report_failure(error)
            self.end = TurnEnd(unexpected(error), is_error=True)
        finally:
            self.end = self.end or TurnEnd("interrupted", is_error=True)
            self._over.set()
            self._tell()

    def give_up(self) -> None:
        """Let it end, since nobody waits for it any more."""
        self._scope.cancel("nobody waits for the turn any more")

    async def cancel(self) -> None:
        """End it, and wait until nothing of it runs."""
        self.give_up()
        with anyio.move_on_after(_END_S, shield=True):
            await self._over.wait()

    async def _turn(self) -> TurnEnd:
        frontend = Frontend(self._askers(), warn=self._warn)
        async with opened_session(self._config, frontend) as session:
            if session.info.cwd != self._config.cwd:
                raise ToolError("the folder was replaced by a link meanwhile; name the folder itself")
            if (tasks := session.find(Background)) is not None:
                tasks.keep_at_exit(keeps=False)
            return await self._submit(session)

    def _askers(self) -> Askers:
        return Askers() if self._answer_s is None else Askers(self._ask_permission, self._ask_user)

    async def _submit(self, session: Session) -> TurnEnd:
        summary, lines, outcome = TurnSummary(), ToolLines(), Outcome()
        before, started_at = session.budget.spent, perf_counter()
        try:
            async with aclosing(session.submit(UserMessage.of(self._prompt))) as events:
                async for event in events:
                    summary.follow(event)
                    self._say(lines.lines(event))
                    if isinstance(event, TurnEnded):
                        outcome = outcome_of_end(event)
        except PanpanError as error:
            outcome = outcome_of_error(error)
            summary.note_files(session.turn_files)
        summary.note_spent(session.budget.spent.since(before))
        result = result_line(session.info.id, summary, outcome, perf_counter() - started_at)
        text = "\n\n".join(filter(None, (summary.answer, outcome.error)))
        return TurnEnd(text, is_error=bool(outcome.error), result=result)

    def _say(self, lines: Sequence[str]) -> None:
        self.lines += [line.strip()[:_MAX_LINE_CHARS] for line in lines]
        if lines:
            self._tell()

    def _tell(self) -> None:
        news, self.news = self.news, anyio.Event()
        news.set()

    async def _ask_permission(self, question: PermissionQuestion) -> PermissionAnswer:
        form = permission_form(question, self._config.cwd)
        return permission_answer(question, None if form is None else await self._ask(form))

    async def _ask_user(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        return questions_answers(questions, await self._ask(questions_form(questions)))

    async def _ask(self, form: Form) -> Filled:
        """Put a form to the client, one after the other."""
        async with self._asking:
            self.question = question = Question(form)
            self._tell()
            try:
                with anyio.move_on_after(self._answer_s):
                    await question.closed.wait()
            finally:
                question.answer(Filled())
                self.question = None
        if self.is_held:  # the client has not come back, and nobody would get the result
            self._scope.cancel("the client has not answered")
        return question.filled


class Turns:
    """The turns that run."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._running: set[Turn] = set()
        self._held: dict[str, tuple[Turn, Question]] = {}
        """Turns whose client is to come back with an answer, by the key that it has to say then, once."""

    def start(self, turn: Turn) -> None:
        """Run a turn. Where too many run, the one whose client has been away longest makes room, after a minute.

        Raises:
            ToolError: Too many run.
        """
        key = next(iter(self._held), None)
        if len(self._running) >= MAX_TURNS and key is not None:
            away, _ = self._held[key]
            if anyio.current_time() - away.held_at >= AWAY_S:
                del self._held[key]
                away.give_up()
                self._running.discard(away)
        if len(self._running) >= MAX_TURNS:
            raise ToolError(f"{MAX_TURNS} turns run already; wait until one of them is over")
        self._running.add(turn)
        self._group.start_soon(self._run, turn)

    async def _run(self, turn: Turn) -> None:
        try:
            await turn.run()
        finally:
            self._running.discard(turn)
            self._held = {key: held for key, held in self._held.items() if held[0] is not turn}

    def hold(self, turn: Turn, question: Question) -> str:
        """Let a turn wait for its client, and return the key that brings it back."""
        key = token_urlsafe(24)
        turn.is_held, turn.held_at = True, anyio.current_time()
        self._held[key] = turn, question
        return key

    def take(self, key: str) -> tuple[Turn, Question] | None:
        """Return the turn that waits for this key, and its question; None if there is none, or it was taken before."""
        if (held := self._held.pop(key, None)) is not None:
            held[0].is_held = False
        return held
