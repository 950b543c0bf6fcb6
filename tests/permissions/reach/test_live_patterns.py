import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.permissions.reach.folder_walk import links_below, look_for_odd_names, matches
from panpan.shell_analysis.facts import SPLIT_NAME
from panpan.types.permission import Allow, Ask
from tests.needed_programs import need
from tests.permissions.gate_calls import Calls
from tests.permissions.test_gate import gate


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "project"
    (root / "src").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for name in ("a.py", "b.txt", ".env", "src/c.py", "[x]", "-n"):
        (root / name).touch()
    (root / "link.txt").symlink_to(tmp_path / "outside")
    return root


def test_matches_finds_links_in_a_folder_by_name(root: Path) -> None:
    def links(folder: Path, *only_names: str) -> list[Path]:
        return [path for path in links_below([folder], only_names) if path is not None]

    assert links(root) == [root / "link.txt"]
    assert links(root / "src") == []
    assert links(root, "*.py") == []
    assert links(root, "*.py", "l*.txt") == [root / "link.txt"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("[ab].*", ["a.py", "b.txt"]),
        ("[a-b].py", ["a.py"]),
        ("[^a].*", ["b.txt", "a.py"]),  # read in one way or another, so more may fit
        ("A.py", []),
        ("A.*", []),
        ("\\[x]", ["[x]"]),
    ],
)
def test_matches_reads_brackets_and_case_like_bash(root: Path, pattern: str, names: Sequence[str]) -> None:
    assert {path.name for path in matches(pattern, root)} >= set(names)
    if "^" not in pattern:
        assert {path.name for path in matches(pattern, root)} == set(names)


@pytest.mark.parametrize(
    ("pattern", "leads_out"),
    [(".*", True), (".?", True), (".[.]", True), ("src/.*", True), (".*/outside", True), (".*/.*", True),
     (".e*", False), (".??*", False), (".[!.]*", False), (".[^.]*", False), ("*", False), ("..", True)],
)  # fmt: skip
def test_matches_of_a_dot_pattern_may_leave_the_folder(root: Path, pattern: str, leads_out: bool) -> None:
    found = [str(path) for path in matches(pattern, root)]

    assert any("/.." in path for path in found) is leads_out
    assert (str(root.parent / "project/../outside") in found) is (pattern == ".*/outside")


def test_matches_of_a_pattern_for_the_folder_reach_its_files(root: Path) -> None:
    assert root / ".env" in list(matches(".*/.env", root))
    assert root / "a.py" in list(matches(".*/a.py", root))


def test_matches_ignores_case_and_dots_if_the_shell_may_do_so(root: Path) -> None:
    assert {path.name for path in matches("A.*", root, is_wide=True)} == {"a.py"}
    assert ".env" in {path.name for path in matches("*", root, is_wide=True)}


@pytest.mark.parametrize(
    "name", ["-x", "@x", "+5f", "a b", "a\tb", "a\nb", "it's", 'a"b', "a\\b", "-sub/x", "a /etc/passwd", "x/ y"]
)
def test_look_for_odd_names_finds_names_that_xargs_misreads(root: Path, name: str) -> None:
    folder = root / "src"
    (folder / "types/@x").mkdir(parents=True)
    (folder / "types/+page.svelte").touch()
    assert look_for_odd_names([folder], SPLIT_NAME) is None

    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()

    assert "use find with -exec" in str(look_for_odd_names([folder], SPLIT_NAME))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.text("abc.py*?[]\\-x!env/src", min_size=1, max_size=7).filter(lambda text: not text.startswith("/")))
def test_bash_matches_nothing_that_is_not_found(root: Path, pattern: str) -> None:
    need("bash")
    if pattern.endswith("\\"):
        return
    ran = subprocess.run(
        ["bash", "-c", f"shopt -s nullglob; printf '%s\\n' {pattern}"],
        cwd=root, capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    named = {(root / line).resolve() for line in ran.stdout.splitlines() if line and (root / line).exists()}
    if "*" not in pattern and "?" not in pattern and "[" not in pattern:
        return

    assert named <= {path.resolve() for path in matches(pattern, root)} | {root}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat *.py", Allow),
        ("cat src/*", Allow),
        ("cat *", Ask),
        ("cat .e*", Ask),
        ("head *.txt", Ask),
        ("cd src && cat *.py", Allow),
        ("cd src && cat ../*", Ask),
        ("diff -r src src", Allow),
        ("diff -r . src", Ask),
    ],
)
async def test_gate_asks_about_files_that_a_pattern_would_show(root: Path, command: str, expected: type) -> None:
    calls = Calls(root)
    call = calls.of("Bash", "command", is_read_only=True, command=command, paths=())

    assert isinstance(await gate().before_tool(call), expected)
