"""A prompt in the user's own editor."""

import os
import stat
import sys
from pathlib import Path

import anyio
import pytest

from panpan.faces.terminal.screen.external_program import EditorFailed, edit_in_editor, editor_command


def editor(tmp_path: Path, code: str) -> str:
    """Return a command that runs Python code with the file's path in `path`."""
    script = tmp_path / "an editor.py"
    script.write_text(f"import sys, os, pathlib\npath = pathlib.Path(sys.argv[-1])\n{code}\n")
    return f"{sys.executable} '{script}' --wait"


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return {"PATH": os.environ["PATH"], "EDITOR": "no-such-editor"}


def left_over(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "temporary").iterdir())


async def test_saved_text_comes_back_and_nothing_is_left_on_disk(tmp_path: Path, env: dict[str, str]) -> None:
    env["VISUAL"] = editor(tmp_path, "path.write_text(path.read_text() + ' and more\\n')")

    assert await edit_in_editor("first\nsecond", env) == "first\nsecond and more"
    assert left_over(tmp_path) == []


async def test_file_is_private_and_markdown(tmp_path: Path, env: dict[str, str]) -> None:
    code = "path.write_text(f'{path.suffix} {path.stat().st_mode & 0o777:o} {path.parent.stat().st_mode & 0o777:o}')"
    env["VISUAL"] = editor(tmp_path, code)

    assert await edit_in_editor("", env) == ".md 600 700"


async def test_editor_that_replaces_the_file_is_fine(tmp_path: Path, env: dict[str, str]) -> None:
    env["VISUAL"] = editor(tmp_path, "new = path.with_name('new'); new.write_text('other'); new.replace(path)")

    assert await edit_in_editor("text", env) == "other"


async def test_control_characters_are_taken_out(tmp_path: Path, env: dict[str, str]) -> None:
    env["VISUAL"] = editor(tmp_path, r"path.write_bytes(b'a\tb\r\nc\x1b[2Jd\x00\n')")

    assert await edit_in_editor("", env) == "a\tb\ncd"


async def test_editor_that_fails_leaves_the_text_as_it_was(tmp_path: Path, env: dict[str, str]) -> None:
    env["VISUAL"] = editor(tmp_path, "sys.exit(1)")

    failed = await edit_in_editor("text", env)

    assert isinstance(failed, EditorFailed)
    assert "exit code 1" in failed.reason
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("code", [r"path.write_bytes(b'\xff\xfe\xfa')", "path.write_bytes(b'x' * 5_000_001)"])
async def test_unacceptable_text_stays_in_its_named_file(tmp_path: Path, env: dict[str, str], code: str) -> None:
    env["VISUAL"] = editor(tmp_path, code)

    failed = await edit_in_editor("text", env)

    assert isinstance(failed, EditorFailed)
    (folder,) = left_over(tmp_path)
    assert str(folder / "prompt.md") in failed.reason
    assert (folder / "prompt.md").exists()


async def test_file_that_is_gone_is_told(tmp_path: Path, env: dict[str, str]) -> None:
    env["VISUAL"] = editor(tmp_path, "path.unlink()")

    assert isinstance(await edit_in_editor("text", env), EditorFailed)
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(("saved", "is_kept"), [("text and more", True), ("text", False)])
async def test_text_saved_before_a_cancel_is_kept_and_named(
    tmp_path: Path, env: dict[str, str], saved: str, is_kept: bool
) -> None:
    started = tmp_path / "started"
    env["VISUAL"] = editor(
        tmp_path, f"path.write_text({saved!r}); pathlib.Path({str(started)!r}).touch(); import time; time.sleep(600)"
    )
    kept: list[Path] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(edit_in_editor, "text", env, kept.append)
        with anyio.fail_after(20):
            while not started.exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()

    assert [file.read_text() for file in kept] == ([saved] if is_kept else [])
    assert len(left_over(tmp_path)) == len(kept)


@pytest.mark.parametrize("chosen", ["no-such-editor --wait", "'unfinished"])
async def test_editor_that_is_not_there_is_named(env: dict[str, str], chosen: str) -> None:
    failed = await edit_in_editor("text", env | {"EDITOR": chosen})

    assert isinstance(failed, EditorFailed)
    assert "EDITOR" in failed.reason
    assert chosen in failed.reason


def test_default_editor_is_one_of_the_system(tmp_path: Path) -> None:
    vi = tmp_path / "vi"
    vi.touch()
    vi.chmod(vi.stat().st_mode | stat.S_IXUSR)

    assert editor_command({"PATH": str(tmp_path)}) == [str(vi)]
    assert isinstance(editor_command({"PATH": str(tmp_path / "none")}), EditorFailed)
    assert editor_command({"PATH": str(tmp_path), "VISUAL": "vi -n", "EDITOR": "other"}) == [str(vi), "-n"]
