"""The lines of a session for the program: those of stream-json, and the state of the session where it reads that."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import anyio

from panpan.core.background import Background
from panpan.faces.headless.face import Outcome, TurnSummary
from panpan.faces.headless.output_formats import StreamJsonFace
from panpan.faces.sdk.channel import LineQueue
from panpan.session.session import Session
from panpan.session.user_hooks import HookProgress, HooksOfUser
from panpan.types.dataclass import dataclass
from panpan.types.events import Event, TaskInfo
from panpan.types.messages import new_id

READS_STATE = "CLAUDE_CODE_SDK_READS_SESSION_STATE"
"""Variable of a program that reads the state of the session, and does not pass it on."""
WANTS_STATE = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"
"""Variable of a program that passes it on, too."""

SessionState: TypeAlias = Literal["running", "requires_action", "idle"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lines that the program wants beside those of every run."""

    partial_messages: bool = False
    replayed_prompts: bool = False
    hook_events: bool = False
    states: bool = False
    are_states_hidden: bool = True
    """True if the program reads the states itself, and does not pass them on."""

    @classmethod
    def of(cls, options: Mapping[str, Any], env: Mapping[str, str]) -> "Wanted":
        """Return what the command line and the environment want."""
        passes_on = env.get(WANTS_STATE, "") not in ("", "0", "false")
        return cls(
            options["include_partial_messages"],
            options["replay_user_messages"],
            options["include_hook_events"],
            passes_on or env.get(READS_STATE, "") not in ("", "0", "false"),
            not passes_on,
        )


class SdkFace(StreamJsonFace):
    """Prints the lines of a session.

    Args:
        out: Lines for standard output.
        session: The session.
        wanted: Lines that the program wants beside those of every run.
    """

    def __init__(self, out: LineQueue, session: Session, wanted: Wanted) -> None:
        super().__init__(
            out,
            session.info,
            has_partial_messages=wanted.partial_messages,
            replays_prompts=wanted.replayed_prompts,
            commands=session.commands.names,
            features=session.capabilities.described(),
        )
        self._lines = out
        self._session = session
        self._wanted = wanted
        self._state: SessionState = "idle"
        self._runs = False
        self._over = anyio.Event()
        if wanted.hook_events and (hooks := session.find(HooksOfUser)) is not None:
            hooks.observe(self._hook_changed)

    async def show(self, event: Event) -> None:
        self._runs = True
        self.tell_state("running")
        await super().show(event)

    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        self._runs = False
        await super().end(summary, outcome, duration_s)
        self._over.set()
        self._over = anyio.Event()
        self._tell_if_idle()

    async def turn_over(self) -> None:
        """Wait until the running turn has its result."""
        await self._over.wait()

    async def task_ended(self, task: TaskInfo) -> None:
        await super().task_ended(task)
        self._tell_if_idle()

    def tell_state(self, state: SessionState) -> None:
        """Tell the program of a change of the state, if it wants to know."""
        if state == self._state or not self._wanted.states:
            return
        self._state = state
        hidden = {"sdk_host_only": True} if self._wanted.are_states_hidden else {}
        self._system("session_state_changed", state=state, **hidden)

    def _tell_if_idle(self) -> None:
        """Tell that nothing is done any more, unless a turn runs, or a subagent whose end will begin one."""
        tasks = self._session.find(Background)
        has_agents = tasks is not None and any(task.kind == "subagent" for task in tasks.running)
        if not (self._runs or has_agents or self._session.may_be_woken):
            self.tell_state("idle")

    def _hook_changed(self, progress: HookProgress) -> None:
        about = {"hook_id": progress.id, "hook_name": progress.hook, "hook_event": progress.event}
        if not progress.outcome:
            self._system("hook_started", **about)
            return
        said = {"output": progress.said, "stdout": "", "stderr": progress.failure, "outcome": progress.outcome}
        self._system("hook_response", **about, **said)

    def _system(self, subtype: str, **fields: Any) -> None:
        common = {"session_id": self._session.info.id, "uuid": new_id()}
        self._lines.put({"type": "system", "subtype": subtype, **fields, **common})
