"""Protected places that come while a command runs in the sandbox, such as a new `.envrc`, and what becomes of them.

The rule: the sandbox keeps what exists. New places are reported to the user and to the model, and nothing is moved
without the user's word. What is put aside lies in a folder of panpan's own; nothing is deleted.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import TypeAlias

from anyio import get_cancelled_exc_class, to_thread

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook, ToolCall
from panpan.permissions.reach.deletions import INSTALLED
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import opened_folder
from panpan.system.git.git_places import running_parts, runs_nothing
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.sandbox.profile import ProtectedPlaces, is_empty_folder, protected_places
from panpan.system.text.terminal_text import printable
from panpan.types.content import for_model
from panpan.types.dataclass import dataclass
from panpan.types.events import Output
from panpan.types.permission import Choice, UserAsker, UserQuestion

_MOST_NAMED = 10
_PUT_ASIDE, _KEEP = "Put aside", "Keep"
_KEPT = "they were left where they are"

_Places: TypeAlias = Mapping[Path, tuple[int, int]]
"""Protected places with what tells one file from another of the same name: device and inode."""


@dataclass(frozen=True, slots=True)
class _Scan:
    """Protected places that one look at the workspace found, and the reach of the look."""

    looks: Sequence[ProtectedPlaces]
    """Looks at the roots, one for each."""
    files: _Places

    def shows_new(self, place: Path, file: tuple[int, int]) -> bool:
        """True if a later look at `place` finds what was not there in this one; what this one did not reach is old."""
        if place in self.files:
            return self.files[place] != file
        return any(place.is_relative_to(look.root) and look.has_looked_for(place) for look in self.looks)


class _Background:
    """Knowledge that all agents of a session share about commands in the background."""

    newest: _Scan | None = None
    """Newest look since a command was left running in the background, which may make more at any time."""


class NewProtectedPlaces(Hook):
    """Compares the protected places of the workspace before and after each command in the sandbox.

    A new repository that makes git run nothing, such as a clone, is the model's: later commands may change it.

    Args:
        folder: Where places are put aside; made when it is first needed.
        ask: Asks the user; None if nobody can be asked.
        warn: Tells the user a sentence.
    """

    def __init__(self, folder: Path, ask: UserAsker | None, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._ask = ask
        self._warn = warn
        self._before: dict[str, _Scan] = {}
        self._background = _Background()

    def for_agent(self) -> "NewProtectedPlaces":
        """Return one for the calls of another agent of the session."""
        other = copy(self)
        other._before = {}
        return other

    async def before_effect(self, call: ToolCall) -> None:
        if await _runs_boxed(call):
            before = self._before.get(call.tool_use_id)  # this is a retry after a failed attempt
            self._before[call.tool_use_id] = before or self._background.newest or await _scan_for(call)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        before = self._before.pop(call.tool_use_id, None)
        if before is None:
            return output
        now = await _scan_for(call)
        if self._background.newest is not None or getattr(call.args, "run_in_background", False):
            self._background.newest = now
        new = {place: file for place, file in now.files.items() if before.shows_new(place, file)}
        moved = set(before.files.values())  # files of the user, under another name
        cloned = [place for place in new if place.name == ".git" and new[place] not in moved]
        if new or call.context.sandbox.repositories:
            new = await to_thread.run_sync(_settle_repositories, call.context.sandbox, new, cloned)
        new = {place: file for place, file in new.items() if not _is_approved(place, call)}
        if not new:
            return output
        shown = _listed([printable(call.context.paths.shown(place)) for place in new])
        told = f"while commands ran, protected files or folders appeared that other programs run or trust: {shown}"
        try:
            done, asked = await self._settled(shown, new)
        except get_cancelled_exc_class():  # an interrupt is not an answer, and the user still has to know
            self._warn(f"{told}; {_KEPT}")
            raise
        self._warn(f"{told}; {done}")
        advice = "Tell the user what they are for, and do not make them again unless the user asks"
        note = f"[{told}; {done}{asked}. {advice}]"
        return Output((*output.blocks, for_model(note)), output.display, is_error=output.is_error)

    async def turn_ended(self, conversation: Conversation) -> None:
        self._before.clear()  # left over from interrupted calls

    async def _settled(self, shown: str, new: _Places) -> tuple[str, str]:
        """Return what became of new places, and how the user was asked, for the model; both in words.

        Only the user's choice moves anything: without one, and where they write something else, all of it stays.
        """
        if self._ask is None:
            return _KEPT, ""
        question = UserQuestion(
            "New files",
            f"A command made files that can run code later: {shown}. Put them aside?",
            (Choice(_PUT_ASIDE, f"moves them below {self._folder}"), Choice(_KEEP, "leaves them where they are")),
        )
        answers = await self._ask([question])
        asked = ", after the user was asked"
        if not answers:
            return f"without an answer, {_KEPT}", asked
        if _PUT_ASIDE not in answers[0].chosen:
            said = f" and said: {printable(answers[0].text)}" if answers[0].text else ""
            return _KEPT, f"{asked}{said}"
        left = await to_thread.run_sync(partial(_put_aside, new, self._folder))
        text = f"they were put aside below {self._folder}"
        return (f"{text}, but for {_listed([printable(str(place)) for place in left])}" if left else text), asked


async def _runs_boxed(call: ToolCall) -> bool:
    sandbox, opening = call.context.sandbox, call.context.opening
    is_let_out = opening is not None and opening.use == "off"
    if is_let_out or call.effects.sandbox in (None, "off") or not sandbox.is_on:
        return False
    return (await sandbox.choice()).sandbox is not None


async def _scan_for(call: ToolCall) -> _Scan:
    context = call.context  # nobody runs or trusts files in the temporary folder
    roots = [root for root in context.paths.roots if root != context.sandbox.temporary]
    return await to_thread.run_sync(_scan, roots)


def _scan(roots: Collection[Path]) -> _Scan:
    looks = [protected_places(root) for root in roots]
    return _Scan(looks, {place: file for look in looks for place, file in _files(look)})


def _settle_repositories(
    sandbox: CommandSandbox, new: _Places, cloned: Collection[Path]
) -> dict[Path, tuple[int, int]]:
    """Give commands the new repositories that run nothing, and take back those that would.

    A process that a command left behind has the bounds of that time, in which a later repository is any folder.

    Returns:
        The new places that are left, with what would have git run something.
    """
    left = dict(new)
    for repository in sandbox.repositories:
        if parts := running_parts(repository):
            sandbox.take_repository(repository)
            left |= dict(_existing(parts))
    for repository in filter(runs_nothing, cloned):
        sandbox.give_repository(repository, new[repository])
        del left[repository]
    return left


def _files(look: ProtectedPlaces) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Yield the protected places that exist, except those of package managers.

    Empty folders do nothing, and are placeholders in a box.
    """
    return _existing(place for place in look.places if INSTALLED.isdisjoint(place.relative_to(look.root).parts))


def _existing(places: Iterable[Path]) -> Iterator[tuple[Path, tuple[int, int]]]:
    for place in places:
        with suppress(OSError):
            file = place.lstat()
            if not is_empty_folder(place):
                yield place, (file.st_dev, file.st_ino)


def _is_approved(place: Path, call: ToolCall) -> bool:
    """Return whether the user said yes to this call for the place, or for what it lies in."""
    return not call.context.paths.approved.isdisjoint((place, *place.parents))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _put_aside(places: _Places, folder: Path) -> list[Path]:
    """Move places into a folder, each under a number of its own, and return those that could not be moved."""
    make_private_folder(folder)
    left: list[Path] = []
    for place, file in places.items():
        number = len(os.listdir(folder)) + 1  # noqa: PTH208 - a folder of ours with a few names
        try:
            _move(place, file, folder / f"{number}-{place.name}")
        except OSError:
            left.append(place)
    return left


def _move(place: Path, file: tuple[int, int], target: Path) -> None:
    """Move what was seen at a place, through no link that came in its way.

    Raises:
        OSError: It is another file by now, lies behind a link, or cannot be moved.
    """
    with opened_folder(place.parent) as parent:
        seen = os.stat(place.name, dir_fd=parent, follow_symlinks=False)
        if (seen.st_dev, seen.st_ino) != file:
            raise FileNotFoundError(place)
        try:
            os.rename(place.name, target, src_dir_fd=parent)
        except OSError:
            shutil.move(f"/proc/self/fd/{parent}/{place.name}", target)  # another file system
