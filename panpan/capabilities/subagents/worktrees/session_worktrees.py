"""The worktrees of one session: made when the first is needed, tidied at its start, and given back at its end."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import move_on_after, to_thread

from panpan.config.locations import snapshots_folder
from panpan.core.tool_executor import CLEANUP_S
from panpan.errors import PanpanError, SessionError
from panpan.session.context import SessionContext
from panpan.session.log.agent_log import AgentRecord, agent_log_path, agent_record, agents_folder
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.events import FileChange

if TYPE_CHECKING:
    from panpan.capabilities.subagents.worktrees.merging import WorktreeMerges
    from panpan.capabilities.subagents.worktrees.worktrees import Worktrees


@dataclass(frozen=True, slots=True)
class Place:
    """Session, folders and branch that worktrees are made for."""

    session_id: str
    sessions_folder: Path
    root: Path
    git_branch: str
    panpan_version: str

    @property
    def logs(self) -> Path:
        return agents_folder(self.sessions_folder, self.session_id)


class SessionWorktrees:
    """Makes the copies of the project that subagents work in."""

    def __init__(self, session: SessionContext, place: Place) -> None:
        self._session = session
        self._place = place

    @cached_property
    def worktrees(self) -> "Worktrees":
        from panpan.capabilities.subagents.worktrees.worktrees import Worktrees  # most sessions make none

        setup = self._session.setup
        kept = snapshots_folder(setup.locations.home, setup.cwd)
        return Worktrees(setup.cwd, folder=setup.locations.worktrees_folder, kept=kept)

    def merges(self, is_running: Callable[[str], bool]) -> "WorktreeMerges":
        """Return the merges, which leave running subagents alone."""
        from panpan.capabilities.subagents.worktrees.merging import WorktreeMerges

        return WorktreeMerges(self.worktrees, is_running)

    async def tidy(self) -> None:
        """Remove leftovers without changes, and name the others."""
        if self._session.setup.locations.worktrees_folder.is_dir():
            await self._name([worktree.agent_id for worktree in await self.worktrees.tidy()])

    async def aclose(self) -> None:
        """Name the used worktrees that hold unmerged changes, remove those without, and unlock all."""
        if "worktrees" not in self.__dict__:
            return
        try:
            with move_on_after(CLEANUP_S, shield=True):
                await self._name(await self.worktrees.unmerged())
        finally:
            with move_on_after(CLEANUP_S, shield=True):
                await self.worktrees.aclose()

    async def _name(self, agent_ids: Sequence[str]) -> None:

        if agent_ids and (line := await to_thread.run_sync(unmerged_line, agent_ids, self._place)):
            self._session.warn(line)


async def worktree_for(worktrees: "Worktrees", record: AgentRecord) -> tuple[Path, bool]:
    """Return the folder in which a subagent with a worktree works, and True if its worktree is new."""
    worktree = worktrees.find(record.id)
    return (worktree or await worktrees.make(record.id)).path, worktree is None


MAX_FILES = 30
_MAX_SHOWN = 3


@dataclass(frozen=True, slots=True)
class WorktreeEnd:
    """Result for a worktree as its subagent ended."""

    notes: Sequence[str] = ()
    """Sentences for the subagent's parent."""
    summary: str = ""
    """Unmerged changes for people; empty: none."""


async def end_worktree(worktrees: "Worktrees", record: AgentRecord) -> WorktreeEnd:
    """Remove the worktree of a subagent if nothing was changed in it, and return what became of it."""
    worktree = worktrees.find(record.id)
    if worktree is None:
        return WorktreeEnd()
    try:
        if await worktrees.remove(worktree):
            told = "It changed nothing in its worktree, which is removed."
            return WorktreeEnd(tuple(filter(None, (told, worktree.note))))
        files = await worktrees.changes(worktree)
    except PanpanError as error:
        told = f"Its worktree {worktree.path} is kept; what was changed in it cannot be told: {error}"
        return WorktreeEnd((told,), "its worktree is kept, not merged")
    lines = [f"{file.path} ({file.kind}, {_counts(file)})" for file in files[:MAX_FILES]]
    if len(files) > MAX_FILES:
        lines.append(f"… and {len(files) - MAX_FILES:,} more")
    changed = "\n".join(lines) or "no file, but something that is not merged, such as a repository of its own"
    told = (
        f"It changed files in its worktree {worktree.path}, and nothing of that is in the project yet. MergeWorktree "
        f"with its id shows, merges or discards it:\n{changed}"
    )
    return WorktreeEnd(tuple(filter(None, (told, worktree.note))), f"{_shown(files)} in its worktree, not merged")


MAX_NAMED = 5
_MAX_DESCRIPTION_CHARS = 60


def unmerged_line(agent_ids: Sequence[str], place: Place) -> str:
    """Return the line, which says of each subagent whether it is of this session. Reads logs."""
    if not agent_ids:
        return ""
    own = [id_ for id_ in agent_ids if _log(id_, place.logs) is not None]
    earlier = [id_ for id_ in agent_ids if id_ not in own]
    kinds = (("this session", own), ("earlier sessions", earlier))
    named = "; ".join(f"of {whose} {_named(ids, place)}" for whose, ids in kinds if ids)
    number = "1 worktree holds" if len(agent_ids) == 1 else f"{len(agent_ids):,} worktrees hold"
    return f"{number} changes that are not merged, {named}: ask the model to show, merge or discard them"


def _shown(files: Sequence[FileChange]) -> str:
    text = ", ".join(f"{file.path} {_counts(file)}" for file in files[:_MAX_SHOWN]) or "a change"
    return f"{text} and {len(files) - _MAX_SHOWN:,} more" if len(files) > _MAX_SHOWN else text


def _counts(file: FileChange) -> str:
    return f"+{file.added or 0} \N{MINUS SIGN}{file.deleted or 0}"


def _named(agent_ids: Sequence[str], place: Place) -> str:
    names = [_name(id_, place) for id_ in agent_ids[:MAX_NAMED]]
    if (more := len(agent_ids) - MAX_NAMED) > 0:
        names.append(f"and {more:,} more")
    return ", ".join(names)


def _name(agent_id: str, place: Place) -> str:
    """Return the id and the task of a subagent, if a session of the project knows it."""
    folders = (
        place.logs,
        *(agents_folder(place.sessions_folder, path.stem) for path in place.sessions_folder.glob("*.jsonl")),
    )
    path = next(filter(None, (_log(agent_id, folder) for folder in folders)), None)
    with suppress(SessionError):
        if path is not None and (record := agent_record(path)) is not None and record.description:
            return f"{agent_id} ({clean_line(record.description)[:_MAX_DESCRIPTION_CHARS]})"
    return agent_id


def _log(agent_id: str, folder: Path) -> Path | None:
    path = agent_log_path(folder, agent_id)
    return path if path is not None and path.is_file() else None
