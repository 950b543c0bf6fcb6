"""Operations on the files of a session's workspace: finding, reading, and taking changes back.

The rule: a client reads no more than the model may read without a question, and nothing outside the workspace.
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from anyio import to_thread
from pydantic import Field

from panpan.errors import ConfigError, ToolError
from panpan.hub.hub import Hub
from panpan.hub.operations.table import BusyError, Caller, ForbiddenError, NoParams, NotFoundError, Operation, Params
from panpan.session.capability import FileHistory
from panpan.session.session import Session
from panpan.system.files.read_file import open_regular_file
from panpan.types.dataclass import dataclass
from panpan.types.events import FileRestore
from panpan.types.messages import UserMessage

MAX_FILE_BYTES = 10_000_000
"""Most bytes of a file that are sent."""
MAX_FOUND = 1_000


class FindParams(Params):
    """A search for files by name."""

    query: str = Field(default="", max_length=1_000)
    """Letters of the path, in their order; empty for all files."""
    limit: int = Field(default=100, ge=1, le=MAX_FOUND)


async def _find(hub: Hub, caller: Caller, params: FindParams) -> Sequence[str]:
    """Return files of the workspace whose paths fit a query, the best first; ignored files are left out."""
    from panpan.hub.path_search import find_paths

    found = await find_paths(await hub.files.fresh(), params.query, params.limit)
    return [path for path in found if not path.endswith("/")]


class ReadParams(Params):
    """A file."""

    path: str = Field(min_length=1, max_length=4_096)
    """Path, relative to the workspace or absolute."""
    encoding: Literal["utf-8", "base64"] = "utf-8"
    max_bytes: int = Field(default=1_000_000, ge=0, le=MAX_FILE_BYTES)


@dataclass(frozen=True, slots=True)
class FileText:
    """Content of a file."""

    path: str
    """Absolute path."""
    content: str
    is_cut: bool
    """True if it is the beginning of more."""
    is_lossy: bool
    """True if some bytes are no UTF-8 and were replaced."""


async def _read(hub: Hub, caller: Caller, params: ReadParams) -> FileText:
    """Return the content of a file of the workspace."""
    session = hub.session
    paths = session.agent.context.paths
    path = readable_file(session, params.path)
    if not any(path.is_relative_to(root) for root in paths.roots):
        raise ForbiddenError(f"{params.path[:200]!r} is outside of the workspace; only its files can be read")
    try:
        data, is_whole = await to_thread.run_sync(beginning_of, path, params.max_bytes)
    except ToolError as error:
        raise NotFoundError(f"{error}; files.find has the names") from error
    except OSError as error:
        raise ConfigError(f"cannot read {params.path[:200]!r}: {error.strerror}") from error
    if params.encoding == "base64":
        return FileText(str(path), base64.b64encode(data).decode("ascii"), not is_whole, is_lossy=False)
    content = data.decode("utf-8", errors="replace")
    return FileText(str(path), content, not is_whole, is_lossy=content.encode() != data)


def readable_file(session: Session, text: str) -> Path:
    """Return the place of a file that the model may read without a question.

    Raises:
        ForbiddenError: It may not, or a rule is about reading it.
    """
    paths = session.agent.context.paths
    try:
        path = paths.resolve(text, access="read")
    except ToolError as error:
        raise ForbiddenError(str(error)) from error
    if session.gate.hides_from_context(path, root=paths.root):
        raise ForbiddenError(f"a rule is about reading {text[:200]}, so that it is not shown")
    return path


def beginning_of(path: Path, most: int) -> tuple[bytes, bool]:
    """Return the first bytes of a regular file, and whether that is all of it; blocks."""
    with open_regular_file(path) as file:
        data = file.read(most)
        return data, not file.read(1)


def _history_of(hub: Hub) -> FileHistory:
    if (files := hub.session.find(FileHistory)) is None:
        raise ConfigError("undo is unavailable: snapshots are disabled ([snapshots] enabled = false)")
    return files


async def _changes(hub: Hub, caller: Caller, params: NoParams) -> FileRestore:
    """Return what the session has changed in files, with the difference."""
    prompts = [one for one in hub.session.conversation.messages if isinstance(one, UserMessage)]
    return await _history_of(hub).changes(prompts[0].uuid) if prompts else FileRestore((), "", {})


class StepParams(Params):
    """One step of undo or redo."""

    only_looks: bool = False
    """True to return what would change, and change nothing."""


async def _undo(hub: Hub, caller: Caller, params: StepParams) -> FileRestore:
    """Undo what the last turn changed in files; files that the user changed since stay."""
    return await _step(hub, "undo", params)


async def _redo(hub: Hub, caller: Caller, params: StepParams) -> FileRestore:
    """Redo what was undone."""
    return await _step(hub, "redo", params)


async def _step(hub: Hub, direction: Literal["undo", "redo"], params: StepParams) -> FileRestore:
    files = _history_of(hub)
    if hub.is_busy:
        raise BusyError("a turn runs; stop it first")
    with hub.held():
        return await files.step(direction, only_looks=params.only_looks)


FILE_OPERATIONS: Sequence[Operation[Hub]] = (
    Operation("files.find", FindParams, Sequence[str], _find),
    Operation("files.read", ReadParams, FileText, _read),
    Operation("changes.list", NoParams, FileRestore, _changes),
    Operation("changes.undo", StepParams, FileRestore, _undo, "write"),
    Operation("changes.redo", StepParams, FileRestore, _redo, "write"),
)
"""Operations on the files of a session."""
