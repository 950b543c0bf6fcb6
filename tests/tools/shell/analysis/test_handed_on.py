"""Names that a search finds, handed to a program: with `find -exec` and with xargs."""

from collections.abc import Sequence

import pytest

from panpan.tools.shell.analysis.analyse import analyse
from panpan.tools.shell.analysis.facts import Effect

LOOKING: dict[str, tuple[str, ...]] = {
    "find . -name '*.py' -exec wc -l {} +": (".",),
    "find src tests -type f -exec grep -Hn TODO {} \\;": ("src", "tests"),
    "find . -exec head -3 {} ';' -print": (".",),
    "find src -exec stat -c '%n %s' {} +": ("src",),
    "find . -name '*.py' | xargs wc -l": (".",),
    "find . -name '*.py' -print0 | xargs -0 wc -l": (".",),
    "find . -name '*.py' | grep -v venv | sort | head -5 | xargs cat": (".",),
    "find src -type f | head -n 3 | xargs -n 1 -r head -2 2>/dev/null": ("src",),
    "find . | xargs -I{} wc -l {}": (".",),
    "find . | xargs -I % wc -l %": (".",),
    "find . | xargs": (".",),
    "find . | xargs sort -u": (".",),
    "rg -l foo | xargs head -5": (".",),
    "rg --files src | xargs wc -l": ("src",),
    "grep -rl foo src | xargs grep -n bar": ("src",),
    "fd -e py | xargs wc -l": (".",),
}
NOT_KNOWN = """
find . -exec rm {} +
find . -exec sh -c 'cat $1' x {} \\;
find . -exec cat {} + -delete
find . -exec cat {} + -exec rm {} +
find . -execdir cat {} \\;
find . -ok cat {} \\;
find . -exec cat {}
find . -exec cat +
find . -exec cat ./{} \\;
find . -exec {} \\;
find . -exec $X {} \\;
find . -exec sort -o {} {} \\;
find . -exec uniq {} {} \\;
find . -exec tail -f {} \\;
find . -exec grep -r foo {} \\;
find . -exec rg foo {} \\;
find . -exec git log {} \\;
find . -exec find {} -exec cat {} \\; \\;
find -L . -exec cat {} \\;
find * -exec cat {} \\;
find . -exec timeout 5 rm {} \\;
find . -fprint x -exec cat {} \\;
find . | xargs rm
find . | xargs sh -c ls
find . | xargs -a b cat
find . | xargs --arg-file=b cat
find . | xargs -I{} cat x{}
find . | xargs -I{} {} x
find . | xargs -n
find . | xargs xargs cat
find . | xargs rg foo
find . | xargs head -n
find . | xargs -p cat
find . -printf '/etc/%p' | xargs cat
find . -ls | xargs cat
find . -exec echo {} \\; | xargs cat
find . |& xargs cat
find . 2>&1 | xargs cat
find . | sed s/a/b/ | xargs cat
find . | cut -c1-3 | xargs cat
find . | sort b.txt | xargs cat
find . | head b.txt | xargs cat
find . | head -c 3 | xargs cat
find . | grep -o x | xargs cat
find . | grep x b.txt | xargs cat
find . | uniq -c | xargs cat
cat b.txt | xargs cat
echo /etc/passwd | xargs cat
ls | xargs cat
xargs cat < b.txt
xargs cat
find . ; xargs cat
find . && xargs cat
find . || xargs cat
rg foo | xargs cat
rg -l foo --pre x | xargs cat
rg -c foo | xargs cat
rg -l --replace x foo | xargs cat
grep foo a.txt | xargs cat
grep -rn foo | xargs cat
git ls-files | xargs cat
find 'src /etc/passwd' | xargs cat
find "it's" | xargs cat
grep -l foo 'src /etc/passwd' | xargs cat
grep -l foo -- -x | xargs cat
rg -l foo 'a b' | xargs cat
find . > b.txt | xargs cat
""".strip().splitlines()


def last(line: str) -> Effect:
    return analyse(line).effects[-1]


@pytest.mark.parametrize("line", LOOKING)
def test_a_search_whose_names_are_only_looked_at_is_a_search(line: str) -> None:
    facts = analyse(line)

    assert facts.is_read_only, [effect.why for effect in facts.effects]
    assert last(line).searches == LOOKING[line]
    assert set(LOOKING[line]) <= set(last(line).reads or ())
    assert last(line).follows_links
    assert last(line).globs == ()


@pytest.mark.parametrize("line", NOT_KNOWN)
def test_whatever_else_becomes_of_names_is_not_read_only(line: str) -> None:
    assert not analyse(line).is_read_only


@pytest.mark.parametrize(
    ("line", "splits"),
    [
        ("find . -exec cat {} +", False),
        ("find . -print0 | xargs -0 cat", False),
        ("find . | xargs cat", True),
        ("find . | xargs -0 cat", True),
        ("find . -print0 | xargs cat", True),
        ("find . -print0 | sort | xargs -0 cat", True),
        ("rg -l x | xargs -0 cat", True),
    ],
)
def test_names_are_whole_only_where_nothing_may_part_them(line: str, splits: bool) -> None:
    assert last(line).splits_names is splits


@pytest.mark.parametrize(
    ("line", "only"),
    [
        ("find . -name '*.py' -exec cat {} +", "*.py"),
        ("find . -type f -name '*.py' | xargs cat", "*.py"),
        ("find . -name a.py -print0 | xargs -0 cat", "a.py"),
        ("find . -exec cat {} + -name '*.py'", ""),
        ("find . -print -name '*.py' | xargs cat", ""),
        ("find . -name '*.py' -o -name x | xargs cat", ""),
        ("find . ! -name '*.py' | xargs cat", ""),
        ("find . -not -name '*.py' | xargs cat", ""),
        ("find . ! ! -name '*.py' | xargs cat", ""),
        ("find . ! -path './x/*' -name '*.py' | xargs cat", "*.py"),
        ("find . -name '*.py' -not -path './x/*' | xargs cat", "*.py"),
        ("find . \\( -name '*.py' -o -name x \\) | xargs cat", ""),
        ("find . -name '[a]*' | xargs cat", ""),
        ("find . -iname '*.py' | xargs cat", ""),
        ("rg -l '*.py' | xargs cat", ""),
    ],
)
def test_names_are_narrowed_only_by_a_test_that_all_of_them_passed(line: str, only: str) -> None:
    assert analyse(line).is_read_only
    assert last(line).only_names == ((only,) if only else ())


@pytest.mark.parametrize(
    ("line", "only", "leaves_out_hidden"),
    [
        ("rg -l foo | xargs cat", (), True),
        ("rg --files | xargs cat", (), True),
        ("rg --files -. | xargs cat", (), False),
        ("rg -l -g '*.py' foo | xargs cat", ("*.py",), False),
        ("grep -rl --include='*.py' foo . | xargs cat", ("*.py",), False),
        ("grep -rl foo . | xargs cat", (), False),
    ],
)
def test_names_of_a_search_are_those_that_it_shows(line: str, only: tuple[str, ...], leaves_out_hidden: bool) -> None:
    assert analyse(line).is_read_only
    assert last(line).only_names == only
    assert last(line).leaves_out_hidden is leaves_out_hidden


def test_what_is_done_behind_cd_is_a_search_there() -> None:
    assert analyse("cd src; find . | xargs wc -l").effects[-1].placed_searches == (".", "src")


def test_a_line_that_is_read_only_needs_what_each_of_its_programs_needs() -> None:
    assert analyse("rg -l foo | xargs wc -l").needed_environment == {"RIPGREP_CONFIG_PATH": None}


def test_a_long_pipeline_is_read_in_reasonable_time() -> None:
    lines: Sequence[str] = ["find .", *["sort"] * 900, "xargs cat"]

    assert not analyse(" | ".join(lines)).is_read_only
