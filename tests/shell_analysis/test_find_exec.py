"""Names that a search finds, handed to a program: with `find -exec` and with xargs."""

import re
from collections.abc import Sequence

import pytest

from panpan.shell_analysis.facts import BARE_NAME, PARTED_NAME, QUOTED_NAME, SIGNED_NAME, SPLIT_NAME, Effect
from panpan.shell_analysis.judge import analyse

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
    "find . | xargs sort -u": (".",),
    "rg -l foo | xargs head -5": (".",),
    "rg --files src | xargs wc -l": ("src",),
    "grep -rl foo src | xargs grep -n bar": ("src",),
    "fd -e py | xargs wc -l": (".",),
    "ls | xargs cat": (".",),
    "ls -1 src | xargs wc -l": (".", "src"),
    "ls -tA | head -3 | xargs -r -n1 stat": (".",),
    "ls | xargs -d '\\n' cat": (".",),
    "git ls-files | xargs wc -l": (".",),
    "git ls-files -z src | xargs -0 cat": (".",),
    "git --no-pager ls-files 'src/*.py' | grep -v x | xargs head -3": (".",),
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
find 'src /etc/passwd' | xargs cat
find "it's" | xargs cat
grep -l foo 'src /etc/passwd' | xargs cat
grep -l foo -- -x | xargs cat
rg -l foo 'a b' | xargs cat
find . > b.txt | xargs cat
ls -a | xargs du
ls -l | xargs cat
ls -R | xargs cat
ls -F | xargs cat
ls | xargs rm
ls | xargs -d , cat
(cd src; ls) | xargs cat
{ ls; echo /etc/passwd; } | xargs cat
git -C src ls-files | xargs cat
git ls-files -o | xargs cat
git ls-files -s | xargs cat
git ls-files --full-name | xargs cat
git ls-files :/ | xargs cat
git ls-files ../x | xargs cat
git ls-files x/../../y | xargs cat
git ls-files /x | xargs cat
git ls-files ':(top)' | xargs cat
git ls-files | xargs rm
git ls-files | xargs grep -r x
git diff --name-only | xargs cat
git log | xargs cat
cat b.txt | xargs printf
cat b.txt | xargs -I{} {}
cat b.txt | xargs -I{} printf {} x
cat b.txt | xargs basename -- $(ls)
cat b.txt | xargs expr 1 > b
cat b.txt | xargs stat
cat b.txt | xargs ls
cat b.txt | xargs test -f
""".strip().splitlines()


def last(line: str) -> Effect:
    return analyse(line).effects[-1]


@pytest.mark.parametrize("line", LOOKING)
def test_search_with_read_only_programs_is_a_search(line: str) -> None:
    facts = analyse(line)

    assert facts.is_read_only, [effect.why for effect in facts.effects]
    assert last(line).search.folders == LOOKING[line]
    assert set(LOOKING[line]) <= set(last(line).reads or ())
    assert last(line).search.follows_links
    assert last(line).read_details.globs == ()


@pytest.mark.parametrize("line", NOT_KNOWN)
def test_names_used_otherwise_are_not_read_only(line: str) -> None:
    assert not analyse(line).is_read_only


@pytest.mark.parametrize(
    "line",
    ["ls | xargs -n1 basename", "cat a.txt | xargs dirname", "xargs -n 1 basename < a.txt", "git log | xargs echo",
     "cat a.txt | xargs -I{} echo 'file: {}'", "find . | sed s/a/b/ | xargs -n1 dirname | sort -u",
     "cat a.txt | xargs printf '%s\\n'", "{ ls; echo /x; } | xargs basename", "cat a.txt | xargs",
     "echo x | xargs expr 1 +"],
)  # fmt: skip
def test_program_that_reads_no_file_may_be_given_anything(line: str) -> None:
    facts = analyse(line)

    assert facts.is_read_only, [effect.why for effect in facts.effects]
    assert next(effect for effect in facts.effects if effect.program == "xargs").search.folders == ()


def test_names_listed_by_git_are_tracked_files() -> None:
    assert last("git ls-files | xargs cat").search.only_tracked
    assert not last("find . | xargs cat").search.only_tracked


def test_names_listed_by_ls_omit_hidden_files_unless_shown() -> None:
    assert last("ls | xargs cat").search.leaves_out_hidden
    assert not last("ls -A | xargs cat").search.leaves_out_hidden
    assert last("ls src/*.py | xargs cat").read_details.globs == ("src/*.py",)


@pytest.mark.parametrize(
    ("line", "odd"),
    [
        ("find . -exec cat {} +", None),
        ("find . -print0 | xargs -0 cat", None),
        ("find . | xargs cat", PARTED_NAME),
        ("find . | xargs -0 cat", PARTED_NAME),
        ("find . -print0 | xargs cat", PARTED_NAME),
        ("find . -print0 | sort | xargs -0 cat", PARTED_NAME),
        ("rg -l x | xargs -0 cat", SPLIT_NAME),
        ("git ls-files -z | xargs -0 cat", SIGNED_NAME),
        ("git ls-files -z | xargs cat", QUOTED_NAME),
        ("git ls-files | xargs -0 cat", QUOTED_NAME),
        ("ls | xargs cat", SPLIT_NAME),
        ("ls src/* | xargs cat", BARE_NAME),
    ],
)
def test_odd_names_are_those_that_arrive_changed(line: str, odd: re.Pattern[str] | None) -> None:
    assert last(line).search.odd_names is odd


@pytest.mark.parametrize(
    "line",
    ["find @d -exec strings {} +", "find @d -type f -print0 | xargs -0 strings", "find . @d -exec strings {} \\;",
     "find +5f -exec tail {} +", "find +5f | xargs tail", "strings -- *", "strings [@]*", "strings -- ?a",
     "tail -- *", "tail [+]5f", "find '[@]d' @d | xargs strings"],
)  # fmt: skip
def test_name_rules_are_tried_on_the_names(line: str) -> None:
    assert not analyse(line).is_read_only


@pytest.mark.parametrize(
    "line",
    ["git ls-files -z | xargs -0 strings", "git ls-files | xargs tail -n 3", "ls | xargs md5sum",
     "rg -l x | xargs sort",
     "find src -exec strings {} +", "find . -exec tail -n1 {} +", "strings src/*", "tail -n1 ./*", "sort [!+@-]*"],
)  # fmt: skip
def test_names_that_the_gate_checks_may_be_handed_on(line: str) -> None:
    assert analyse(line).is_read_only


def test_bare_patterns_may_become_flags() -> None:
    assert last("cat *").read_details.bare_globs == ("*",)
    assert last("grep foo *.py src/*").read_details.bare_globs == ("*.py",)
    assert last("ls -- *").read_details.bare_globs == last("cat ./* src/* [!+@-]*").read_details.bare_globs == ()


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
def test_only_names_needs_a_test_that_all_names_passed(line: str, only: str) -> None:
    assert analyse(line).is_read_only
    assert last(line).search.only_names == ((only,) if only else ())


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
def test_search_names_are_those_that_it_shows(line: str, only: tuple[str, ...], leaves_out_hidden: bool) -> None:
    assert analyse(line).is_read_only
    assert last(line).search.only_names == only
    assert last(line).search.leaves_out_hidden is leaves_out_hidden


def test_search_behind_cd_is_placed_there() -> None:
    assert analyse("cd src; find . | xargs wc -l").effects[-1].placed_searches == (".", "src")


def test_needed_environment_includes_each_program_of_the_line() -> None:
    assert analyse("rg -l foo | xargs wc -l").needed_environment == {"RIPGREP_CONFIG_PATH": None}


def test_long_pipeline_is_read_in_reasonable_time() -> None:
    lines: Sequence[str] = ["find .", *["sort"] * 900, "xargs cat"]

    assert not analyse(" | ".join(lines)).is_read_only
