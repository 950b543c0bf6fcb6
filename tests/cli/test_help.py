"""Help of the command line: short at first, whole on demand, the same for a shell and a manual."""

import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from panpan.cli.help_command import COMMON
from panpan.cli.main import cli


def said(*arguments: str, **options: int) -> str:
    result = CliRunner().invoke(cli, arguments, prog_name="panpan", **options)  # type: ignore[arg-type]
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("width", [80, 110])
def test_short_help_fits_a_screen_and_names_the_whole(width: int) -> None:
    shown = said("--help", terminal_width=width)

    assert len(shown.splitlines()) < 60
    assert all(f"{group}:" in shown for group in (*COMMON, "Commands"))
    assert "--help-all" in shown


def test_whole_help_has_every_option() -> None:
    shown = said("--help-all", terminal_width=110)

    options = [param for param in cli.params if isinstance(param, click.Option)]
    assert len(options) > 40
    assert [name for param in options for name in param.opts if name not in shown] == []
    assert "Exit codes" in shown


def completed(*words: str) -> list[str]:
    """Return what a shell offers behind these words."""
    env = {"COMP_WORDS": f"panpan {' '.join(words)} ", "COMP_CWORD": str(len(words) + 1)}
    env |= {"_PANPAN_COMPLETE": "bash_complete", "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    code = "from panpan.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_completion_knows_commands_and_subcommands() -> None:
    assert {"doctor", "sessions", "completion"} <= set(completed())
    assert {"export", "list", "show"} <= set(completed("sessions"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(shell: str) -> None:
    script = said("completion", shell)

    assert f"_PANPAN_COMPLETE={shell}_complete" in script.replace("\\\n", "")


def test_manual_page_has_every_option_and_command() -> None:
    page = said("man").replace("\\-", "-")

    assert page.startswith('.TH PANPAN 1 "" "panpan ')
    names = [name for param in cli.params for name in param.opts if name.startswith("--")]
    assert [name for name in names if name not in page] == []
    assert all(f".SS panpan {name}\n" in page for name in ("doctor", "sessions", "trust"))
    assert not any(line.startswith(("'", ".")) and not line[1:2].isupper() and line[:3] not in (".nf", ".fi")
                   for line in page.splitlines())  # fmt: skip
