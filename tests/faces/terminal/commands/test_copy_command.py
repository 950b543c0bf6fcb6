"""Copied texts, and their ways into a clipboard."""

import base64
from pathlib import Path
from typing import Any

import pytest

from panpan.errors import ConfigError
from panpan.faces.terminal.commands.copy_command import MAX_SEQUENCE_BYTES, code_blocks
from panpan.faces.terminal.input.clipboard import writers
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage
from tests.faces.terminal.commands.command_fixtures import FakeTerminal, terminal_in, type_in

ANSWER = "Run this:\n\n```python\nprint('é')\n```\n\n- or that:\n\n  ~~~sh\n  ls\n  ~~~\n"


def answered(root: Path, text: str = ANSWER, **env: str) -> FakeTerminal:
    later = AssistantMessage(content=(), model="m")  # such as one of calls alone
    first = AssistantMessage(content=(TextBlock(text=text),), model="m")
    return terminal_in(root / "p", first, later, width=300, env={"PATH": str(root), **env})


def program(root: Path, name: str) -> Path:
    """Put a program on the PATH that keeps its input in a file, and return that."""
    (root / name).write_text(f"#!/bin/sh\n/bin/cat > {root}/{name}.txt\n")
    (root / name).chmod(0o755)
    return root / f"{name}.txt"


def in_terminal(terminal: FakeTerminal) -> str:
    """Return what the terminal was told to put into the clipboard."""
    head, _, text = terminal.sent.partition(b"\x1b]52;c;")
    assert (head, text[-1:]) == (b"", b"\x07")
    return base64.b64decode(text[:-1], validate=True).decode()


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        ("/copy", ANSWER, "copied the last answer, 11 lines: by your terminal, if it allows that (OSC 52)"),
        ("/copy 1", "print('é')\n", "copied code block 1 of 2, 1 line: "),
        ("/copy 2", "ls\n", "copied code block 2 of 2, 1 line: "),
    ],
)
async def test_copy_gives_the_terminal_the_answer_or_a_block(tmp_path: Path, line: str, text: str, said: str) -> None:
    terminal = await type_in(answered(tmp_path), line)

    assert in_terminal(terminal) == text
    assert said in terminal.text


async def test_copy_omits_text_that_a_shell_would_obey_on_pasting(tmp_path: Path) -> None:
    kept = program(tmp_path, "xclip")
    hostile = "```sh\nls\x1b[201~\nrm -r x\x1b[200~\x08\u202e\n```\n"
    terminal = await type_in(answered(tmp_path, hostile, DISPLAY=":0"), "/copy 1")

    assert in_terminal(terminal) == kept.read_text() == "ls\nrm -r x<U+202E>\n", "as it was shown"


async def test_copy_gives_the_text_to_the_programs_that_work_here(tmp_path: Path) -> None:
    kept = program(tmp_path, "xclip")
    program(tmp_path, "wl-copy")
    terminal = await type_in(answered(tmp_path, DISPLAY=":0"), "/copy 1")

    assert kept.read_text() == "print('é')\n"
    assert ": by xclip and by your terminal" in terminal.text
    assert [Path(command[0]).name for command in writers({"PATH": str(tmp_path), "WAYLAND_DISPLAY": "w"})] == [
        "wl-copy"
    ]


async def test_copy_without_a_screen_needs_a_program(tmp_path: Path) -> None:
    terminal = answered(tmp_path, DISPLAY=":0")
    terminal.has_look = False
    with pytest.raises(ConfigError, match="nothing takes it: install wl-copy"):
        await type_in(terminal, "/copy")

    kept = program(tmp_path, "xclip")
    await type_in(terminal, "/copy 2")
    assert kept.read_text() == "ls\n"
    assert "copied code block 2 of 2, 1 line: by xclip" in terminal.text


@pytest.mark.parametrize(
    ("line", "has"), [("/copy 3", "2 code blocks"), ("/copy 0", "2 code blocks"), ("/copy x", "2")]
)
async def test_copy_of_a_missing_block_says_how_many_there_are(tmp_path: Path, line: str, has: str) -> None:
    with pytest.raises(ConfigError, match=f"the last answer has {has}"):
        await type_in(answered(tmp_path), line)


async def test_copy_before_any_answer_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the model has not answered in this session yet"):
        await type_in(terminal_in(tmp_path / "p"), "/copy")


async def test_copy_too_long_for_the_terminal_is_not_sent_to_it(tmp_path: Path) -> None:
    kept = program(tmp_path, "pbcopy")
    terminal: Any = await type_in(answered(tmp_path, "x" * MAX_SEQUENCE_BYTES), "/copy")

    assert terminal.sent == b""
    assert len(kept.read_text()) == MAX_SEQUENCE_BYTES
    assert terminal.text.endswith(": by pbcopy")


def test_code_blocks_are_the_fenced_ones() -> None:
    assert code_blocks("`a`\n\n    indented\n\n````\n```\nb\n```\n````\n\n```\nnot closed") == [
        "```\nb\n```\n",
        "not closed",
    ]
