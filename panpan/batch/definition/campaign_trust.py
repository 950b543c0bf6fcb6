"""Trust in a campaign: its files are code, for they name commands that run and flags that allow calls.

The rule: the user's yes covers the bytes of campaign.toml and of the JSONL files, as they were read for the question.
Trust in a campaign is no trust in a project, even in the same folder: its root is the file and no folder.
"""

import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from math import prod
from typing import TypeAlias

from anyio import to_thread

from panpan.batch.definition.begun_here import is_from_elsewhere, note_begun
from panpan.batch.definition.campaign import CommandLine
from panpan.batch.definition.campaign_file import LoadedCampaign
from panpan.batch.definition.written_tasks import WrittenTask, written_tasks
from panpan.batch.store.wording import value_text
from panpan.config.keys import shown
from panpan.config.trust import Changed, Trusted, TrustState, TrustStore, Untrusted
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.dataclass import dataclass

MAX_LINES = 500
MAX_CHARS = 40_000
"""Most characters of a question; more would scroll away before it is read."""

Ask: TypeAlias = Callable[[str], Awaitable[bool | None]]
"""Asks a question with the answers yes and no; None: the user did not answer."""


@dataclass(frozen=True, slots=True)
class CampaignTrust:
    """The user's trust in a campaign as it was read."""

    loaded: LoadedCampaign

    @property
    def state(self) -> TrustState:
        """The user's decision about exactly these files."""
        return self._store.state(self.loaded.files)

    @property
    def is_from_elsewhere(self) -> bool:
        """True if the campaign has begun, and not by the user in this folder."""
        return is_from_elsewhere(self.loaded.folder, self.loaded.users_home)

    def keep(self, *, is_trusted: bool) -> None:
        """Keep the user's answer about these files, and about what the campaign has left so far.

        Raises:
            ConfigError: It cannot be written.
        """
        self._store.keep(self.loaded.files, is_trusted=is_trusted)
        frozen = self.loaded.folder.frozen_or_none()
        if is_trusted and frozen is not None:
            note_begun(self.loaded.folder, frozen.id, self.loaded.users_home)

    def text(self) -> str:
        """Return lines that say if it is trusted, with the changes since, and all that would run.

        Every character in them is visible.
        """
        return "\n".join(escape_invisible(line) for line in (*self._said(), "It runs:", *_indented(self._runs())))

    def _said(self) -> Iterator[str]:
        file = shown(self.loaded.folder.campaign_file)
        match self.state:
            case Trusted():
                yield f"{file} is trusted."
            case Changed(changes):
                yield f"{file} changed since you trusted it:"
                for change in changes:
                    yield f"  {change.kind}: {shown(change.name)}"
                    yield from (f"    {line}" for line in change.lines)
            case Untrusted(problem=problem):
                reason = f", since {shown(problem)}" if problem else ""
                yield f"{file} is not trusted{reason}. It is code: it names commands and flags."
        if self.is_from_elsewhere:
            yield (
                f"{shown(self.loaded.folder.state)} is from somebody else or another folder. It is code, too: it names "
                "flags and sessions of attempts, and git works on it. To begin without it, move it away."
            )

    def _runs(self) -> Iterator[str]:
        """Yield what runs, and with what it may run; an item may have several lines."""
        campaign = self.loaded.campaign
        attempt, workspace, slurm = campaign.attempt, campaign.workspace, campaign.where.slurm
        tasks = self._written()
        runner = _runner(tasks, has_prompts=campaign.tasks.each is not None)
        yield f"{runner}, {self._times()}, with the flags: {shlex.join(attempt.flags) or 'none'}"
        if campaign.tasks.each is not None:
            yield f"task for each file: {campaign.tasks.each}"
        if campaign.model is not None:
            yield f"model: {campaign.model}"
        commit = f" at {workspace.commit}" if workspace.isolation == "worktree" else ""
        yield f"files: {workspace.isolation} of {self.loaded.source}{commit}"
        yield from (f"link in each of them: {path}" for path in workspace.linked)
        if campaign.home is not None:
            yield f"panpan home, with settings and keys: {self.loaded.home}"
        yield from _command_lines("command", [task.command for task in tasks])
        yield from _command_lines("verify", [campaign.verify, *(task.verify for task in tasks)])
        if workspace.environment != "none":
            yield "uv: makes the environment of the project, with the network"
        if workspace.setup is not None:
            yield f"setup, with the network: {workspace.setup}"
        for name, values in campaign.axes.items():
            yield f"axis {name}: {', '.join(map(value_text, values))}"
        if campaign.where.on is not None:
            yield f"on: {campaign.where.on}"
        yield from (f"slurm directive: {line}" for line in slurm.directives)
        yield from (f"slurm prologue: {line}" for line in slurm.prologue)
        yield f"limits: {', '.join(self._limits()) or 'none'}"

    def _times(self) -> str:
        campaign = self.loaded.campaign
        written = len(written_tasks(campaign, self.loaded.folder.path, self.loaded.jsonl))
        tasks = written * prod(map(len, campaign.axes.values()))
        return f"{tasks * campaign.attempts:,} times (tasks: {tasks:,}, attempts at each: {campaign.attempts:,})"

    def _written(self) -> Sequence[WrittenTask]:
        """Return the tasks that are written one by one."""
        campaign = self.loaded.campaign
        without_files = campaign.tasks.model_copy(update={"each": None})
        own = campaign.model_copy(update={"tasks": without_files})
        return written_tasks(own, self.loaded.folder.path, self.loaded.jsonl)

    def _limits(self) -> Iterator[str]:
        campaign = self.loaded.campaign
        for where, table in (("each attempt", campaign.attempt), ("all", campaign.budget)):
            for name in ("max_usd", "max_tokens", "max_seconds", "usd", "tokens", "seconds", "gpu_seconds"):
                if (limit := getattr(table, name, None)) is not None:
                    yield f"{limit:g} {name.removeprefix('max_')} for {where}"

    @property
    def _store(self) -> TrustStore:
        return TrustStore(self.loaded.users_home)


def _runner(tasks: Sequence[WrittenTask], *, has_prompts: bool) -> str:
    commands = [task.command is not None for task in tasks]
    if not any(commands):
        return "panpan"
    return "panpan or commands" if has_prompts or not all(commands) else "commands"


def _command_lines(name: str, lines: Sequence[CommandLine | None]) -> Iterator[str]:
    known = {(one.command, one.network): one for one in lines if one is not None}
    for one in known.values():
        yield f"{name}{' with the network' if one.network else ''}: {one.command}"


def _indented(items: Iterator[str]) -> Iterator[str]:
    for item in items:
        first, *others = item.split("\n")
        yield f"  {first}"
        yield from (f"    {line}" for line in others)


async def require_trust(loaded: LoadedCampaign, *, trusts: bool = False, ask: Ask | None = None) -> None:
    """Return if the user trusts the campaign as it was read, asking them if that is possible.

    Args:
        loaded: The campaign.
        trusts: True if a flag trusts it, for this run.
        ask: Asks the user; None without a terminal.

    Raises:
        ConfigError: It is not trusted, or the answer cannot be kept; the error says what to do.
    """
    trust = CampaignTrust(loaded)
    if trusts:
        return
    state, is_foreign = await to_thread.run_sync(lambda: (trust.state, trust.is_from_elsewhere))
    if isinstance(state, Trusted) and not is_foreign:
        return
    folder = shown(loaded.folder.path)
    text = await to_thread.run_sync(trust.text)
    if len(text) > MAX_CHARS or text.count("\n") > MAX_LINES:
        raise ConfigError(
            f"{folder} is not trusted and runs too much to ask about; read its files, then run it with --trust"
        )
    if ask is None:
        raise ConfigError(
            f"{folder}: {_problem(state)}; run it once on a terminal, which asks, or add --trust for this run"
        )
    answer = await ask(f"{text}\nDo you trust this campaign?")
    if answer is not None:
        await to_thread.run_sync(lambda: trust.keep(is_trusted=answer))
    if not answer:
        raise ConfigError(f"{folder} is not trusted, so nothing ran; change it, or answer yes")


def _problem(state: TrustState) -> str:
    match state:
        case Trusted():
            return "you did not begin this campaign"
        case Changed():
            return "campaign.toml changed since you trusted it"
        case Untrusted():
            return "campaign.toml is not trusted"
