"""Whatever happens to files in a turn, undoing it makes every byte, permission bit, link and folder what it was."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capabilities.guards.hook_fixtures import call_in
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace

NAMES = ["a", "b", "c d", "e\nf", os.fsdecode(b"\xff"), ".gitignore", "-x"]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
contents = st.sampled_from([b"", b"one\n", b"one\r\ntwo\r\n", b"\x00\xff", b"*\n", b"x" * 5000])
modes = st.sampled_from([0o600, 0o644, 0o755, 0o664, 0o700, 0o444])
folder_modes = st.sampled_from([0o755, 0o700, 0o775, 0o1777])
Change = Callable[[Path], None]


def _is_inside(root: Path, place: Path) -> bool:
    """True if the folder of `place` is the root or below it, also where links run in a loop."""
    return Path(os.path.realpath(place.parent)).is_relative_to(root)


def _clear(place: Path) -> None:
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.is_dir():
        shutil.rmtree(place)


def write(path: str, data: bytes, mode: int) -> Change:
    def change(root: Path) -> None:
        place = root / path
        with suppress(OSError):  # a file may be where a folder is wanted
            place.parent.mkdir(parents=True, exist_ok=True)
            if not _is_inside(root, place):
                return
            _clear(place)
            place.write_bytes(data)
            place.chmod(mode)

    return change


def link(path: str, target: str) -> Change:
    def change(root: Path) -> None:
        place = root / path
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            if _is_inside(root, place):
                _clear(place)
                place.symlink_to(target)

    return change


def delete(path: str) -> Change:
    return lambda root: _clear(root / path) if _is_inside(root, root / path) else None


def set_mode(path: str, mode: int) -> Change:
    def change(root: Path) -> None:
        place = root / path
        if not place.is_symlink() and place.is_file() and _is_inside(root, place):
            place.chmod(mode)

    return change


def make_folder(path: str, mode: int) -> Change:
    def change(root: Path) -> None:
        with suppress(OSError):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if _is_inside(root, root / path):
                (root / path).mkdir()
                (root / path).chmod(mode)

    return change


def set_folder_mode(path: str, mode: int) -> Change:
    def change(root: Path) -> None:
        place = root / path
        if place.is_dir() and not place.is_symlink() and _is_inside(root, place):
            place.chmod(mode)

    return change


changes = st.lists(
    st.one_of(
        st.builds(write, paths, contents, modes),
        st.builds(link, paths, paths),
        st.builds(delete, paths),
        st.builds(set_mode, paths, modes),
        st.builds(make_folder, paths, folder_modes),
        st.builds(set_folder_mode, paths, folder_modes),
    ),
    max_size=8,
)


Edit = tuple[str, bytes | None]
"""A call of a file tool: the file, and its new content; None deletes it."""
edits = st.tuples(paths, st.one_of(st.none(), contents))
calls = st.one_of(edits, st.lists(edits, min_size=2, max_size=2), changes.map(lambda some: ("", some)))
rounds = st.lists(calls, min_size=1, max_size=3)


def _edit(root: Path, path: str, data: bytes | None) -> None:
    """Do what a file tool does, which leaves links and folders alone."""
    place = root / path
    with suppress(OSError):
        if place.is_symlink() or place.is_dir() or not _is_inside(root, place):
            return
        if data is None:
            place.unlink()
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)


async def _run(place: KeptWorkspace, call: Any) -> None:
    """Run two edits, one edit, or a command that makes changes."""
    match call:
        case [(str(), _), (str(), _)]:
            for path, data in call:
                await place.edit(partial(_edit, place.folder, path, data), path)
        case (str(path), data) if path:
            await place.edit(partial(_edit, place.folder, path, data), path)
        case (_, changes):
            await place.snapshots.rounds.before_effect(call_in(place.folder))
            for change in changes:
                change(place.folder)


def _state(place: KeptWorkspace) -> object:
    return place.state(), place.folders()


@settings(max_examples=15, deadline=None)
@given(changes, st.lists(st.lists(rounds, min_size=1, max_size=2), min_size=1, max_size=3))
def test_undo_restores_each_state_after_edits_and_commands(begin: list[Change], turns: list[list[list[Any]]]) -> None:
    async def main(place: KeptWorkspace) -> None:
        for change in begin:
            change(place.folder)
        states = [_state(place)]
        for turn in turns:
            await place.begin_turn()
            for round_ in turn:
                for call in round_:
                    await _run(place, call)
                await place.end_round()
            await place.end_turn()
            if _state(place) != states[-1]:
                states.append(_state(place))
        for before in reversed(states[:-1]):
            await place.undo()
            assert _state(place) == before
        for after in states[1:]:
            await place.redo()
            assert _state(place) == after
        assert place.warnings == []

    with TemporaryDirectory() as name:
        anyio.run(main, KeptWorkspace(Path(name).resolve()))


@settings(max_examples=12, deadline=None)
@given(changes, st.lists(changes, min_size=1, max_size=3))
def test_undo_of_every_turn_restores_each_state(begin: list[Change], turns: list[list[Change]]) -> None:
    async def main(place: KeptWorkspace) -> None:
        for change in begin:
            change(place.folder)
        states = [_state(place)]
        for turn in turns:
            await place.turn(lambda turn=turn: [change(place.folder) for change in turn])
            if _state(place) != states[-1]:
                states.append(_state(place))
        for before in reversed(states[:-1]):
            await place.undo()
            assert _state(place) == before
        for after in states[1:]:
            await place.redo()
            assert _state(place) == after
        assert place.warnings == []

    with TemporaryDirectory() as name:
        anyio.run(main, KeptWorkspace(Path(name).resolve()))
