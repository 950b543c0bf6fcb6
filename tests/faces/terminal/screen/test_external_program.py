"""Other programs that get the terminal: one at a time, and nothing that was typed is lost."""

import os
import sys
from contextlib import asynccontextmanager

import anyio
import pytest

from panpan.faces.terminal.screen.external_program import ExternalProgram

LIMIT_S = 20
"""Seconds within which what a test waits for has to happen."""


class FakeScreen:
    """A terminal that other programs may have."""

    def __init__(self):
        self.is_handed_over = False
        self.hand_overs = 0
        self.shown = []
        self.can_stop = True

    def show(self, *lines):
        self.shown += lines

    async def suspend(self):
        self.hand_overs += 1
        return self.can_stop

    @asynccontextmanager
    async def released(self):
        self.is_handed_over = True
        self.hand_overs += 1
        try:
            yield
        finally:
            self.is_handed_over = False


class FakeDraft:
    """Typed text."""

    def __init__(self, text, unfolded=None):
        self.text = text
        self.unfolded = unfolded or text

    def replace(self, text):
        self.text = text

    def put(self, text):
        if text:
            self.text = f"{text}\n{self.text}"


class Terminal:
    """A hand-over and what is around it."""

    def __init__(self, tmp_path, draft="typed", *, unfolded=None, pages=(), **env):
        self.screen, self.draft, self.said = FakeScreen(), FakeDraft(draft, unfolded), []
        self.place = tmp_path
        self.other = ExternalProgram(
            self.draft, lambda on_prompt: pages, {"PATH": os.environ["PATH"], **env}, self.said.append
        )

    @asynccontextmanager
    async def running(self):
        with anyio.fail_after(LIMIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.other.run, self.screen)
                yield
                tasks.cancel_scope.cancel()

    def made(self, name):
        return (self.place / name).exists()


async def until(condition):
    while not condition():  # noqa: ASYNC110 - another process makes it true
        await anyio.sleep(0.01)


def program(tmp_path, code):
    """Return a command that runs Python code with the file's path in `path`, and what stands in `place` beside it."""
    script = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"
    script.write_text(
        f"import pathlib, sys, time\npath, place = pathlib.Path(sys.argv[-1]), pathlib.Path({str(tmp_path)!r})\n"
        f"def wait():\n    (place / 'open').touch()\n    while not (place / 'go').exists(): time.sleep(0.01)\n{code}\n"
    )
    return f"{sys.executable} {script}"


async def test_editor_gets_pastes_whole_and_its_text_is_typed(tmp_path):
    editor = program(tmp_path, "wait(); path.write_text(path.read_text() + '!')")
    terminal = Terminal(tmp_path, "look: [pasted]", unfolded="look: a long text", EDITOR=editor)

    async with terminal.running():
        terminal.other.open_editor()
        await until(lambda: terminal.made("open"))
        assert terminal.screen.is_handed_over
        (tmp_path / "go").touch()
        await until(lambda: not terminal.screen.is_handed_over)

    assert terminal.draft.text == "look: a long text!"
    assert terminal.said == []


async def test_long_text_is_read_in_the_pager(tmp_path):
    pager = program(tmp_path, "(place / 'read').write_text(path.read_text())")
    terminal = Terminal(tmp_path, PAGER=pager)

    await terminal.other.read(["first", "\x1b[2Jlast"], terminal.screen, from_end=False)

    assert (tmp_path / "read").read_text().splitlines()[0] == "first"
    assert "\x1b" not in (tmp_path / "read").read_text()
    assert (terminal.screen.hand_overs, terminal.screen.is_handed_over) == (1, False)


async def test_text_returned_to_the_input_meanwhile_is_kept(tmp_path):
    terminal = Terminal(tmp_path, "", EDITOR=program(tmp_path, "wait(); path.write_text('edited')"))

    async with terminal.running():
        terminal.other.open_editor()
        await until(lambda: terminal.made("open"))
        terminal.draft.put("was not delivered")
        (tmp_path / "go").touch()
        await until(lambda: not terminal.screen.is_handed_over)

    assert terminal.draft.text.split() == ["was", "not", "delivered", "edited"]


async def test_editor_that_fails_is_said_and_the_text_stays(tmp_path):
    terminal = Terminal(tmp_path, EDITOR=program(tmp_path, "sys.exit(1)"))

    async with terminal.running():
        terminal.other.open_editor()
        await until(lambda: terminal.said)

    assert "exit code 1" in terminal.said[0]
    assert terminal.draft.text == "typed"
    assert not terminal.screen.is_handed_over


async def test_external_programs_run_one_after_the_other(tmp_path):
    pager = program(tmp_path, "(place / 'paged').write_text(path.read_text())")
    editor = program(tmp_path, "wait(); path.write_text('edited')")
    terminal = Terminal(tmp_path, pages=["printed"], EDITOR=editor, PAGER=pager)

    async with terminal.running():
        terminal.other.open_editor()
        await until(lambda: terminal.made("open"))
        terminal.other.open_pager()
        await anyio.wait_all_tasks_blocked()
        assert not terminal.made("paged")
        (tmp_path / "go").touch()
        await until(lambda: terminal.screen.hand_overs == 2 and not terminal.screen.is_handed_over)

    assert (tmp_path / "paged").read_text() == "printed\n"
    assert terminal.draft.text == "edited"


@pytest.mark.parametrize(
    ("pages", "env", "said"),
    [((), {}, "there are no messages yet"), (["x"], {"PAGER": "'less"}, "PAGER cannot be read")],
)
async def test_terminal_is_kept_or_restored_without_output_or_pager(tmp_path, pages, env, said):
    terminal = Terminal(tmp_path, pages=pages, **env)

    async with terminal.running():
        terminal.other.open_pager()
        await until(lambda: terminal.said)

    assert said in terminal.said[0]
    assert not terminal.screen.is_handed_over


@pytest.mark.parametrize(("can_stop", "said"), [(True, []), (False, ["there is no shell to go back to"])])
async def test_shell_gets_the_terminal_or_its_absence_is_reported(tmp_path, can_stop, said):
    terminal = Terminal(tmp_path)
    terminal.screen.can_stop = can_stop

    async with terminal.running():
        terminal.other.suspend()
        await until(lambda: terminal.screen.hand_overs)
        await anyio.wait_all_tasks_blocked()

    assert terminal.said == said


async def test_editor_file_is_named_when_panpan_ends(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    terminal = Terminal(tmp_path, EDITOR=program(tmp_path, "path.write_text('edited'); wait()"))

    async with terminal.running():
        terminal.other.open_editor()
        await until(lambda: terminal.made("open"))

    (line,) = terminal.screen.shown
    (file,) = temporary.glob("*/prompt.md")
    assert line.endswith(f" {file}")
    assert file.read_text() == "edited"
    assert terminal.draft.text == "edited"
    assert not terminal.screen.is_handed_over
