"""Programs that the table calls harmless, run for real: nothing changes, nothing stays running, no network."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.languages import fits
from panpan.shell_analysis.programs import Row
from tests.looking_box import LookingBox
from tests.needed_programs import need
from tests.shell_analysis.table_rows import all_rows, harmless_lines

ROWS = all_rows()
FAMILIES = sorted({name.split()[0] for name in ROWS})
BOXES = 12
"""In which all families run, for a box costs more than its lines."""
AS_FOUND = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.generate],  # lines are drawn here, and run together
}
TRIED_LINES = 60
MOST_LINES = 24
VALUES = [
    "1", "3", "10", "word", "a.txt", "'*.py'", ",", "all", "1,3", "HEAD", "0x10", "+2", "no", "v1", "user.name", "'%s'",
    "x", "d", "f", "a", "1p", "s/a/b/w", "new.txt", "-1", "yesterday", "-o", "'a b'", "none", "1:a.txt", "2,1",
    "a.tgz", "a.zip",
]  # fmt: skip
WITHOUT_CHOICE = sorted(name for name, row in ROWS.items() if not row.sub and row.exactly and row.not_bare)
"""Families that have no flags and operands to choose from."""
OPERANDS = [
    "a.txt", "b.txt", "src", ".", "-", "-n", "link", "data.json", "data.bin", "'*.txt'", "src/*", "*.txt", "nowhere",
    "new.txt", "HEAD", "HEAD:a.txt", "main", "v1", "foo", "1", "3", "+%F", "-x", "--", "p", "1p", "s/a/b/", "=", "!",
    "-f", "-o", "new", "-v", "-a", "-i", "-w", "--output=new.txt", "-delete", "-name", "-newer", "-type", "f",
    "a.gz", "a.bz2", "a.xz", "a.zst", "a.tgz", "a.zip", "-c", "-l", "-t", "tf", "-tf", "]]", "&&",
    "\\(", "$HOME", "~", "..", "@{u}", "user.name", "refs/heads/x", "stash@{0}", "--stat", "-p", "-print", "%s",
]  # fmt: skip


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> LookingBox:
    need("bwrap")
    need("git")
    return LookingBox(tmp_path_factory.mktemp("looking"))


@pytest.fixture(scope="module")
def missing(box: LookingBox) -> AbstractSet[str]:
    """Programs that the shell of the box does not find."""
    return box.missing([family for family in FAMILIES if family != "[["])  # which is no name but a word of the grammar


def run(box: LookingBox, lines: Sequence[str]) -> list[int]:
    before = box.state()
    codes = box.run([(line, analyse(line)) for line in lines])
    assert box.state() == before, lines
    return codes


def test_programs_of_the_table_are_installed(missing: AbstractSet[str]) -> None:
    if missing:
        pytest.skip(f"not tried below, for they are not installed: {', '.join(sorted(missing))}")


@pytest.mark.parametrize("families", [FAMILIES[number::BOXES] for number in range(BOXES)])
def test_harmless_examples_change_nothing(box: LookingBox, missing: AbstractSet[str], families: Sequence[str]) -> None:
    tried = set(families) - missing
    run(box, [line for name, row in ROWS.items() if name.split()[0] in tried for line in harmless_lines(name, row)])


def test_git_queries_ignore_helpers_named_by_the_repository(box: LookingBox) -> None:
    lines = [line for name, row in ROWS.items() if name.startswith("git") for line in harmless_lines(name, row)]
    may_say_no = (
        "grep", "check-ignore", "branch --list", "show-ref", "describe", "config", "whatchanged", "rev-parse", "notes",
        "var",
    )  # fmt: skip

    codes = run(box, lines)

    failed = [
        line for line, code in zip(lines, codes, strict=True) if code and not any(no in line for no in may_say_no)
    ]
    assert failed == []


def test_box_shows_the_effect_of_a_helper(tmp_path: Path) -> None:
    need("bwrap")
    need("git")
    box = LookingBox(tmp_path)

    box.run([("git status", analyse("pwd"))])

    assert (tmp_path / "work/PWNED").exists()


def test_box_lists_its_programs_and_names_missing_ones(box: LookingBox) -> None:
    assert box.missing(["cd", "git", "no-such-program", "ls"]) == {"no-such-program"}

    with pytest.raises(AssertionError, match="no-such-program -l names a program that is not installed"):
        box.run([("no-such-program -l", analyse("pwd"))])


def flags_of(row: Row) -> list[str]:
    """Return the flags of a row, those with a value with each that fits."""
    with_values = [
        f"{flag.rstrip('?')}={value}" if flag.startswith("--") else f"-{flag.rstrip('?')}{value}"
        for flag, regex in row.values.items()
        for value in VALUES
        if fits(value.strip("'"), regex)
    ]
    expression = [" ".join([word, *(["1"] if following else [])]) for word, following in row.expression.items()]
    return [*(f"-{letter}" for letter in row.short), *sorted(row.long), *with_values, *expression]


def _lines(name: str, row: Row) -> st.SearchStrategy[str]:
    operands = st.sampled_from(OPERANDS)
    words = st.one_of(st.sampled_from(flags), operands) if (flags := flags_of(row)) else operands
    return st.lists(words, max_size=5).map(lambda parts: " ".join([name, *parts]))


def drawn(family: str) -> list[str]:
    """Return lines of a family that may run."""
    found: list[str] = []
    lines = st.one_of([_lines(name, row) for name, row in ROWS.items() if name.split()[0] == family])

    @settings(max_examples=1, **AS_FOUND)  # type: ignore[arg-type]
    @given(st.lists(lines, min_size=TRIED_LINES, max_size=TRIED_LINES, unique=True))
    def draw(tried: list[str]) -> None:
        found.extend([line for line in tried if analyse(line).is_read_only][:MOST_LINES])

    draw()
    return found


CHOOSING = sorted(set(FAMILIES) - set(WITHOUT_CHOICE))


@pytest.mark.parametrize("families", [CHOOSING[number::BOXES] for number in range(BOXES)])
def test_drawn_lines_of_a_row_change_nothing(
    box: LookingBox, missing: AbstractSet[str], families: Sequence[str]
) -> None:
    run(box, [line for family in families if family not in missing for line in drawn(family)])
