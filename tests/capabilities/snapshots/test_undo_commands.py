"""/undo and /redo: what they show, and what they do after which answer."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from panpan.core.conversation import Conversation
from panpan.errors import ConfigError, SnapshotError
from panpan.session.capability import Capabilities
from panpan.types.messages import Message
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace
from tests.faces.terminal.commands.command_fixtures import FakeTerminal, type_in


@pytest.fixture
def place(tmp_path: Path) -> KeptWorkspace:
    return KeptWorkspace(tmp_path)


def offering(*objects: object) -> Capabilities:
    capabilities = Capabilities()
    capabilities.register(*objects)
    return capabilities


def terminal_of(place: KeptWorkspace, picks: int | None = None, *messages: Message) -> FakeTerminal:
    session = SimpleNamespace(find=offering(place.snapshots).find, conversation=Conversation(messages=messages))
    return FakeTerminal(session, {}, picks=picks)


async def test_undo_command_shows_the_difference_and_a_yes_undoes_it(place: KeptWorkspace) -> None:
    place.write("a.txt", "old\n")
    await place.turn(lambda: place.write("a.txt", "new\n"))
    terminal = await type_in(terminal_of(place, picks=0), "/undo")

    for said in ("undo changes 1 file +1 -1", "~ a.txt +1 -1", "-new", "+old", "redo takes it back"):
        assert said in terminal.text
    assert place.read("a.txt") == "old\n"
    await type_in(terminal_of(place, picks=0), "/redo")
    assert place.read("a.txt") == "new\n"


async def test_undo_command_shows_no_difference_of_generated_files(place: KeptWorkspace) -> None:
    cache = place.folder / "__pycache__"
    cache.mkdir()
    await place.turn(lambda: (place.write("a.txt", "new\n"), (cache / "a.cpython-311.pyc").write_bytes(b"\0\1")))
    terminal = await type_in(terminal_of(place, picks=0), "/undo")

    assert "1 generated file" in terminal.text
    assert "b/a.txt" in terminal.text
    assert ".pyc" not in terminal.text
    assert not (cache / "a.cpython-311.pyc").exists()


@pytest.mark.parametrize(("picks", "said"), [(1, "nothing was changed"), (None, "your files are still unchanged")])
async def test_undo_command_changes_nothing_without_a_yes(place: KeptWorkspace, picks: int | None, said: str) -> None:
    await place.turn(lambda: place.write("a.txt", "new\n"))
    terminal = await type_in(terminal_of(place, picks=picks), "/undo")

    assert terminal.text.endswith(said)
    assert place.read("a.txt") == "new\n"


async def test_undo_command_names_files_that_stay(place: KeptWorkspace) -> None:
    place.write("theirs", "old\n")
    await place.turn(lambda: (place.write("theirs", "new\n"), place.write("ours", "new\n")))
    place.write("theirs", "user\n")
    terminal = await type_in(terminal_of(place, picks=0), "/undo")

    assert "! theirs: the same lines were changed since" in terminal.text
    assert terminal.options[0].label == "Yes, and leave those that you changed since"
    assert (place.read("theirs"), (place.folder / "ours").exists()) == ("user\n", False)


async def test_undo_command_can_skip_an_impossible_step(place: KeptWorkspace) -> None:
    await place.turn(lambda: place.write("first", "1\n"))
    await place.turn(lambda: place.write("second", "2\n"))
    place.write("second", "user\n")
    await type_in(terminal_of(place, picks=0), "/undo")
    await type_in(terminal_of(place, picks=0), "/undo")

    assert place.state().keys() == {"second"}


async def test_undo_command_skips_a_step_already_as_before(place: KeptWorkspace) -> None:
    await place.turn(lambda: place.write("first", "1\n"))
    await place.turn(lambda: place.write("second", "2\n"))
    (place.folder / "second").unlink()
    terminal = await type_in(terminal_of(place, picks=None), "/undo")
    await type_in(terminal_of(place, picks=0), "/undo")

    assert "already as before" in terminal.text
    assert place.state() == {}


async def test_undo_command_shows_names_and_content_harmlessly(place: KeptWorkspace) -> None:
    name = "evil\x1b[2J\n.txt"
    await place.turn(lambda: place.write(name, "\x1b]0;title\x07\n"))
    terminal = await type_in(terminal_of(place, picks=None), "/undo")

    assert "\x1b[2J" not in "".join(terminal.rows)
    assert "\x1b]0" not in "".join(terminal.rows)
    assert "\x07" not in "".join(terminal.rows)


@pytest.mark.parametrize("line", ["/undo", "/redo"])
async def test_undo_command_says_that_there_is_nothing(place: KeptWorkspace, line: str) -> None:
    with pytest.raises(SnapshotError, match="there is nothing to"):
        await type_in(terminal_of(place, picks=0), line)


async def test_undo_command_says_that_snapshots_are_disabled() -> None:
    session = SimpleNamespace(find=Capabilities().find)

    with pytest.raises(ConfigError, match=r"undo is unavailable: snapshots are disabled"):
        await type_in(FakeTerminal(session, {}), "/undo")


async def diff_lines(place: KeptWorkspace, *messages: Message) -> list[str]:
    terminal = await type_in(terminal_of(place, None, *messages), "/diff")
    return [re.sub("\x1b[^m]*m", "", line) for line in (*terminal.rows, *terminal.read_lines)]


async def test_diff_shows_changes_of_all_turns_but_not_the_users(place: KeptWorkspace) -> None:
    place.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n")
    first = await place.turn(lambda: place.write("a.txt", "one\n2\n3\n4\n5\n6\n7\n8\n"))
    await place.turn(lambda: place.write("b.txt", "new\n"))
    place.write("a.txt", "one\n2\n3\n4\n5\n6\n7\nmine\n")
    lines = await diff_lines(place, first)

    assert lines[0] == "changed in this session: 2 files +2 -1"
    assert [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")] == ["-1", "+one", "+new"]


async def test_diff_names_files_mixed_with_the_users_changes(place: KeptWorkspace) -> None:
    first = await place.turn(lambda: place.write("a.txt", "new\n"))
    place.write("a.txt", "user\n")
    lines = await diff_lines(place, first)

    assert lines[1:3] == ["not shown, since you changed the same lines:", "  a.txt"]


async def test_changes_tell_new_and_deleted_files(place: KeptWorkspace) -> None:
    place.write("old.txt", "1\n2\n")
    first = await place.turn(lambda: (place.write("new.txt", "1\n"), (place.folder / "old.txt").unlink()))
    changes = await place.snapshots.changes(first.uuid)

    found = {change.path: (change.kind, change.added, change.deleted) for change in changes.files}
    assert found == {"new.txt": ("added", 1, 0), "old.txt": ("deleted", 0, 2)}


async def test_diff_without_changes_says_so(place: KeptWorkspace) -> None:
    assert "this session has changed no files" in (await diff_lines(place))[0]
    assert "this session has changed no files" in (await diff_lines(place, await place.turn()))[0]
