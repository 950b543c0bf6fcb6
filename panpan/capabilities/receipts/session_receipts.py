"""The receipts of a session, in order, and the files that its agents have written."""

from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.receipts.receipt import FileDigest, Receipt
    from panpan.receipts.staleness import Freshness


@dataclass(frozen=True, slots=True)
class SessionReceipt:
    """One command of the session that ended."""

    receipt: "Receipt"
    agent_id: str
    """The subagent that ran it; empty for the main agent and for the user."""
    turn: int
    """Number of the turn in which it ended, from 1; between two turns, that of the one before."""
    root: Path
    """Folder to which the paths of the receipt are relative: the workspace, or a subagent's own copy of it."""
    look: "Callable[[SessionReceipt], Awaitable[Freshness]]"
    """Compares its inputs with the files as they are."""
    tool_use_id: str = ""
    """The call that ran it."""
    is_of_user: bool = False
    """True if the user typed it behind a `!`."""

    async def freshness(self) -> "Freshness":
        """Return if its inputs are as they were; reads only files that may have changed since the last look."""
        return await self.look(self)


class SessionReceipts:
    """Receipts of the commands of one session, also of those before it was resumed.

    Rewinding and compaction take nothing away: the files have one past, whatever branches the conversation has.

    Args:
        root: The workspace.
        settle: Waits until the receipts of all commands that have ended are there.
    """

    def __init__(self, root: Path, settle: Callable[[], Awaitable[None]]) -> None:
        self.root = root
        self.turn = 0
        """Number of turns that the session has begun."""
        self._settle = settle
        self._receipts: list[SessionReceipt] = []
        self._written: set[str] = set()
        self._removed: set[str] = set()
        self._worked_in = 0
        """Number of the last turn in which something was done."""
        self._files: dict[str, FileDigest] = {}
        """The newest that was said of each file."""

    @property
    def receipts(self) -> Sequence[SessionReceipt]:
        """All receipts, in the order in which the commands ended; await `settled` before."""
        return tuple(self._receipts)

    async def settled(self) -> None:
        """Wait until the receipt of each command that has ended is in `receipts`."""
        await self._settle()

    def files_written_here(self) -> Set[str]:
        """Return the files that the agents of this session have created or changed, by their tools or by commands.

        Paths are as receipts of the workspace name them: relative to it, absolute where they lie outside.
        """
        return self._written

    def files_removed_here(self) -> Set[str]:
        """Return the files that commands of the agents have removed, some of which may be there again."""
        return self._removed

    @property
    def has_worked(self) -> bool:
        """True if an agent changed a file in this turn, or ran a command that does more than look."""
        return self._worked_in == self.turn

    def go_on_after(self, turn: int) -> None:
        """Count on from the last turn of an earlier run."""
        self.turn = max(self.turn, turn)

    def begin_turn(self) -> None:
        """Count a turn that begins."""
        self.turn += 1

    def add(self, one: SessionReceipt) -> None:
        """Add the receipt of a command that ended."""
        if one.receipt.kind != "look":
            self._worked_in = self.turn
        self._receipts.append(replace(one, receipt=self._sharing(one.receipt)))
        if one.is_of_user:
            return
        if one.root == self.root:
            self._written.update(file.path for file in one.receipt.outputs)
            self._removed.update(file.path for file in one.receipt.outputs if file.how == "gone")
        else:
            self.note_written(one.root / file.path for file in one.receipt.outputs)

    def note_written(self, paths: Iterable[Path]) -> None:
        """Take note of files, canonical, that an agent has written with a tool."""
        self._worked_in = self.turn
        self._written.update(map(self._named, paths))

    def _sharing(self, receipt: "Receipt") -> "Receipt":
        """Return a receipt that shares its digests with those before, so that a long session stays small."""
        shared = {
            "inputs": tuple(map(self._shared, receipt.inputs)),
            "outputs": tuple(map(self._shared, receipt.outputs)),
        }
        return receipt.model_copy(update=shared)

    def _shared(self, file: "FileDigest") -> "FileDigest":
        known = self._files.get(file.path)
        if known is None or known.sha256 != file.sha256 or known != file:
            known = self._files[file.path] = file
        return known

    def _named(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()
