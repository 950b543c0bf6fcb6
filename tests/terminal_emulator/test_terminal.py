import signal
import sys

import pytest

from tests.terminal_emulator.keys import ctrl
from tests.terminal_emulator.terminal import Terminal

PROMPT = """
import asyncio
from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout

async def main():
    session = PromptSession("❯ ")
    async def talk():
        for number in range(200):
            print(f"line {number:04}")
            await asyncio.sleep(0.001)
        print("silence")
    with patch_stdout(raw=True):
        talking = asyncio.create_task(talk())
        text = await session.prompt_async()
        await talking
    print(f"got {len(text)}: {text[:20]}")

asyncio.run(main())
"""


def python(code: str, **options: object) -> Terminal:
    return Terminal([sys.executable, "-c", code], **options)  # type: ignore[arg-type]


def test_typed_text_reaches_the_program_and_the_screen() -> None:
    with Terminal(["sh", "-c", 'read line; echo "you said $line"; exit 3']) as terminal:
        terminal.send("hello\r")
        terminal.wait_for("you said hello")

        assert terminal.wait() == 3
        assert terminal.has_settings_of_before
        assert terminal.left_over() == []


def test_missing_text_fails_and_shows_the_screen() -> None:
    with Terminal(["echo", "hello"]) as terminal:
        with pytest.raises(AssertionError, match=r"(?s)ended before.*'goodbye'.*hello"):
            terminal.wait_for("goodbye")


def test_text_printed_above_a_prompt_is_in_the_scrollback_once() -> None:
    with python(PROMPT) as terminal:
        terminal.wait_for("❯")
        terminal.send("typed meanwhile")
        terminal.wait_for(lambda screen: "silence" in screen.text and screen.before_cursor == "❯ typed meanwhile")
        terminal.send("\r")
        terminal.wait_for("got 15: typed meanwhile")
        code = terminal.wait()

    lines = [line for line in terminal.text.splitlines() if line.startswith("line ")]
    assert lines == [f"line {number:04}" for number in range(200)]
    assert code == 0
    assert not terminal.read(lambda screen: screen.has_bracketed_paste)


def test_long_paste_arrives_whole() -> None:
    with python(PROMPT) as terminal:
        terminal.wait_for(lambda screen: screen.has_bracketed_paste)
        terminal.paste("0123456789" * 3000)
        terminal.send("\r")
        terminal.wait_for("got 30000: 01234567890123456789")


def test_size_changes_under_the_program() -> None:
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print('now', *os.get_terminal_size(), flush=True))\n"
        "print('ready', *os.get_terminal_size(), flush=True)\n"
        "while True: signal.pause()"
    )
    with python(code, columns=100, rows=30) as terminal:
        terminal.wait_for("ready 100 30")
        terminal.resize(60, 20)
        terminal.wait_for("now 60 20")
        terminal.signal(signal.SIGTERM)

        assert terminal.wait() == 143


def test_ctrl_c_is_the_interrupt_of_the_terminal() -> None:
    with Terminal(["sh", "-c", "echo ready; exec sleep 60"]) as terminal:
        terminal.wait_for("ready")
        terminal.send(ctrl("c"))

        assert terminal.wait() == 130


def test_program_learns_that_its_window_is_closed() -> None:
    with Terminal(["sh", "-c", "echo ready; exec sleep 60"]) as terminal:
        terminal.wait_for("ready")
        terminal.hang_up()

        assert terminal.wait() == 129


def test_settings_that_are_left_changed_are_noticed() -> None:
    with Terminal(["sh", "-c", "stty raw -echo"]) as terminal:
        terminal.wait()

        assert not terminal.has_settings_of_before


def test_leftover_process_is_found_and_ended() -> None:
    code = (
        "import subprocess; quiet = subprocess.DEVNULL\n"
        "subprocess.Popen(['sleep', '60'], start_new_session=True, stdin=quiet, stdout=quiet, stderr=quiet)\n"
        "print('gone')"
    )
    with python(code) as terminal:
        terminal.wait_for("gone")
        terminal.wait()
        found = terminal.left_over(within_s=0)

    assert found == ["sleep 60"]
    assert terminal.left_over() == []
