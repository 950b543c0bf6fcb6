"""A replay from its beginning to its report: opens a session on the cassette, says what the user said, and compares."""

import os
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

from panpan.capabilities.cassettes.recorded_file import Prompts
from panpan.capabilities.cassettes.recorded_session import (
    MessageAdded,
    ModelChanged,
    OptionsChanged,
    RecordedCompaction,
    RecordedSession,
    RecordedStep,
    RecordedTurn,
    Rewound,
    write_session,
)
from panpan.capabilities.cassettes.replay import Replay
from panpan.capabilities.cassettes.requests import Divergence, canonical_message, first_difference, transcript_hash
from panpan.config.locations import Locations
from panpan.config.run_settings import VARIABLES
from panpan.config.sources import load_settings
from panpan.errors import CassetteError, ConfigError, NothingToCompactError, PanpanError
from panpan.models.factory import ResolvedModel, resolve_from
from panpan.models.provider_kind import ProviderKinds
from panpan.session.session import Session
from panpan.system.files.folder_tree import temporary_folder, walk
from panpan.types.dataclass import dataclass
from panpan.types.events import Event


@dataclass(slots=True)
class ReplayReport:
    """Result of a replay: what was played, and where it differs from the recording."""

    mode: str
    turns: int = 0
    requests: int = 0
    tool_calls: int = 0
    transcript: str = ""
    """Hash of the conversation; the same for the same messages."""
    divergence: Divergence | None = None
    error: str = ""
    """Reason why the replay ended early although nothing differs; empty if it did not."""
    other_texts: list[Divergence] = field(default_factory=list)
    """Results of real tools that differ from the recorded ones."""

    @property
    def is_same(self) -> bool:
        """True if all was as it was recorded."""
        return self.divergence is None and not self.error

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "mode": self.mode,
            "same": self.is_same,
            "turns": self.turns,
            "requests": self.requests,
            "tool_calls": self.tool_calls,
            "transcript_sha256": self.transcript,
            "divergence": None if self.divergence is None else self.divergence.as_json(),
            "error": self.error or None,
            "other_texts": [other.as_json() for other in self.other_texts],
        }


Opener: TypeAlias = Callable[..., AbstractAsyncContextManager[Session]]
"""`panpan.open_session`, or a replacement for it."""


Show: TypeAlias = Callable[[Event], Awaitable[None]]


async def show_nothing(event: Event) -> None:
    """Show nothing."""


@asynccontextmanager
async def replay_session(
    replay: Replay,
    opener: Opener,
    cwd: Path | None,
    *,
    env: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
    prompts: Prompts | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[Session, None]:
    """Open a session that the cassette answers; nothing of the user's settings counts in it, and its log is not kept.

    Without `cwd` it works in an empty folder; without `prompts` it has those of the recording.

    Raises:
        ConfigError: The session cannot be opened.
    """
    recorded = replay.recorded
    header = recorded.header
    prompts = prompts or header.prompts
    with temporary_folder("panpan-replay-") as scratch:
        workspace = cwd or scratch / "workspace"
        workspace.mkdir(exist_ok=True)
        home = scratch / "home"
        own = {name: value for name, value in env.items() if name not in VARIABLES} | {"PANPAN_HOME": str(home)}
        resume = None
        if recorded.history:
            folder = Locations.find(workspace, own).sessions_folder
            resume = write_session(folder, recorded.history, workspace, compactions=recorded.compactions)
        async with opener(
            workspace,
            overrides=_joined(_settings(replay), overrides or {}),
            resume=resume,
            system_prompt=prompts.system_prompt,
            append_system_prompt=prompts.append_system_prompt,
            is_interactive=header.is_interactive,
            env=own,
            unavailable=header.unavailable,
            interceptor=replay,
            warn=warn,
        ) as session:
            replay.interrupt_with(session.interrupt)
            yield session


def _joined(recorded: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Return settings of both; tools that either takes away are away."""
    denied = [rule for settings in (recorded, own) for rule in _rules(settings.get("permission.deny", ()))]
    return {**recorded, **own, "permission.deny": tuple(denied)}


def _rules(value: object) -> list[str]:
    return [str(rule) for rule in value] if isinstance(value, list | tuple) else []


def _settings(replay: Replay) -> dict[str, object]:
    settings = dict(replay.recorded.header.settings)
    if replay.mode == "live-tools":  # only calls that ran may run: the cassette answers, and grants nothing more
        settings.pop("permission.doom_loop", None)
        if settings.get("permission.mode") in ("bypassPermissions", "acceptEdits", "auto"):
            del settings["permission.mode"]
    return {**settings, "model": _model_of(replay), "snapshots.enabled": False}


def _model_of(replay: Replay) -> str:
    """Return the name by which the session knows its model, whoever answers for it."""
    return f"cassette:{replay.recorded.path.absolute()}"


async def play(
    replay: Replay,
    opening: AbstractAsyncContextManager[Session],
    show: Show = show_nothing,
) -> ReplayReport:
    """Say all that the user said in the recording, and report what came of it; `show` gets each prompt and event."""
    report = ReplayReport(replay.mode)
    async with opening as session:
        for step in replay.recorded.steps:
            report.error = await _play_step(replay, session, step, show)
            if replay.divergence is not None or report.error:
                break
            report.turns += isinstance(step, RecordedTurn)
        messages = session.conversation.messages
    if replay.divergence is not None:
        report.error = ""
    report.divergence, report.other_texts = replay.divergence, replay.other_texts
    report.requests = replay.played
    report.tool_calls = sum(message.type == "tool_result" for message in messages) - sum(
        message.type == "tool_result" for message in replay.recorded.history
    )
    report.transcript = transcript_hash(messages)
    if replay.mode == "strict" and report.is_same:
        report.divergence = _other_transcript(replay.recorded, session)
    return report


async def _play_step(replay: Replay, session: Session, step: RecordedStep, show: Show) -> str:
    """Do one step again, and return why the replay cannot go on; empty where it can."""
    if isinstance(step, RecordedTurn):
        return await _play_turn(replay, session, step, show)
    try:
        await repeat_step(replay, session, step)
    except PanpanError as error:
        return str(error)
    return ""


async def repeat_step(replay: Replay, session: Session, step: RecordedStep) -> None:
    """Do again what the user did between the turns; raise `PanpanError` if it cannot be done."""
    match step:
        case MessageAdded(message=message):
            session.add_message(replay.here(message))
        case Rewound(kept=kept) if kept < len(session.conversation.messages):
            await session.rewind(session.conversation.messages[kept].uuid)
        case RecordedCompaction(is_undo=True):
            await _compact(session, "/compact undo")
        case RecordedCompaction(hint=hint):
            replay.expect(step)
            await _compact(session, f"/compact {hint}".rstrip())
        case ModelChanged() if replay.change_model(step):
            await session.use_model(_model_of(replay))
        case OptionsChanged(effort=effort, thinks=thinks):
            await session.use_effort(effort)
            if thinks is not None and thinks != session.thinks:
                session.use_thinking(is_on=thinks)
        case _:
            pass


async def _compact(session: Session, line: str) -> None:
    """Run the command with which the user made the conversation shorter, or took that back."""
    before = len(session.conversation.compactions)
    result = await session.commands.run(line, session)
    if len(session.conversation.compactions) == before:
        raise NothingToCompactError(result.text)


async def _play_turn(replay: Replay, session: Session, turn: RecordedTurn, show: Show) -> str:
    """Play one turn, and return why the replay cannot go on; empty where it can."""
    prompt = replay.begin(turn)
    if prompt is not None:
        await show(prompt)
    elif replay.mode == "live-tools":
        await _news(session)
    try:
        async with aclosing(session.wake() if prompt is None else session.send(prompt)) as events:
            async for event in events:
                await show(event)
    except CassetteError as error:
        return str(error)
    except PanpanError as error:
        if not replay.is_turn_over:
            return str(error)  # otherwise it failed in the recording, too, if the transcript is the same
    if replay.is_turn_over:
        return ""
    return f"the turn ended after fewer requests than the {len(turn.requests)} that are recorded"


async def _news(session: Session) -> None:
    """Wait for what the model was woken for, as long as something runs that may bring it."""
    for hook in session.agent.hooks:
        if not session.may_be_woken:
            await hook.wait_for_wake()


def _other_transcript(recorded: RecordedSession, session: Session) -> Divergence | None:
    before = [canonical_message(message) for message in recorded.messages]
    now = [canonical_message(message) for message in session.conversation.messages]
    difference = first_difference({"messages": before}, {"messages": now})
    return None if difference is None else Divergence(0, difference, "the conversation in the end")


def rules_of_user(folder: Path, env: Mapping[str, str]) -> dict[str, object]:
    """Return the rules with which the user's own settings withhold something, for a replay with real tools."""
    permission = load_settings(folder, env, {}, Locations.find(folder, env)).settings.permission
    return {"permission.deny": permission.deny, "permission.ask": permission.ask}


def model_of_user(name: str, folder: Path, env: Mapping[str, str], kinds: ProviderKinds) -> ResolvedModel:
    """Return the model that `panpan --model NAME` would ask in a folder, with its key.

    Raises:
        ConfigError: The name leads to no model, or there is no key.
    """
    return resolve_from(load_settings(folder, env, {"model": name}, Locations.find(folder, env)), env, kinds=kinds)


MAX_BYTES = 1_000_000_000


def copy_of(folder: Path, into: Path) -> Path:
    """Copy a folder into another one, under its own name, links as links, and return the copy.

    Raises:
        ConfigError: It is too large, or cannot be read.
    """
    if (size := _size(folder)) > MAX_BYTES:
        raise ConfigError(
            f"{folder} is too large to be copied ({size / 1e9:.1f} GB or more); replay in a smaller folder (--cwd), or "
            "in this one as it is (--in-place)"
        )
    copy = into / folder.name
    try:
        _copy(folder, copy)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be copied: {error}") from error
    return copy


def _copy(folder: Path, copy: Path) -> None:
    """Copy all but pipes, sockets and devices, which a copy would wait for.

    Raises:
        OSError: Something cannot be copied.
    """
    made: list[tuple[str, Path]] = []
    for here, _, names in walk(folder, _raise):
        into = copy / Path(here).relative_to(folder)
        into.mkdir()
        made.append((here, into))
        for name in names:
            place = Path(here, name)
            if place.is_symlink() or place.is_file():
                shutil.copy2(place, into / name, follow_symlinks=False)
    for here, into in reversed(made):  # when nothing more has to be created in it
        shutil.copystat(here, into)


def _raise(problem: OSError) -> None:
    raise problem


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118
            except OSError:
                continue
        if total > MAX_BYTES:
            break
    return total
