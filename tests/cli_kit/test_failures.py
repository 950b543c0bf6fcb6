"""Failures are told in words that fit the terminal; a damaged installation is no crash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import panpan
from tests.faces.memory import Memory
from tests.terminal_emulator.terminal import Terminal

PATH = "/home/somebody/a-folder/of-some-length/settings.toml"
SAID = f"the key of {PATH} may be read by others; run: chmod 600"
SAY = [sys.executable, "-c", f"from panpan.cli_kit.failures import say; say({SAID!r}); say('one\\n\\n  two')"]


def test_terminal_rows_end_between_words_and_keep_paths_whole() -> None:
    with Terminal(SAY, columns=40) as terminal:
        assert terminal.wait() == 0
        written = terminal.raw.decode().replace("\r\n", "\n")

    assert written == f"panpan: the key of\n{PATH}\nmay be read by others; run: chmod 600\npanpan: one\n\n  two\n"


@pytest.mark.parametrize(
    ("env", "has_colour"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({}, False),
    ],
)
def test_colour_needs_a_capable_terminal_and_a_willing_user(env: dict[str, str], has_colour: bool) -> None:
    assert Memory(is_terminal=True).has_colour(env) is has_colour
    assert not Memory().has_colour(env)


def test_sentence_elsewhere_is_a_line() -> None:
    done = subprocess.run(SAY, capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("", f"panpan: {SAID}\npanpan: one\n\n  two\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which Linux has")
def test_full_disk_behind_a_question_is_no_crash(tmp_path: Path) -> None:
    asks = "import sys; from panpan.cli_kit.questions import TerminalQuestions as Q; print('hi'); Q()"
    code = f"from panpan.cli_kit.failures import report_failure\ntry: {asks}\nexcept Exception as e: report_failure(e)"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            cwd=tmp_path,
        )

    assert done.stderr == "panpan: cannot write the output: No space left on device\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "part",
    [
        "capabilities/web/tools.json",
        "session/system_prompt.md",
        "config/models.json",
        "faces/headless/output_formats.py",
        "_shipped/agents",
    ],
)
def test_missing_part_is_named_with_advice(tmp_path: Path, part: str) -> None:
    package = tmp_path / "panpan"
    shutil.copytree(Path(panpan.__file__).parent, package, ignore=shutil.ignore_patterns("*.pyc.*"))
    shutil.copytree(Path(panpan.__file__).parents[1] / "agents", package / "_shipped" / "agents")
    place = package / part
    shutil.rmtree(place) if place.is_dir() else place.unlink()

    done = subprocess.run(
        [sys.executable, "-c", "from panpan.cli.main import main; main()", "-p", "hi"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PANPAN_HOME": str(tmp_path / "home"),
            "PYTHONPATH": str(tmp_path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    name = "panpan.faces.headless.output_formats" if part.endswith(".py") else str(package / part)
    said = f"panpan: the installation of panpan is damaged: {name} is missing; install panpan again\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
    assert not (tmp_path / "home" / "crashes").exists()
