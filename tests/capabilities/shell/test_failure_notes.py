"""Notes beside the output of a command that failed because of panpan."""

from dataclasses import replace
from pathlib import Path

import pytest

from panpan.permissions.sandbox_questions import failure_of
from panpan.shell_analysis.judge import analyse
from panpan.system.processes.limits import Limits
from panpan.system.processes.process import ProcessEnded
from panpan.system.sandbox.command_sandbox import CommandSandbox, FindSandbox, Start
from panpan.system.sandbox.profile import read_only
from tests.fakes.context import context_in
from tests.fakes.sandboxes import works, works_with_domains

BOXED = Start(["true"], {}, read_only())


async def notes(
    output: str,
    tmp_path: Path,
    *,
    exit_code: int = 1,
    timed_out: bool = False,
    start: Start = BOXED,
    command: str = "make x",
    find: FindSandbox = works_with_domains,
    lets_out: bool = False,
) -> list[str]:
    ctx = replace(
        context_in(tmp_path),
        limits=Limits(processes=100),
        sandbox=CommandSandbox(is_on=True, find=find, lets_out=lambda line: lets_out and line == command),
        own_environment={"MY_DATA": "/data", "MY_TOKEN": "0123456789abcdef"},
    )
    failure = await failure_of(command, analyse(command), output, ProcessEnded(exit_code, timed_out), start, ctx)
    return [*failure.advice, *failure.notes]


async def test_place_of_a_long_output_is_no_hidden_place(tmp_path: Path) -> None:
    hides = Start(["true"], {}, replace(read_only(), hidden=frozenset({tmp_path.parent / f"{tmp_path.name}-outputs"})))
    outputs = context_in(tmp_path).outputs.directory

    assert await notes(f"[the whole is in {outputs}/bash.txt]", tmp_path, start=hides) == []


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
async def test_failure_notes_name_each_obstacle_of_panpan(output: str, said: str, tmp_path: Path) -> None:
    (note,) = await notes(output, tmp_path)
    assert said in note


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("pip install six", "--allow-network=package-indexes"),
        ("cd sub && python3 -m pip install -r requirements.txt 2>&1 | tail", "--allow-network=package-indexes"),
        (".venv/bin/pip3.11 install six", "--allow-network=package-indexes"),
        ("uv sync", "--allow-network=package-indexes"),
        ("conda create -n x python", "--allow-network=package-indexes"),
        ("mamba install numpy", "--allow-network=package-indexes"),
        ("npm ci", "--allow-network=package-indexes"),
        ("cargo build", "--allow-network=package-indexes"),
        ("pip install git+https://git.example.org/x.git", "--allow-network=package-indexes,git.example.org"),
        ("pip install -i https://pypi.org/simple six", "--allow-network=package-indexes"),
        ("curl -O https://example.org:8443/x", "--allow-network=example.org:8443"),
        ("curl $URL", "--allow-network"),
        ("pip install six && curl $URL", "--allow-network"),
        ("python train.py", "--allow-network"),
        ("echo pip install", "--allow-network"),
    ],
)
async def test_missing_network_note_names_a_sufficient_opening(command: str, flags: str, tmp_path: Path) -> None:
    (note,) = await notes("Could not resolve host: x", tmp_path, command=command)

    assert note.endswith(f"tell them to start panpan with {flags}")


@pytest.mark.parametrize(
    ("command", "tool"), [("python3 -m pip install six", "pip"), ("mamba install numpy", "conda"), ("npm ci", "")]
)
async def test_missing_network_note_names_the_tool_for_packages(command: str, tool: str, tmp_path: Path) -> None:
    (note,) = await notes("Could not resolve host: x", tmp_path, command=command)

    assert ("use the tool" in note) == bool(tool)
    assert f"use the tool {tool}" in note or not tool


async def test_missing_network_note_names_no_host_that_stays_closed(tmp_path: Path) -> None:
    (note,) = await notes("Could not resolve host: x", tmp_path, command="pip install six", find=works)

    assert note.endswith("--allow-network")


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("git commit -am 'a b'", "--allow-outside 'git commit *'"),
        ("git add -A && git commit -m x", "--allow-outside 'git add *' --allow-outside 'git commit *'"),
        ("cd sub && git commit -m x", "--allow-outside 'cd sub && git commit -m x'"),
        ("make 'a*b'", r"""--allow-outside 'make '"'"'a\*b'"'"''"""),
        ("make " + "x" * 200, "--sandbox off"),
    ],
)
async def test_closed_file_note_names_the_words_of_the_command(command: str, flags: str, tmp_path: Path) -> None:
    (note,) = await notes("x: Read-only file system", tmp_path, command=command)

    assert note.endswith(f"tell them to start panpan with {flags}")


async def test_closed_file_note_names_no_flag_already_given(tmp_path: Path) -> None:
    (note,) = await notes("x: Read-only file system", tmp_path, command="git commit -m x", lets_out=True)

    assert note.endswith(
        'If the command needs it, call again with sandbox "off", which the user allows (setting sandbox.outside)'
    )


async def test_failure_notes_read_only_the_end_of_a_long_output(tmp_path: Path) -> None:
    output = "Read-only file system\nKeyError: 'MY_DATA'\nfork: Resource temporarily unavailable\n"
    assert len(await notes(output, tmp_path)) == 3
    assert await notes(output + "x\n" * 100_000, tmp_path) == []


async def test_failure_notes_are_empty_outside_the_sandbox(tmp_path: Path) -> None:
    assert await notes("touch: Read-only file system", tmp_path, start=Start(["true"], {})) == []


async def test_failure_notes_do_not_blame_the_sandbox_for_a_timeout(tmp_path: Path) -> None:
    assert await notes("touch: Read-only file system", tmp_path, exit_code=137, timed_out=True) == []
