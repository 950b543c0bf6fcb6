"""Unsaved changes of the editor: the model reads of them, and no file is changed below them."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.capabilities.mcp.place import Place, Use
from tests.faces.acp.editor import AgentError, Answer, editing, yes

FS = {"fs": {"readTextFile": True, "writeTextFile": True}}
READ: Use = ("Read", {"file_path": "old.txt"})
EDIT: Use = ("Edit", {"file_path": "old.txt", "old_string": "two", "new_string": "2"})
WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})
SAVED = "one\ntwo\nthree\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path.resolve())
    (place.root / "old.txt").write_text(SAVED)
    return place


def showing(content: Any) -> Answer:
    """Return an editor that shows something in every file."""

    def answer(method: str, params: dict[str, Any]) -> Any:
        if method != "fs/read_text_file":
            return yes(method, params)
        return content if isinstance(content, AgentError) else {"content": content}

    return answer


def results_in(place: Place) -> str:
    """Return the log, in which results are as the model got them."""
    return next(place.home.glob("projects/*/sessions/*.jsonl")).read_text()


async def test_model_reads_of_unsaved_changes(place: Place) -> None:
    async with editing(place, READ, "seen", answer=showing("one\nTWO\nthree\n"), client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert editor.asked("fs/read_text_file")[0]["path"] == str(place.root / "old.txt")
    log = results_in(place)
    assert "The user's editor has unsaved changes in" in log
    assert "-two\\n+TWO" in log


@pytest.mark.parametrize(("times", "said"), [(1, "more lines"), (20, "too long to be compared")])
async def test_buffer_that_is_slow_to_compare_costs_little(place: Place, times: int, said: str) -> None:
    lines = [f"{number % 200}\n" for number in range(60_000)]
    (place.root / "old.txt").write_text("".join(lines))
    shown = "".join(reversed(lines)) * times
    async with editing(place, READ, "seen", answer=showing(shown), client=FS) as editor:
        with anyio.fail_after(20):
            await editor.prompt(await editor.new(place.root))

    assert said in results_in(place)


async def test_file_with_unsaved_changes_stays_as_it_is(place: Place) -> None:
    async with editing(place, READ, EDIT, "a pity", answer=showing("one\ntwo\nfour\n"), client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert editor.asked() == []
    assert "unsaved changes" in str(editor.updates("tool_call_update")[-1])
    assert (place.root / "old.txt").read_text() == SAVED


@pytest.mark.parametrize(
    "content",
    [SAVED, "one\r\ntwo\r\nthree\r\n", "\ufeffone\ntwo\nthree", 7, None, AgentError({"code": 1, "message": "no"})],
)
async def test_buffer_that_is_saved_or_not_known_changes_nothing(place: Place, content: Any) -> None:
    async with editing(place, READ, EDIT, "done", answer=showing(content), client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert (place.root / "old.txt").read_text() == "one\n2\nthree\n"
    assert "unsaved" not in results_in(place)


async def test_editor_that_does_not_answer_costs_seconds(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("panpan.faces.acp.buffers.ANSWER_S", 0.01)

    def answer(method: str, params: dict[str, Any]) -> Any:
        return None if method == "fs/read_text_file" else yes(method, params)

    async with editing(place, READ, EDIT, "done", answer=answer, client=FS) as editor:
        await editor.prompt(await editor.new(place.root))

    assert (place.root / "old.txt").read_text() == "one\n2\nthree\n"


async def test_editor_without_buffers_and_new_files_are_not_asked(place: Place) -> None:
    async with editing(place, WRITE, READ, "done", client=FS) as editor:
        await editor.prompt(await editor.new(place.root))
    assert {one["path"] for one in editor.asked("fs/read_text_file")} == {str(place.root / "old.txt")}

    async with editing(place, READ, "done") as editor:
        await editor.prompt(await editor.new(place.root))
    assert editor.asked("fs/read_text_file") == []


async def test_denied_file_is_never_asked_for(place: Place) -> None:
    async with editing(place, READ, "done", client=FS, permission__deny=("Read(old.txt)",)) as editor:
        await editor.prompt(await editor.new(place.root))

    assert editor.asked("fs/read_text_file") == []
