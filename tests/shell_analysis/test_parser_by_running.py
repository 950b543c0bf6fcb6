"""The parser's view of a line, compared with real bash in a throw-away box."""

import fnmatch
import posixpath
import re
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from panpan.shell_analysis.facts import ParsedLine, SimpleCommand, Word
from panpan.shell_analysis.parser import ShellParser
from tests.command_box import PROGRAMS as STUBS
from tests.command_box import CommandBox, Start
from tests.needed_programs import need

PARSER = ShellParser()
AS_FOUND = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.reuse, Phase.generate],  # each try starts a box: making a failure smaller takes too long
}
LINES_A_BOX = 25
TRIED_LINES = 100
"""Lines to draw. Those that can be judged are run; looking for these one by one takes longer than running them."""

PROGRAMS = [
    "a",
    "b",
    "no",
    "'a'",
    'b""',
    "a\\\n ",
    "\\a",
    "a",
    "./a",
    "if",
    "'if'",
    "time",
    "time -p",
    "[[ -f f ]] &&",
    "[[ $A == v* ]] ||",
    "no",
]
WORDS = [
    "-x", "f", "d", "e\\ f", "'x y'", '"$A"', "$A", "${A}", "$'\\t'", "*", "*.py", "[f]", "d/*", "{a,b}", "{a..c}",
    "{a", "a}", "{}", "@{0}", "~", "~/f", "x=~", "A=1", "=", "#c", "x#", "!", "^", "%", "2", "2\\\n", "a\\\nb",
    '"a\\\nb"', "'a\nb'", '"$"', "$", "a$", '"a\\"b"', '"\\$A"', "'\"'", '"\'"', "\\'", "\\;", "é", "'é|'", "[", "]",
    "a[", "]]", "in", "do", "}", "{", "a'b'\"c\"", "''", '""', "$?", "a:~", "\\~", "?", '"*"', "\\*", "[!f]", "-",
    "--", "&1", "1", "$'a\\'b'", "x$'b'", '"!"', "a\\ b", "\\#", "a=(b)", "$[1]", '"`b`"', "$(b)", "`b`", "\"$(b)\"",
    "${x:=b}", "\\$(b)", '$"x"', "<(b)", "a\\b", "'\\'", '"\\a"', "\\\\", "a[$(b)]=1", "{x}>o", "'{x}'>o", "a{x}>o",
    "[a' 'b]", "[a\\]b]", "${A[0]}", "*'*'", "!(f)", "@(f|d)", "$((1))",
]  # fmt: skip
REDIRECTS = [
    ">o", "> o", "2>o", "2>&1", ">&2", "&>o", "&>/dev/null", "2>/dev/null", "</dev/null", "<f", ">>o", "<>o", ">|o",
    ">&o", "2> /dev/null", ">'o p'", "1>&2", "3>o", "2>&-", "{x}>o", "<<<b", "<<E", "<<'E'\n$(b)\nE\n", "> #o",
    "2>\\\no", ">&1b", ">& 2", "<&0", ">$A", "2>&1 -x", ">o -x f",
]  # fmt: skip
JOINTS = [
    ";", "; ", "\n", " | ", "|", " && ", "&&", " || ", "\n\n", " |& ", " & ", ";;", ";\n", " |\n", " &&\n", " # c\n",
    " \\\n", "\\\n", "\r\n", " ! ", "; ! ", " | ! ", "\t", "; time ", "; then ", " #", "; (", ") ", "; { ", "; }",
]  # fmt: skip
MOVES = [
    "cd d", "cd d", "cd nowhere", "cd ..", "cd -", "cd", "cd 'e f'", "cd d/d", "cd ./d/..", "cd -- d", "cd d d",
    "cd *", "exit", "exit 1 2", "exit >/no/o", "exit --help", "no", "cd d >/no/o", "pushd d", "command cd d",
    "builtin cd d", "! cd d", "true", "cd d >o", "eval cd d", "cd /",
]  # fmt: skip

blank = st.sampled_from([" ", " ", " ", "  ", "\t", " \\\n", ""])
simple = st.builds(
    lambda name, parts: name + "".join(gap + part for gap, part in parts),
    st.sampled_from(PROGRAMS),
    st.lists(
        st.tuples(blank, st.one_of(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from(REDIRECTS))),
        max_size=5,
    ),
)
structured = st.builds(
    lambda first, rest: first + "".join(joint + command for joint, command in rest),
    simple,
    st.lists(st.tuples(st.sampled_from(JOINTS), simple), max_size=3),
)
moving = st.builds(
    lambda parts: "".join(command + joint for command, joint in parts) + "a",
    st.lists(st.tuples(st.sampled_from(MOVES), st.sampled_from(["; ", " && ", " || ", " | ", "\n"])), max_size=5),
)
soup = st.lists(
    st.sampled_from([*PROGRAMS, *WORDS, *REDIRECTS, *JOINTS, " ", " ", " ", " "])
    | st.text("ab \t\n'\"\\$`|&;<>(){}[]*?~#!=-2\r\x85\xa0é\x00", max_size=4),
    max_size=12,
).map("".join)  # fmt: skip
lines = st.one_of(structured, structured, moving, soup)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> CommandBox:
    need("bwrap")
    return CommandBox(tmp_path_factory.mktemp("box"), A="v w")


@settings(max_examples=12, **AS_FOUND)
@given(st.lists(lines.filter(lambda line: "\0" not in line), min_size=LINES_A_BOX, max_size=LINES_A_BOX))
def test_every_start_was_predicted(box: CommandBox, some_lines: list[str]) -> None:
    for line, starts in zip(some_lines, box.run(some_lines), strict=True):
        parsed = PARSER.parse(line)
        if parsed.is_plain:
            surprises = [start for start in starts if not any(_fits(start, command) for command in parsed.commands)]
            assert not surprises, (line, surprises, parsed)
        elif not _may_hide_names(parsed):
            names = {command.words[0].text for command in parsed.commands if command.words}
            hidden = [start for start in starts if start.words[0] not in names]
            assert not hidden, (line, hidden, parsed)


@settings(max_examples=10, **AS_FOUND)
@given(st.lists(st.lists(simple, min_size=1, max_size=3).map("; ".join), min_size=TRIED_LINES, max_size=TRIED_LINES))
def test_plain_line_of_fixed_words_starts_exactly_as_predicted(box: CommandBox, tried: list[str]) -> None:
    fixed = [line for line in tried if "[[" not in line and _is_fixed(PARSER.parse(line))][:LINES_A_BOX]
    for line, starts in zip(fixed, box.run(fixed), strict=True):
        assert [start.words for start in starts] == [command.texts for command in PARSER.parse(line).commands], line


def _is_fixed(parsed: ParsedLine) -> bool:
    """True if all words of a line are known and the box has each of its programs."""
    targets = [redirect.target.text for command in parsed.commands for redirect in command.redirects]
    has_programs = all(command.texts and command.texts[0] in STUBS for command in parsed.commands)
    return parsed.is_plain and has_programs and not targets


def _may_hide_names(parsed: ParsedLine) -> bool:
    """True if the line could not be parsed, or runs text, so that names may be missed."""
    return any(
        "parsed" in oddity or "certain" in oddity or "change what follows" in oddity or "missing" in oddity
        for oddity in parsed.oddities
    )


def _fits(start: Start, command: SimpleCommand) -> bool:
    if command.directories is not None:
        places = (posixpath.join("/box/0/work", directory) for directory in command.directories)
        if start.directory not in {posixpath.relpath(place, "/box/0/work") for place in places}:
            return False
    return _words_fit(start.words, command.words)


def _words_fit(started: Sequence[str], words: Sequence[Word]) -> bool:
    if not words:
        return not started
    word, rest = words[0], words[1:]
    if word.text is not None:
        return bool(started) and started[0] == word.text and _words_fit(started[1:], rest)
    fitting = 0
    while fitting < len(started) and (not word.is_glob or _fits_pattern(started[fitting], word.pattern)):
        fitting += 1
    return any(_words_fit(started[count:], rest) for count in range(1 if word.is_glob else 0, fitting + 1))


def _fits_pattern(name: str, pattern: str) -> bool:
    plain = re.sub(r"\\(.)", lambda escape: f"[{escape[1]}]" if escape[1] in "*?[" else escape[1], pattern)
    unquoted = re.sub(r"\\(.)", r"\1", pattern)  # where no name fits, the pattern stays what it is
    return name == unquoted or fnmatch.fnmatchcase(name, plain)
