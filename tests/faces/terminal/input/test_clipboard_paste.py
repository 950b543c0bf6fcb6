"""The picture in the clipboard becomes a mention of a private file, or a sentence."""

import shlex
import stat
import sys
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.filters import Never

from panpan.faces.terminal.input import clipboard
from panpan.faces.terminal.input.clipboard import save_picture
from panpan.faces.terminal.input.draft import ClipboardPaste, Draft, Pastes
from panpan.faces.terminal.input.input_box import InputBox

PICTURE = b"\x89PNG\r\n\x1a\n and the rest"
LIMIT_S = 20
"""Seconds within which what a test waits for has to happen."""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "picture.png"


class Programs:
    """A folder of programs that know a clipboard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def add(self, name: str, code: str) -> None:
        """Add a program in Python; `out` takes bytes, `args` are its arguments."""
        script = self.folder / f"{name}.py"
        script.write_text(f"import sys, time\nout, args = sys.stdout.buffer, sys.argv[1:]\n{code}\n")
        program = self.folder / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(script)])} "$@"\n')
        program.chmod(0o755)

    def env(self, *displays: str) -> dict[str, str]:
        return {"PATH": str(self.folder), **dict.fromkeys(displays, "here")}


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path / "bin")


def prints(data: bytes) -> str:
    return f"out.write({data!r})"


@pytest.mark.parametrize(
    ("name", "displays", "code"),
    [
        ("wl-paste", ["WAYLAND_DISPLAY"], prints(PICTURE)),
        ("xclip", ["DISPLAY"], prints(PICTURE)),
        ("pngpaste", [], prints(PICTURE)),
        ("osascript", [], f"open(args[-1], 'wb').write({PICTURE!r})"),
    ],
)
async def test_picture_is_put_into_a_file(programs, file, name, displays, code):
    programs.add(name, code)

    assert await save_picture(file, programs.env(*displays)) == ""
    assert file.read_bytes() == PICTURE


async def test_next_program_is_asked_if_one_has_no_picture(programs, file):
    programs.add("wl-paste", "sys.exit('nothing is copied')")
    programs.add("xclip", prints(PICTURE))

    assert await save_picture(file, programs.env("WAYLAND_DISPLAY", "DISPLAY")) == ""
    assert file.read_bytes() == PICTURE


@pytest.mark.parametrize("code", ["sys.exit(1)", prints(b"no picture"), prints(b"")])
async def test_paste_without_a_picture_says_so_and_leaves_nothing(programs, file, code):
    programs.add("xclip", code)

    assert "no picture" in await save_picture(file, programs.env("DISPLAY"))
    assert not file.exists()


async def test_missing_program_error_says_what_to_install(programs, file):
    programs.add("xclip", prints(PICTURE))

    assert "install" in await save_picture(file, programs.env())
    assert not file.exists()


async def test_program_that_does_not_answer_is_given_up(programs, file, monkeypatch):
    monkeypatch.setattr(clipboard, "TIMEOUT_S", 0.2)
    programs.add("xclip", "time.sleep(600)")

    with anyio.fail_after(LIMIT_S):
        assert "no picture" in await save_picture(file, programs.env("DISPLAY"))
    assert not file.exists()


@pytest.mark.parametrize("code", [prints(PICTURE), prints(b"no picture"), "sys.exit(1)"])
@pytest.mark.parametrize("leads_to", ["theirs", "new"])
async def test_picture_is_written_through_no_link(programs, file, code, leads_to):
    (file.parent / "theirs").write_text("precious")
    file.symlink_to(leads_to)
    programs.add("xclip", code)

    with pytest.raises(FileExistsError):
        await save_picture(file, programs.env("DISPLAY"))

    assert (file.parent / "theirs").read_text() == "precious"
    assert not (file.parent / "new").exists()


async def test_pasted_file_is_mentioned_at_the_caret_and_private(programs, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    programs.add("pngpaste", prints(PICTURE))
    box, said, folders, pasted = InputBox(lambda: "> "), [], [], anyio.Event()
    box.buffer.complete_while_typing = Never()  # it would need an application
    draft = Draft(box, Pastes())
    draft.put("look at ")
    box.buffer.on_text_changed += lambda _: pasted.set()
    clipboard = ClipboardPaste(draft, programs.env(), folders.append, said.append)

    with anyio.fail_after(LIMIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clipboard.run)
            clipboard.want()
            await pasted.wait()
            (folder,) = folders
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert (folder / "picture-1.png").read_bytes() == PICTURE
            tasks.cancel_scope.cancel()

    assert draft.text == f"look at @{folder}/picture-1.png "
    assert said == []
    assert not folder.exists()


async def test_picture_that_cannot_be_kept_is_reported(programs, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    said, was_said = [], anyio.Event()

    def say(text):
        said.append(text)
        was_said.set()

    clipboard = ClipboardPaste(None, programs.env(), lambda folder: None, say)

    with anyio.fail_after(LIMIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clipboard.run)
            clipboard.want()
            await was_said.wait()
            tasks.cancel_scope.cancel()

    assert "cannot be kept" in said[0]
