"""A cassette in a test: run prompts, return the result, and fail if a request differs from the recorded one."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path

import anyio

from panpan.api import open_session
from panpan.capabilities.cassettes.recorded_file import Prompts
from panpan.capabilities.cassettes.recorded_session import RecordedTurn, read_session
from panpan.capabilities.cassettes.recording import Recording
from panpan.capabilities.cassettes.replay import Mode, Replay
from panpan.capabilities.cassettes.replay_run import repeat_step, replay_session
from panpan.capabilities.cassettes.requests import transcript_hash
from panpan.config.run_settings import VARIABLES
from panpan.errors import CassetteError, ConfigError
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Message


class CassetteMismatchError(AssertionError):
    """A request differs from the recorded one; the text names it, and the first field that differs."""


@dataclass(frozen=True, slots=True)
class CassetteRun:
    """The result of running prompts."""

    messages: Sequence[Message]
    """The whole conversation."""

    @property
    def text(self) -> str:
        """Text of the model's last reply."""
        return next((one.text for one in reversed(self.messages) if isinstance(one, AssistantMessage)), "")

    @property
    def tool_calls(self) -> Sequence[ToolUseBlock]:
        """All calls of tools, in order."""
        return [use for one in self.messages if isinstance(one, AssistantMessage) for use in one.tool_uses]

    @property
    def transcript(self) -> str:
        """Hash of the conversation; equal for equal messages."""
        return transcript_hash(self.messages)


class Cassette:
    """One conversation, recorded or to be recorded.

    Args:
        path: The file.
        workspace: Workspace of the session; fill it before `run`.
        mode: Parts that must equal the recorded ones, as for `panpan replay`.
        uses_current_rules: True to use the rules files of the workspace as they are now, so that a changed one is
            noticed.
        records_missing: True to record if there is no file.
        model: Model for the recording.
    """

    def __init__(
        self,
        path: Path,
        workspace: Path,
        *,
        mode: Mode = "strict",
        uses_current_rules: bool = True,
        records_missing: bool = False,
        model: str | None = None,
    ) -> None:
        self.path = path
        self.workspace = workspace
        self._mode = mode
        self._uses_current_rules = uses_current_rules
        self._records_missing = records_missing
        self._model = model

    def run(
        self,
        *prompts: str,
        settings: Mapping[str, object] | None = None,
        system_prompt: str | None = None,
        append_system_prompt: str | None = None,
    ) -> CassetteRun:
        """Run the prompts one after the other in a new session, and return the result.

        Args:
            prompts: One or more prompts.
            settings: Settings by dotted key, such as `{"permission.mode": "acceptEdits"}`; those of the user are
                ignored.
            system_prompt: System prompt in place of panpan's own.
            append_system_prompt: Text to append to the system prompt.

        Raises:
            CassetteMismatchError: A request differs from the recorded one.
            ConfigError: There is no cassette, or none can be recorded.
        """
        __tracebackhide__ = True
        say_all = partial(
            self.arun,
            *prompts,
            settings=settings,
            system_prompt=system_prompt,
            append_system_prompt=append_system_prompt,
        )
        return anyio.run(say_all)

    async def arun(
        self,
        *prompts: str,
        settings: Mapping[str, object] | None = None,
        system_prompt: str | None = None,
        append_system_prompt: str | None = None,
    ) -> CassetteRun:
        """Do what `run` does, in a test that is a coroutine."""
        __tracebackhide__ = True
        own_prompts = Prompts(system_prompt, append_system_prompt)
        if self.path.exists():
            return await self._played(prompts, settings or {}, own_prompts)
        if not self._records_missing:
            raise ConfigError(f"there is no cassette {self.path}; {_HOW_TO_RECORD}")
        return await self._recorded(prompts, settings or {}, own_prompts)

    async def _played(
        self, prompts: Sequence[str], settings: Mapping[str, object], own_prompts: Prompts
    ) -> CassetteRun:
        __tracebackhide__ = True
        recorded = read_session(self.path)
        turns = sum(turn.prompt is not None for turn in recorded.turns)
        if len(prompts) > turns:
            raise CassetteMismatchError(
                f"{self.path} has {turns} turns, and there are {len(prompts)} prompts; {_AGAIN}"
            )
        replay = Replay(recorded, self._mode, uses_current_rules=self._uses_current_rules)
        opening = replay_session(
            replay, open_session, self.workspace, env=os.environ, overrides=settings, prompts=own_prompts
        )
        async with opening as session:
            left = iter(prompts)
            for step in recorded.steps:
                if not isinstance(step, RecordedTurn):
                    await repeat_step(replay, session, step)
                    continue
                prompt = None if step.prompt is None else next(left, None)
                if prompt is None and step.prompt is not None:
                    break
                replay.begin(step)
                try:
                    await _say(session, prompt)
                except CassetteError as error:
                    text = clean_for_terminal(f"{self.path}: {error}\n({_AGAIN})")
                    raise CassetteMismatchError(text) from None  # frames of the loop do not help to test prompts
                if not replay.is_turn_over:
                    raise CassetteMismatchError(f"{self.path}: the turn ended before all its requests; {_AGAIN}")
            return CassetteRun(tuple(session.conversation.messages))

    async def _recorded(
        self, prompts: Sequence[str], settings: Mapping[str, object], own_prompts: Prompts
    ) -> CassetteRun:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # of this process only: tests in parallel may want the same cassette
        unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}.unfinished")
        unfinished.unlink(missing_ok=True)
        try:
            run = await self._said_to_a_model(unfinished, prompts, settings, own_prompts)
            if not self.path.exists():  # otherwise another test was first
                unfinished.rename(self.path)  # only a complete one counts as a cassette
        finally:
            unfinished.unlink(missing_ok=True)
        return run

    async def _said_to_a_model(
        self, into: Path, prompts: Sequence[str], settings: Mapping[str, object], own_prompts: Prompts
    ) -> CassetteRun:
        """Run the prompts with a model, and record the session."""
        problems: list[str] = []
        with tempfile.TemporaryDirectory(prefix="panpan-record-", ignore_cleanup_errors=True) as home:
            async with open_session(
                self.workspace,
                overrides={**settings, **({"model": self._model} if self._model else {}), "snapshots.enabled": False},
                system_prompt=own_prompts.system_prompt,
                append_system_prompt=own_prompts.append_system_prompt,
                env={**_environment(), "PANPAN_HOME": home},
                interceptor=Recording(into, warn=problems.append),
            ) as session:
                for prompt in prompts:
                    await _say(session, prompt)
                run = CassetteRun(tuple(session.conversation.messages))
        if problems:
            raise ConfigError("; ".join(problems))
        return run


_WHERE = ("PANPAN_PROVIDER", "PANPAN_BASE_URL", "PANPAN_API_KEY")
_AGAIN = "remove the file to record it again with --panpan-record"
_HOW_TO_RECORD = "pytest --panpan-record --panpan-model NAME records it"


def _environment() -> dict[str, str]:
    """Return the environment without panpan's settings, except those for the provider, its address and its key."""
    return {name: value for name, value in os.environ.items() if name not in VARIABLES or name in _WHERE}


async def _say(session: Session, prompt: str | None) -> None:
    """Run a turn; None to wake the model without a prompt."""
    async with aclosing(session.wake() if prompt is None else session.submit(prompt)) as events:
        async for _ in events:
            pass
