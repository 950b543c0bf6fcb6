"""What is said beside the output of a command that failed because of panpan."""

from dataclasses import replace
from pathlib import Path

import pytest

from panpan.system.limits import Limits
from panpan.system.process import ProcessEnded
from panpan.system.sandbox.command_sandbox import Start
from panpan.system.sandbox.profile import read_only
from panpan.tools.shell.failure_notes import failure_notes
from tests.fakes.context import context_in

BOXED = Start(["true"], {}, read_only())


def notes(
    output: str, tmp_path: Path, *, exit_code: int = 1, timed_out: bool = False, start: Start = BOXED
) -> list[str]:
    ctx = replace(
        context_in(tmp_path),
        limits=Limits(processes=100),
        own_environment={"MY_DATA": "/data", "MY_TOKEN": "0123456789abcdef"},
    )
    return failure_notes(output, ProcessEnded(exit_code, timed_out), start, ctx)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("touch: cannot touch 'x': Read-only file system", 'call again with sandbox "off"; the user is asked then'),
        ("curl: (6) Could not resolve host: example.org", 'call again with sandbox "network"; the user is asked then'),
        ("bash: fork: retry: Resource temporarily unavailable", "setting limits.processes"),
        ("KeyError: 'MY_DATA'", 'environment.pass_env = ["MY_DATA"]'),
        ("bash: MY_TOKEN: unbound variable", "named like a secret"),
    ],
)
def test_each_way_of_panpan_to_be_in_the_way_is_told(output: str, said: str, tmp_path: Path) -> None:
    (note,) = notes(output, tmp_path)
    assert said in note


def test_only_the_end_of_a_long_output_counts(tmp_path: Path) -> None:
    output = "Read-only file system\nKeyError: 'MY_DATA'\nfork: Resource temporarily unavailable\n"
    assert len(notes(output, tmp_path)) == 3
    assert notes(output + "x\n" * 100_000, tmp_path) == []


def test_a_command_outside_the_sandbox_was_not_refused_by_it(tmp_path: Path) -> None:
    assert notes("touch: Read-only file system", tmp_path, start=Start(["true"], {})) == []


def test_a_command_whose_time_was_up_was_not_refused_by_the_sandbox(tmp_path: Path) -> None:
    assert notes("touch: Read-only file system", tmp_path, exit_code=137, timed_out=True) == []
