"""Files that a search shows by name: the analysis, compared with real programs."""

import subprocess
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.shell_analysis.facts import Effect
from panpan.shell_analysis.judge import analyse
from panpan.system.files.paths import PathResolver
from panpan.text_search.engine import find_ripgrep
from tests.needed_programs import need

NAMES = [
    "a.py", "b.md", "c.txt", ".env", ".env.json", ".env.py", ".hid/x.py", ".hid/y", "sub/.env", "sub/c.py", "sub/.z.py",
    "dir.py/.env", "dir.py/x", ".bashrc", "Makefile", "A.PY", "é.py",
]  # fmt: skip
GREP_FLAGS = [
    "--include='*.py'", "--include='*.md'", "--include='.e*'", "--include='*'", "--exclude='*.md'", "--exclude='*'",
    "--include=.env", "--include=a.py", "--include='sub/*'", "--include='[.]env'", "--exclude-dir=sub", "-i",
    "--include='*.PY'", "--include='?.py'", "--include", "--include=",
]  # fmt: skip
RG_FLAGS = [
    "-u", "-uu", "-.", "--hidden", "--no-ignore", "-g '*.py'", "-g '!*.md'", "-g '*'", "-g .env", "-g 'sub/*'",
    "-g '*.{py,md}'", "-g '**/*.py'", "-g '*.py/'", "-tpy", "-t json", "-tsh", "-Tpy", "-t all", "--iglob '*.ENV'",
    "-g '/sub/'", "--glob='*.md'", "-g '*.PY' --glob-case-insensitive", "-i", "-g dir.py", "-g '[.]env'", "-g '.e*'",
]  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("searched").resolve()
    for name in NAMES:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("foo\n")
    return root


def of(line: str) -> Effect:
    return analyse(line).effects[0]


@pytest.mark.parametrize(
    ("line", "only", "leaves_out_hidden"),
    [
        ("rg foo", (), True),
        ("rg -u foo", (), True),
        ("rg --no-ignore foo src", (), True),
        ("rg -uu foo", (), False),
        ("rg -u -u foo", (), False),
        ("rg --unrestricted -u foo", (), False),
        ("rg -. foo", (), False),
        ("rg -n. foo", (), False),
        ("rg --hidden foo", (), False),
        ("rg -g '!*.md' foo", (), True),
        ("rg -g '*.py' foo", ("*.py",), False),
        ("rg foo -g 'src/**/*.py'", ("*.py",), False),
        ("rg -g '*.py' --glob='*.md' foo", ("*.py", "*.md"), False),
        ("rg -g '*.{ts,tsx}' foo", ("*.ts", "*.tsx"), False),
        ("rg -g '*' foo", (), False),
        ("rg -g '.e*' foo", (), False),
        ("rg -g '*.py' -g '.e*' foo", (), False),
        ("rg --iglob '*.py' foo", (), False),
        ("rg -tpy foo", ("*.py", "*.pyi"), False),
        ("rg -tsh foo", (), False),
        ("rg -Tpy foo", (), True),
        ("rg foo src/*.d", (), False),
        ("grep -rn --include='*.py' foo", ("*.py",), False),
        ("grep -rn foo . --include='*.py' --include Makefile", ("*.py", "Makefile"), False),
        ("grep -rn --include='*.py' --exclude='x*' foo", ("*.py",), False),
        ("grep -rn --exclude='x*' --include='*.py' foo", (), False),
        ("grep -rn --include='.e*' foo", (), False),
        ("grep -rn --include='[a]*.py' foo", (), False),
        ("grep -rn foo", (), False),
    ],
)
def test_search_is_narrowed_by_certain_names(line: str, only: Sequence[str], leaves_out_hidden: bool) -> None:
    assert analyse(line).is_read_only
    assert of(line).search.folders
    assert of(line).search.only_names == only
    assert of(line).search.leaves_out_hidden is leaves_out_hidden


@pytest.mark.parametrize(
    "line", ["rg --files", "rg --files -uu b", "rg foo --files", "rg --type-list", "rg --files -l"]
)
def test_list_of_names_is_no_search_of_contents(line: str) -> None:
    assert analyse(line).is_read_only
    assert of(line).search.folders == ()


@pytest.mark.parametrize("line", ["rg -- --files", "rg -e --files", "rg -g --files foo", "rg --regexp --files ."])
def test_words_that_are_no_flag_make_no_list(line: str) -> None:
    assert of(line).search.folders


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(st.sampled_from(GREP_FLAGS), max_size=4), st.booleans())
def test_grep_shows_only_predicted_files(tree: Path, flags: list[str], is_behind: bool) -> None:
    need("grep")
    line = f"grep -rl foo . {' '.join(flags)}" if is_behind else f"grep {' '.join(flags)} -rl foo ."

    assert_said(line, tree)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(st.sampled_from(RG_FLAGS), max_size=4), st.sampled_from(["", ".", "sub", ".hid"]))
def test_ripgrep_shows_only_predicted_files(tree: Path, flags: list[str], place: str) -> None:
    ripgrep = find_ripgrep(PathResolver(tree))
    if ripgrep is None:
        pytest.skip("ripgrep is not installed")

    assert_said(f"rg -l {' '.join(flags)} foo {place}", tree, ripgrep)


def assert_said(line: str, tree: Path, program: str = "") -> None:
    facts = analyse(line)
    if not facts.is_read_only:
        return
    command = f"{program} {line.partition(' ')[2]}" if program else line
    ran = subprocess.run(
        ["bash", "-c", command], cwd=tree, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    [effect] = facts.effects
    for shown in ran.stdout.splitlines():
        parts = Path(shown).parts
        below = parts[1:] if effect.search.folders == (parts[0],) else parts
        assert not effect.search.only_names or any(fnmatchcase(parts[-1], name) for name in effect.search.only_names), (
            line,
            shown,
        )
        assert not effect.search.leaves_out_hidden or not any(part.startswith(".") for part in below), (line, shown)
