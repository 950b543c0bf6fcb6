"""The one prompt of a run is what was said and what was piped in; a pipe that stays silent is told."""

import os
import threading
from pathlib import Path

import pytest

from panpan.cli_kit.stdin import StdinReader
from panpan.errors import ConfigError
from panpan.faces.headless.prompts import WAITING, prompt_of_text
from panpan.types.content import TextBlock


async def test_silent_pipe_is_reported_once_and_still_read() -> None:
    read_fd, write_fd = os.pipe()
    told: list[str] = []
    is_told = threading.Event()

    def warn(text: str) -> None:
        told.append(text)
        is_told.set()

    def write_late() -> None:
        is_told.wait(20)
        with os.fdopen(write_fd, "w") as pipe:
            pipe.write("late")

    writer = threading.Thread(target=write_late)
    writer.start()
    with os.fdopen(read_fd) as stream:
        prompt = await prompt_of_text("x", StdinReader(stream), warn, silence_s=0.01)
    writer.join()

    assert told == [WAITING]
    assert [block.text for block in prompt.content if isinstance(block, TextBlock)] == ["x", "late"]
    assert prompt.typed == "x"


async def test_pipe_with_data_or_closed_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("from a file")
    read_fd, write_fd = os.pipe()
    os.close(write_fd)
    told: list[str] = []

    with (tmp_path / "in").open() as file, os.fdopen(read_fd) as closed:
        of_file = await prompt_of_text(None, StdinReader(file), told.append, silence_s=0)
        of_closed = await prompt_of_text("x", StdinReader(closed), told.append, silence_s=0)
        of_nothing = await prompt_of_text("y", None, told.append, silence_s=0)

    assert [prompt.typed for prompt in (of_file, of_closed, of_nothing)] == ["from a file", "x", "y"]
    assert told == []


async def test_run_without_a_prompt_is_an_error_for_the_user(tmp_path: Path) -> None:
    (tmp_path / "in").write_text(" \n")

    with (tmp_path / "in").open() as file, pytest.raises(ConfigError, match="there is no prompt"):
        await prompt_of_text("", StdinReader(file), lambda _: None)
