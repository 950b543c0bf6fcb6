"""Trust in a campaign: its files are code, for they name commands that run and flags that allow calls.

The rule: the user's yes covers the bytes of campaign.toml and of the JSONL files, as they were read for the question.
Trust in a campaign is no trust in a project, even in the same folder: its root is the file and no folder.
"""

import shlex
from collections.abc import Iterator, Sequence
from math import prod

from anyio import to_thread

from panpan.batch.definition.begun_here import is_from_elsewhere, note_begun
from panpan.batch.definition.campaign import CommandLine
from panpan.batch.definition.campaign_file import LoadedCampaign
from panpan.batch.definition.written_tasks import WrittenTask, written_tasks
from panpan.batch.store.wording import value_text
from panpan.config.file_trust import Ask, TrustQuestion, lines_about, problem_of, trust_text
from panpan.config.keys import shown
from panpan.config.trust import Trusted, TrustState, TrustStore
from panpan.types.dataclass import dataclass


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
        return trust_text(self._said(), self._runs())

    def _said(self) -> Iterator[str]:
        yield from lines_about(shown(self.loaded.folder.campaign_file), self.state)
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
    question = TrustQuestion(
        place=shown(loaded.folder.path),
        what="this campaign",
        problem="you did not begin this campaign" if isinstance(state, Trusted) else problem_of("campaign.toml", state),
        text=await to_thread.run_sync(trust.text),
        keep=lambda answer: trust.keep(is_trusted=answer),
    )
    await question.require_yes(ask)
