"""Changes of files through the editor: its buffers are current, and nothing is lost whatever it does."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.capabilities.mcp.place import Place, Use
from tests.faces.acp.editor import AgentError, Editor, editing, yes
from tests.faces.acp.test_buffers import EDIT, FS, READ, SAVED, WRITE, results_in
from tests.faces.mcp_server.processes import a_day

AGAIN: Use = ("Edit", {"file_path": "old.txt", "old_string": "three", "new_string": "3"})
REFUSED = AgentError({"code": 1, "message": "no"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path.resolve())
    (place.root / "old.txt").write_text(SAVED)
    return place


class Buffers:
    """An editor with all files open.

    Args:
        save: Saves a text and returns the answer; by default in a new file, as some editors do.
    """

    def __init__(self, save: Callable[[Path, str], Any] | None = None) -> None:
        self.typed = ""
        self._save = save or self.replace

    def __call__(self, method: str, params: dict[str, Any]) -> Any:
        match method:
            case "fs/read_text_file":
                return {"content": f"{Path(params['path']).read_text()}{self.typed}"}
            case "fs/write_text_file":
                return self._save(Path(params["path"]), params["content"])
            case _:
                return yes(method, params)

    def replace(self, path: Path, text: str) -> Any:
        path.unlink()
        path.write_text(text)
        return {}


def written(editor: Editor) -> list[str]:
    return [one["content"] for one in editor.asked("fs/write_text_file")]


async def test_change_goes_through_the_editor(place: Place) -> None:
    (place.root / "old.txt").chmod(0o750)
    async with editing(place, READ, EDIT, AGAIN, "done", answer=Buffers(), client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert written(editor) == ["one\n2\nthree\n", "one\n2\n3\n"]
    assert (place.root / "old.txt").read_text() == "one\n2\n3\n"
    assert stat.S_IMODE((place.root / "old.txt").stat().st_mode) == 0o750
    assert editor.updates("tool_call_update")[-1]["status"] == "completed"


@pytest.mark.parametrize("answer", [REFUSED, {}], ids=["refuses", "does not save"])
async def test_disk_has_the_change_if_the_editor_fails(place: Place, answer: Any) -> None:
    async with editing(
        place, READ, EDIT, AGAIN, "done", answer=Buffers(lambda path, text: answer), client=FS
    ) as editor:
        await editor.prompt(await editor.new(place.root))

    assert len(written(editor)) == 2
    assert (place.root / "old.txt").read_text() == "one\n2\n3\n"


async def test_editor_that_does_not_answer_writes_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("panpan.faces.acp.buffers.WRITE_S", 0.01)
    async with editing(place, READ, EDIT, AGAIN, "done", answer=Buffers(lambda path, text: None), client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert len(written(editor)) == 1
    assert (place.root / "old.txt").read_text() == "one\n2\n3\n"


async def test_text_that_the_editor_formats_is_kept_and_told(place: Place) -> None:
    def save(path: Path, text: str) -> Any:
        path.write_text(text.upper())
        return {}

    again: Use = ("Edit", {"file_path": "old.txt", "old_string": "THREE", "new_string": "3"})
    async with editing(place, READ, EDIT, READ, again, "done", answer=Buffers(save), client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert "saved something else in old.txt" in results_in(place)
    assert len(written(editor)) == 1
    assert (place.root / "old.txt").read_text() == "ONE\n2\n3\n"


async def test_text_typed_during_the_question_is_kept(place: Place) -> None:
    buffers = Buffers()

    def answer(method: str, params: dict[str, Any]) -> Any:
        if method == "session/request_permission":
            buffers.typed = "four\n"
        return buffers(method, params)

    async with editing(place, READ, EDIT, "a pity", answer=answer, client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert len(editor.asked()) == 1
    assert written(editor) == []
    assert "unsaved changes in old.txt" in results_in(place)
    assert (place.root / "old.txt").read_text() == SAVED


async def test_change_is_taken_back_through_the_editor(place: Place) -> None:
    other = place.root / "other.txt"
    other.write_text("a\n")

    def save(path: Path, text: str) -> Any:
        path.write_text(text)
        other.write_text("of somebody else\n")
        return {}

    lines = ["*** Begin Patch"]
    for name, old, new in (("old.txt", "two", "2"), ("other.txt", "a", "b")):
        lines += [f"*** Update File: {name}", "@@", f"-{old}", f"+{new}"]
    patch: Use = ("Patch", {"patch": "\n".join([*lines, "*** End Patch"])})
    seen: Use = ("Read", {"file_path": "other.txt"})
    async with editing(place, READ, seen, patch, "a pity", answer=Buffers(save), client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert written(editor) == ["one\n2\nthree\n", SAVED]
    assert "so nothing is changed" in results_in(place)
    assert (place.root / "old.txt").read_text() == SAVED
    assert other.read_text() == "of somebody else\n"


@pytest.mark.parametrize("content", [b"one\r\ntwo\r\n", b"\xef\xbb\xbfone\ntwo\n", b"\xe9 two\n"])
async def test_text_that_editors_may_change_is_written_on_the_disk(place: Place, content: bytes) -> None:
    (place.root / "old.txt").write_bytes(content)
    shown = content.decode("utf-8-sig", errors="replace")

    def answer(method: str, params: dict[str, Any]) -> Any:
        return {"content": shown} if method == "fs/read_text_file" else yes(method, params)

    async with editing(place, READ, EDIT, WRITE, "done", answer=answer, client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert written(editor) == []
    assert (place.root / "old.txt").read_bytes() == content.replace(b"two", b"2")
    assert (place.root / "new.txt").read_text() == "hello\n"


async def test_editor_writes_nothing_while_a_command_runs(place: Place) -> None:
    sleep: Use = ("Bash", {"command": f"sleep {a_day()}", "description": "Wait", "run_in_background": True})
    async with editing(place, READ, sleep, EDIT, "done", answer=Buffers(), client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert written(editor) == []
    assert (place.root / "old.txt").read_text() == "one\n2\nthree\n"
