"""Words that begin with `~`: what bash makes of them, and what is judged."""

import subprocess
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from panpan.capabilities.shell.surroundings import read_only_environment
from panpan.shell_analysis.facts import LineFacts
from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.words import NotPlainError, word_at
from panpan.system.files.paths import PathResolver
from panpan.types.permission import Allow, Ask
from tests.fakes.every_tool import FolderGate
from tests.needed_programs import need
from tests.permissions.folder import Project, bash

PIECES = ["~", "/", "a", "'", '"', "\\", "*", "=", ":", "'b c'", "..", "+", "-", "{", "}", "$", "root", "?", "[", "]"]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), min_size=30, max_size=30))
@example(["/a", "", "/'b c'", "'/a'", "\\/a", "/~", "a", ":", ":/a", "=", "/a:~", "''/a", "+/a", "-/a", "/..", "/a~"])
def test_tilde_is_the_home_where_it_is_to_bash(tmp_path_factory: pytest.TempPathFactory, ends: list[str]) -> None:
    need("bash")
    found = {}
    for end in ends:
        try:
            word = word_at(f"~{end}", 0)
        except NotPlainError:
            continue
        if word.source == f"~{end}" and word.at_home:
            found[word.source] = word.at_home
    script = "".join(f"printf '%s\\0' {source}\n" for source in found)
    ran = subprocess.run(
        ["bash", "-c", script], env={"HOME": "/h o"}, cwd=tmp_path_factory.mktemp("empty"),
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    assert ran.stdout.split("\0")[:-1] == [f"/h o{at_home[1:]}" for at_home in found.values()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path.resolve() / "user"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("cat ~/a", ["a"]), ("ls ~", [""]), ("head -3 ~/'b c'", ["b c"]), ("cat ~/{a,b}", ["a", "b"]),
        ("[ -f ~/a ]", ["a"]), ("find ~/a -name x", ["a"]), ("cat < ~/a", ["a"]), ("grep -rn x ~/a", ["a"]),
    ],
)  # fmt: skip
def test_tilde_path_is_read_in_the_home(home: Path, line: str, reads: list[str]) -> None:
    facts = analyse(line)

    assert facts.is_read_only
    assert facts.reads == tuple(f"{home}/{name}".rstrip("/") for name in reads)
    assert facts.needed_environment["HOME"] == str(home)


@pytest.mark.parametrize(
    "line", ["cat ~root/a", "cat ~+/a", "cat ~/$X", "cat ~/*", "tr ~ a", "cd ~ && cat a", "cat a=~/b"]
)
def test_other_tildes_are_unknown(home: Path, line: str) -> None:
    assert not analyse(line).is_read_only


def test_quoted_tilde_is_a_name(home: Path) -> None:
    assert analyse("cat '~/a'").reads == ("./~/a",)
    assert "HOME" not in analyse("cat '~/a'").needed_environment


def test_write_into_the_home_is_known(home: Path) -> None:
    assert analyse("frobnicate > ~/a").writes == (f"{home}/a",)
    assert analyse("ls > ~/a").writes == (f"{home}/a",)


def test_command_gets_the_home_that_was_judged(home: Path, tmp_path: Path) -> None:
    async def environment(facts: LineFacts) -> dict[str, str]:
        return await read_only_environment(facts, {"HOME": "/elsewhere"}, tmp_path, PathResolver(tmp_path))

    assert anyio.run(environment, analyse("cat ~/a"))["HOME"] == str(home)
    assert anyio.run(environment, analyse("cat a"))["HOME"] == "/elsewhere"


@pytest.mark.parametrize(
    ("line", "expected"),
    [("ls ~/project", Allow), ("cat ~/project/a", Allow), ("cat ~/other", Ask), ("cat ~/project/../.ssh/x", Ask)],
)
def test_plan_mode_judges_the_home_by_its_place(home: Path, line: str, expected: type) -> None:
    gate: FolderGate = Project(home).gate()

    assert isinstance(bash(gate, line, "plan"), expected)
