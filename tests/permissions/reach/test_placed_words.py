"""Words in which the shell puts a folder: held against what bash makes of them, and against the plain path."""

import pwd
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.working_directory import find_shell
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionMode
from tests.permissions.folder import Project, bash

RULES = """[permission]
allow = ["Bash(*)", "Bash(cat *)", "Bash(touch *)"]
deny = ["Read(./secret/**)", "Edit(./secret/**)"]
"""
NO_PATH_RULES = """[permission]
allow = ["Bash(cat *)"]
deny = ["Bash(rm *)"]
"""
FRAMES = (
    ("cat ", "{}"), ("touch ", "{}"), ("cat < ", "{}"), ("echo x > ", "{}"), ("cp ", "{} out"), ("cp a.txt ", "{}"),
    ("rm -f ", "{}"), ("python3 x.py ", "{}"), ("python3 x.py --file=", "{}"), ("make out=", "{}"),
    ("grep -r x ", "{}"), ("V=", "{} python3 x.py"), ("export V=", "{}"), ("ls; cat a.txt ", "{} | wc"),
    ("{ cat ", "{}; }"), ("echo ", "{} | xargs cat"), ("timeout 5 cat ", "{}"), ("bash -c 'cat ", "{}'"),
)  # fmt: skip
USER = pwd.getpwuid(0).pw_name
HERE = st.sampled_from(["$PWD", "${PWD}", '"$PWD"', '"${PWD}"', "~+", "$(pwd)", "`pwd`", "$HOME/project", "~/project"])
BEFORE = ("$OLDPWD", "${OLDPWD}", '"$OLDPWD"', "~-")
RESTS = st.sampled_from([
    "/secret/s.txt", "/secret/new", "/secret", "/secret/../secret/s.txt", "//secret/./s.txt", "/'secret'/s.txt",
    "/sec\\ret/s.txt", "/se*/s.txt", "/{secret,src}/s.txt", "/a.txt", "/src/../a.txt", "/../outside.txt",
    "/.git/config", "/.env", "/$'secret'/s.txt", '/"secret"/s.txt', "", "/",
])  # fmt: skip
SPELLINGS = st.one_of(
    st.tuples(st.just(""), HERE, RESTS),
    st.tuples(st.just("cd src && "), st.sampled_from(BEFORE), RESTS),
    st.tuples(st.sampled_from(["cd src && ", "cd src; "]), HERE.filter(lambda here: "pwd" not in here), RESTS),
)
# Bash takes a list in braces for no target of a redirect.
LINES = st.tuples(st.sampled_from(FRAMES), SPELLINGS).filter(
    lambda line: not (line[0][0].endswith(("< ", "> ")) and "{" in line[1][2])
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    for name in ("secret/s.txt", "src/c.py", "src/secret/s.txt", "a.txt", "x.py", "../outside.txt"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text("x")
    return project


def strictness(decision: Decision) -> int:
    return (Allow, Ask, Deny).index(type(decision))


def expanded(project: Project, words: list[tuple[str, str, str]]) -> list[list[str]]:
    """Return bash's value of each word behind the line before it, with its first word; all in one process."""
    script = "".join(
        f"({before}V={word}; printf '%s\\0' \"$V\"); printf '\\n\\0'\n"
        if first == "V="
        else f"({before}printf '%s\\0' {first}{word}); printf '\\n\\0'\n"
        for before, first, word in words
    )
    shell = [find_shell(), "--norc", "--noprofile", "-c", script]
    env = {"HOME": str(project.home.parent), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    printed = subprocess.run(shell, cwd=project.root, env=env, capture_output=True, check=True).stdout.decode()
    return [group.split("\0")[:-1] for group in printed.split("\n\0")[:-1]]


@settings(
    max_examples=4, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(LINES, min_size=12, max_size=25))
def test_spelling_is_judged_no_looser_than_its_path(
    project: Project, monkeypatch: pytest.MonkeyPatch, tried: list[tuple[tuple[str, str], tuple[str, str, str]]]
) -> None:
    monkeypatch.setenv("HOME", str(project.home.parent))
    gate = project.gate(RULES)
    words = []
    for (command, _), (before, place, rest) in tried:
        word = command.rpartition(" ")[2].strip("'")
        if place in BEFORE and "bash" in command:
            place = "$PWD"  # a shell within inherits the other, and is asked about
        words.append((before, word if word.endswith("=") else "", place + rest))

    for ((command, end), _), (before, first, word), made in zip(tried, words, expanded(project, words), strict=True):
        spelled = before + command + end.replace("{}", word)
        for path in made:
            quoted = path if path.isascii() and "'" in command else shlex.quote(path.removeprefix(first))
            plain = before + command + end.replace("{}", quoted)
            for mode in ("default", "bypassPermissions"):
                found, wanted = bash(gate, spelled, mode), bash(gate, plain, mode)
                assert strictness(found) >= strictness(wanted), f"{mode}: {spelled} -> {found}; {plain} -> {wanted}"


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize(
    "line",
    [
        "cat ~+/secret/s.txt", "touch ~+/secret/new", "touch $PWD/secret/new", "cp a.txt ${PWD}/secret/x",
        "cd src && touch $OLDPWD/secret/new", "cd src; touch $PWD/../secret/new", "cat < $PWD/secret/s.txt",
        "echo x > ~+/secret/new", "cd ~+/secret && touch new", 'bash -c "touch $PWD/secret/new"',
        "python3 x.py --file=$PWD/secret/s.txt", "V=~+/secret/s.txt python3 x.py", "echo $PWD/secret/s.txt | xargs rm",
        f"cat ~{USER}/../{{project}}/secret/s.txt", "cat $(pwd)/secret/s.txt",
    ],
)  # fmt: skip
def test_words_put_in_front_by_the_shell_hide_no_denied_path(project: Project, line: str, mode: str) -> None:
    home = Path(pwd.getpwnam(USER).pw_dir)
    below = str(project.root.relative_to(home.parent)) if project.root.is_relative_to(home.parent) else ""
    if "{project}" in line and not below:
        pytest.skip("the project does not lie below the folder of the user's home")

    assert isinstance(bash(project.gate(RULES), line.replace("{project}", below), mode), Deny), line  # type: ignore[arg-type]


UNKNOWN = [
    "cat $x/secret/s.txt", "cat $(echo secret/s.txt)", "cat ~1/s.txt", "cat ~-/s.txt", "cat < $x", "echo y > $x",
    "cd $x && cat s.txt", "HOME=$x; cat ~/s.txt", "HOME=/; cat ~/a.txt", "read HOME; cat ~/a.txt", ". x; cat ~+/a.txt",
    "V=$x python3 x.py", "export V=$x", "python3 x.py --file=$x", "for f in *; do cat $f; done",
    "pushd src; cat ~-/a.txt", "$x a.txt", "IFS=e; cat $PWD/a.txt", "bash -c 'cat $x'", "cat ${PWD%/*}/a.txt",
    "[ -f $x ]",
]  # fmt: skip


@pytest.mark.parametrize("line", UNKNOWN)
def test_unknown_word_asks_if_a_rule_denies_paths(project: Project, line: str) -> None:
    decision = bash(project.gate(RULES), line, "bypassPermissions")

    assert isinstance(decision, Ask | Deny), line
    assert isinstance(bash(project.gate(RULES), line, "dontAsk"), Deny)


@pytest.mark.parametrize(
    "line",
    [
        *UNKNOWN[:2],
        "echo $x",
        'git commit -m "$(date)"',
        "sleep $x",
        "[ -n $x ]",
        "i=$((i+1)); seq $?",
        "cat $PWD/a.txt",
    ],
)
def test_word_without_a_path_or_rule_runs(project: Project, line: str) -> None:
    rules = NO_PATH_RULES if line in UNKNOWN else RULES

    assert isinstance(bash(project.gate(rules), line, "bypassPermissions"), Allow), line


@pytest.mark.parametrize(
    "line", ["cat ~-/a.txt", "cat ~1/a.txt", "cat ~+1/a.txt", f"cat ~{USER}/a.txt", "cat $x", "cat ~+/.."]
)
def test_wildcard_covers_no_tilde_that_leads_outside(project: Project, line: str) -> None:
    assert isinstance(bash(project.gate(NO_PATH_RULES), line), Ask), line


def test_tilde_for_the_working_directory_is_covered(project: Project) -> None:
    assert isinstance(bash(project.gate(NO_PATH_RULES), "cat ~+/a.txt"), Allow)


@pytest.mark.parametrize("line", ["cat $PWD/a.txt", "mkdir ~+/new", "git -C $PWD status", "grep -r x ~+"])
def test_placed_word_never_makes_a_line_run_unasked(project: Project, line: str) -> None:
    assert not analyse(line).is_read_only
    assert isinstance(bash(project.gate(), line, "acceptEdits"), Ask), line


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize(
    "line", ["grep -r x $(pwd)", "rg x `pwd`", "grep -r x . && touch a", "grep -r x . > out", "(grep -r x .)"]
)
def test_search_is_asked_about_whatever_else_the_line_does(project: Project, line: str, mode: PermissionMode) -> None:
    assert isinstance(bash(project.gate(RULES), line, mode), Ask)
