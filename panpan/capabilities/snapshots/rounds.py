"""Snapshots around each round that may change files.

A call that says which files it changes has a snapshot of those alone, which is quick however large the folder is. The
first other call of a round, such as a command, has one of the whole folder.

The rule: before the first such call of a round runs, what is there is kept, or the user was told that it is not. Where
nothing of the kind follows a call for a moment, as while the user is asked about the next one, what came of it is kept
there and then: what they change meanwhile is theirs. At the end of a round it is kept beside the next request.
"""

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio

from panpan.capabilities.snapshots.history import SnapshotJournal, UndoHistory
from panpan.capabilities.snapshots.settings import SnapshotSettings
from panpan.capabilities.snapshots.workspace import (
    FilesByFolder,
    SnapshotPlaces,
    TakenStep,
    WorkspaceSnapshots,
    trees_of,
)
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import PanpanError, SessionError
from panpan.file_trees.kept_files import KeepLimits
from panpan.file_trees.snapshot import Snapshot
from panpan.session.capability import FileHistory
from panpan.session.log.records import timestamp
from panpan.types.events import ChangeKind, FileChange, FileRestore, Output
from panpan.types.messages import AssistantMessage, SystemReminder

if TYPE_CHECKING:
    from panpan.capabilities.snapshots.undo import Undo
    from panpan.session.command import Terminal


log = logging.getLogger(__name__)

_HEAD_START_S = 0.2
"""The first request goes out before the first snapshot is begun."""

_PAUSE_S = 0.3
"""Seconds after a call that may have changed something, before its changes are kept in the middle of a round."""

_IDLE_S = 2.0
"""Seconds after a turn before tidying up, so that a finished run can leave at once."""

_BACKWARDS: Mapping[ChangeKind, ChangeKind] = {"added": "deleted", "deleted": "added", "modified": "modified"}

_REMINDER = (
    "The user has brought files back to an earlier state, with undo, redo or rewind, since your last reply. "
    "Files may not be as you left them: read a file again before you rely on what is in it, and do not make the "
    "changes again that were taken back unless you are asked to."
)


class RoundSnapshots(Hook):
    """Keeps what the rounds of a session change."""

    def __init__(self, workspace: WorkspaceSnapshots, journal: SnapshotJournal) -> None:
        self._turn_files: Sequence[FileChange] = ()
        """Changes of the newest turn, as far as they are kept."""
        self._workspace = workspace
        self._journal = journal
        self.first_wait_s = 60.0
        """Seconds that a call waits for the first snapshot."""
        self._steps_lock = anyio.Lock()
        """Held by whoever begins or ends a step; that of the workspace comes second."""
        self._wanted = anyio.Event()
        self._idle = anyio.Event()
        """Set where a turn has ended since it was last tidied up."""
        self._tidying: anyio.CancelScope | None = None
        self._effects = 0
        """Calls that may change something, as far as they have begun."""
        self._running: set[str] = set()
        """Ids of those that run."""
        self._beside: set[str] = set()
        """Calls of subagents that run, which may last longer than the turn."""
        self._whole_beside: set[str] = set()
        """Those of them that may change any file."""
        self._effect_ended = anyio.Event()
        self._round_ended = anyio.Event()
        self._is_served = False
        """True if steps are kept beside the turn, and the turn need not wait for it."""
        self._has_waited = False
        """True if a call has waited for the first snapshot in vain."""
        self._is_first = True
        """True if nothing that may change something has run in this session."""
        self._is_first_whole = True
        """True if no snapshot of the whole folder has been taken for a call."""
        self._is_first_turn = True
        self._turn = ""
        self._steps: list[TakenStep] = []
        """Steps of the turn that changed files."""
        self._before: Mapping[Path, Snapshot] | None = None
        """State before the step; None: nothing that may change something has run since the last."""

    @property
    def is_settled(self) -> bool:
        """True if all that was changed is kept, and nothing runs that may change something."""
        is_locked = self._steps_lock.locked() or self._workspace.lock.locked()
        return self._before is None and not self._beside and not is_locked

    @property
    def turn_files(self) -> Sequence[FileChange]:
        return self._turn_files

    async def serve(self) -> None:
        """Take the first snapshot while the model thinks, and what else has time; to be run beside the session."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_in_pauses)
            await self._wanted.wait()
            await anyio.sleep(_HEAD_START_S)
            async with self._workspace.lock:
                await self._workspace.take_beside()
            tasks.start_soon(self._tidy)

    async def _keep_in_pauses(self) -> None:
        self._is_served = True
        while True:
            await self._effect_ended.wait()
            self._effect_ended, seen = anyio.Event(), self._effects
            with anyio.move_on_after(_PAUSE_S):
                await self._round_ended.wait()
            try:
                await self._end_step(after_effects=seen)
            except Exception:  # the turn goes on; its end does the rest
                log.exception("what a call changed could not be kept beside the turn")

    async def _tidy(self) -> None:
        await self._workspace.tidy(joins_packs=False)  # left over from short sessions
        while True:
            await self._idle.wait()
            self._idle = anyio.Event()
            with anyio.CancelScope() as self._tidying:
                await anyio.sleep(_IDLE_S)
                await self._workspace.tidy()

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        said = (message for message in reversed(conversation.messages) if not isinstance(message, SystemReminder))
        begin = next(said, None)
        if self._tidying is not None:
            self._tidying.cancel("a turn begins")
        self._turn = begin.uuid if begin is not None else ""
        self._before, self._steps, self._turn_files = None, [], ()
        if self._is_first_turn:
            self._is_first_turn = False
            if (await self._history()).came_back:
                self._journal.note_restored()
        self._wanted.set()
        if not self._journal.take_restored():
            return ()
        return (SystemReminder(text=_REMINDER, cause="undo"),)

    async def before_effect(self, call: ToolCall) -> None:
        if not self._workspace.is_elsewhere(call):
            self._running.add(call.tool_use_id)
            await self._effect_begins(await self._named_files(call))

    async def effect_begins_beside(self, key: str, call: ToolCall) -> None:
        """See a call of a subagent, which may go on after the turn, right before it runs; `key` is unique."""
        if not self._workspace.is_elsewhere(call):
            self._beside.add(key)
            if (files := await self._named_files(call)) is None:
                self._whole_beside.add(key)
            await self._effect_begins(files)

    def effect_ended_beside(self, key: str) -> None:
        """See that it is over, whatever came of it."""
        if key in self._beside:
            self._beside.discard(key)
            self._whole_beside.discard(key)
            self._effect_ended.set()

    async def _named_files(self, call: ToolCall) -> FilesByFolder | None:
        if not call.tool.notes_changes:
            return None
        return await anyio.to_thread.run_sync(self._workspace.named_files, call)

    async def _effect_begins(self, files: FilesByFolder | None) -> None:
        self._effects += 1
        if files is not None and not self._whole_beside:
            if files:
                async with self._steps_lock:
                    await self._begin_step_of_files(files)
            return
        if self._has_waited and self._is_first_whole and self._workspace.lock.locked():
            return  # it was reported already
        with anyio.move_on_after(self.first_wait_s if self._is_first_whole else None):
            async with self._steps_lock:
                await self._begin_step()
            return
        self._has_waited = True
        self._workspace.tell("the first snapshot is still being taken; changes until it is done cannot be undone")

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if call.tool_use_id in self._running:
            self._running.discard(call.tool_use_id)
            self._effect_ended.set()
        return output

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        self._running.clear()
        self._round_ended.set()
        if self._is_served:
            self._effect_ended.set()
        else:
            await self._end_step()
        return ()

    async def turn_ended(self, conversation: Conversation) -> None:
        self._running.clear()
        await self._end_step()
        try:
            self._turn_files = await self._files_of_turn()
        except PanpanError as error:
            self._workspace.tell(f"the changes of this turn cannot be listed: {error}")
        self._idle.set()

    async def _begin_step(self) -> None:
        """Keep what is there before a call, unless it goes on with what another call of the round has begun."""
        if self._before is not None and not (self._round_ended.is_set() or _is_about_files(self._before)):
            return
        is_about_files = self._before is not None and _is_about_files(self._before)
        if not is_about_files:
            await self._end_earlier_step()
        since = timestamp()
        async with self._workspace.lock:
            before = await self._workspace.take()
        if is_about_files:  # after the whole snapshot: what changes between the two is in both steps, and lost in none
            await self._end_earlier_step()
        await self._begin(before)
        self._is_first_whole = False
        if before:
            self._go_on_from(before, since)

    async def _begin_step_of_files(self, files: FilesByFolder) -> None:
        """Keep some files before a call that changes no others."""
        if self._before is not None and not self._round_ended.is_set():
            begun = self._before
            files = {root: paths for root, paths in files.items() if not _has(begun.get(root), paths)}
            if not files:
                return
        else:
            await self._end_earlier_step()
        since, earlier = timestamp(), self._before
        before = await self._workspace.take_files(files, earlier or {})
        await self._begin(before)
        if before:
            self._go_on_from(before, since, adds_files=earlier is not None)

    async def _end_earlier_step(self) -> None:
        if self._before is not None:
            await self._keep_step(self._before)
        self._before, self._round_ended = None, anyio.Event()

    def _go_on_from(self, before: Mapping[Path, Snapshot], since: str, *, adds_files: bool = False) -> None:
        self._before = before
        self._journal.add("turn", trees_of(before), None, since=since, turn=self._turn, adds_files=adds_files)

    async def _begin(self, now: Mapping[Path, Snapshot]) -> None:
        """Say, before the first change, what is not covered, and close what a crash left open."""
        self._workspace.warn_left_out(now)
        if not self._is_first:
            return
        self._is_first = False
        if (opened := (await self._history()).opened) is None:
            return
        async with self._workspace.lock:
            if ended := await self._workspace.take_since(opened):
                self._journal.add("turn", opened, trees_of(ended))

    async def _history(self) -> UndoHistory:
        try:
            return await self._journal.history()
        except SessionError as error:
            self._workspace.tell(f"the changes of an earlier run cannot be undone: {error}")
            return UndoHistory()

    async def _end_step(self, *, after_effects: int | None = None) -> None:
        """Keep what came of the calls since `_before`.

        With `after_effects`, the number of calls that have begun, nothing is done where it is another one, or one runs.
        """
        if self._before is None:  # no need to wait for another task that takes the first snapshot
            return
        async with self._steps_lock:
            is_running = self._running or self._beside
            has_gone_on = after_effects is not None and (after_effects != self._effects or is_running)
            if (before := self._before) is None or has_gone_on:
                return
            after = await self._keep_step(before)
            self._before = None  # not after an interruption: then the end of the turn does it
            if self._beside and after:
                self._go_on_from(after, timestamp())

    async def _keep_step(self, before: Mapping[Path, Snapshot]) -> Mapping[Path, Snapshot]:
        if _is_about_files(before):  # git is not asked, so nothing else has to wait
            after = await self._workspace.take_again(before)
        else:
            async with self._workspace.lock:
                after = await self._workspace.take_again(before)
        if after.keys() != before.keys():
            return {}  # the next snapshot closes the open entry of the log
        self._workspace.warn_left_out(after)
        try:
            files = await self._workspace.changes(before, after)
            ended = trees_of(after if files else before)  # only changes of files can be undone
            self._journal.add("turn", trees_of(before), ended, turn=self._turn, files=files)
            self._steps += [TakenStep(before, after, files)] if files else []
        except PanpanError as error:
            self._workspace.tell(f"the changes of this turn cannot be listed: {error}")
        return after

    async def _files_of_turn(self) -> Sequence[FileChange]:
        """Return the combined changes of this turn's steps, without files that only the user changed meanwhile."""
        steps = self._steps
        if len(steps) <= 1:
            return steps[0].files if steps else ()
        if any(one.only is not None for step in steps for one in step.before.values()):
            return await self._workspace.changes_across(steps)
        touched = {file.path for step in steps for file in step.files}
        changes = await self._workspace.changes(steps[0].before, steps[-1].after)
        return tuple(change for change in changes if change.path in touched)


def _is_about_files(snapshots: Mapping[Path, Snapshot]) -> bool:
    return all(one.only is not None for one in snapshots.values())


def _has(snapshot: Snapshot | None, paths: Set[str]) -> bool:
    """True if a snapshot is about all of the paths."""
    return snapshot is not None and (snapshot.only is None or paths <= snapshot.only)


class Snapshots(FileHistory):
    """The snapshots of a session."""

    def __init__(
        self, settings: SnapshotSettings, places: SnapshotPlaces, journal: SnapshotJournal, warn: Callable[[str], None]
    ) -> None:
        self._journal = journal
        limits = KeepLimits(settings.max_file_mb * 1_000_000, settings.max_files)
        self.workspace = WorkspaceSnapshots(places, limits, warn)
        self.rounds = RoundSnapshots(self.workspace, self._journal)
        """Hooks in around the loop; its `serve` is to be run beside the session."""

    @cached_property
    def undo(self) -> "Undo":
        from panpan.capabilities.snapshots.undo import Undo  # most sessions undo nothing

        return Undo(self.workspace, self._journal)

    @property
    def turn_files(self) -> Sequence[FileChange]:
        """Changes of the newest turn, as far as they are kept."""
        return self.rounds.turn_files

    async def go_back(self, terminal: "Terminal", to: str) -> bool:
        from panpan.capabilities.snapshots.capability import apply_undo

        return await apply_undo(terminal, self.undo, await self.undo.plan_rewind(to))

    async def changes(self, since: str) -> FileRestore:
        from panpan.capabilities.snapshots.undo import done_diff

        plan = await self.undo.plan_rewind(since)
        files = [  # the plan runs backwards
            replace(file, kind=_BACKWARDS[file.kind], added=file.deleted, deleted=file.added) for file in plan.files
        ]
        return FileRestore(files, await done_diff(plan), plan.conflicts, plan.notes)

    async def step(self, direction: Literal["undo", "redo"], *, only_looks: bool = False) -> FileRestore:
        plan = await (self.undo.plan_undo() if direction == "undo" else self.undo.plan_redo())
        files = plan.files if only_looks else await self.undo.restore(plan)
        return FileRestore(files, plan.diff, plan.conflicts, plan.notes)

    async def bring_back(self, to: str, *, only_looks: bool = False) -> Sequence[FileChange]:
        plan = await self.undo.plan_rewind(to)
        return plan.files if only_looks else await self.undo.restore(plan)


class SnapshotsBeside(Hook):
    """Tells the session's snapshots of the calls of one subagent."""

    def __init__(self, rounds: RoundSnapshots, agent_id: str) -> None:
        self._rounds = rounds
        self._agent_id = agent_id
        self._running: set[str] = set()

    async def before_effect(self, call: ToolCall) -> None:
        key = f"{self._agent_id} {call.tool_use_id}"
        self._running.add(key)
        await self._rounds.effect_begins_beside(key, call)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        self._over(f"{self._agent_id} {call.tool_use_id}")
        return output

    async def turn_ended(self, conversation: Conversation) -> None:
        for key in tuple(self._running):  # left over from interrupted calls
            self._over(key)

    def _over(self, key: str) -> None:
        if key in self._running:
            self._running.discard(key)
            self._rounds.effect_ended_beside(key)
