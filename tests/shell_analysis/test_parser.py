"""Tables: what each construct of bash becomes."""

import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from panpan.capabilities.shell.bash import MAX_COMMAND_BYTES
from panpan.shell_analysis.facts import ParsedLine, SimpleCommand, TooNestedError
from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.parser import MAX_BYTES, MAX_PLAIN_CHARS, MAX_PLAIN_COMMANDS, ShellParser

PARSER = ShellParser()
parse = PARSER.parse


def lines_in(name: str) -> list[str]:
    """Return the lines of a corpus, where ⏎ stands for a line end."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [line.replace("⏎", "\n") for line in text.splitlines() if line]


def texts(line: str) -> list[tuple[str, ...] | None]:
    parsed = parse(line)
    assert parsed.oddities == (), line
    return [command.texts for command in parsed.commands]


def names(parsed: ParsedLine) -> list[str | None]:
    return [command.words[0].text for command in parsed.commands if command.words]


def redirects(line: str) -> list[tuple[str | None, bool]]:
    return [
        (redirect.target.text, redirect.is_write) for command in parse(line).commands for redirect in command.redirects
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls -la src", ("ls", "-la", "src")),
        ("  ls\t-la  ", ("ls", "-la")),
        ("l's' -\"l\"a", ("ls", "-la")),
        ("ls 'a b' \"c d\" e\\ f", ("ls", "a b", "c d", "e f")),
        ("ls ''", ("ls", "")),
        ("echo 'a\nb'", ("echo", "a\nb")),
        ('echo "a\\"b" "\\$x" "\\\\" "\\n"', ("echo", 'a"b', "$x", "\\", "\\n")),
        ('echo "a\\\nb"', ("echo", "ab")),
        ('grep "^a$|b$" "$"', ("grep", "^a$|b$", "$")),
        ("grep a$ $", ("grep", "a$", "$")),
        ("grep $'\\t' $'a\\'b' $'\\\\n'", ("grep", "\t", "a'b", "\\n")),
        ("find . ! -name '*.py' \\( -x \\) {} \\;", ("find", ".", "!", "-name", "*.py", "(", "-x", ")", "{}", ";")),
        ("git show HEAD~1 HEAD^ a@{0} @{u}", ("git", "show", "HEAD~1", "HEAD^", "a@{0}", "@{u}")),
        ("echo a#b 'x' # and this is not", ("echo", "a#b", "x")),
        ("ls \\\n  -la \\\n  src", ("ls", "-la", "src")),
        ("[ -f a ]", ("[", "-f", "a", "]")),
        ("[ a = b -o ! -e 'c d' ]", ("[", "a", "=", "b", "-o", "!", "-e", "c d", "]")),
        ("echo { b ]] a] a[b a{b {a} }", ("echo", "{", "b", "]]", "a]", "a[b", "a{b", "{a}", "}")),
        ("echo for if done in", ("echo", "for", "if", "done", "in")),
        ("'if' x", ("if", "x")),
        ("! grep -q a b", ("grep", "-q", "a", "b")),
        ("cat файл 'naïve' \"你好\"", ("cat", "файл", "naïve", "你好")),
        ("dd if=a of=b", ("dd", "if=a", "of=b")),
        ("echo !! !x \"!\"", ("echo", "!!", "!x", "!")),
        ("ls -la 2>/dev/null src", ("ls", "-la", "src")),
    ],
)  # fmt: skip
def test_words_equal_the_result_of_quote_removal(line: str, words: tuple[str, ...]) -> None:
    assert texts(line) == [words]


@pytest.mark.parametrize(
    "line",
    ["a | b", "a|b", "a |& b", "a && b", "a&&b", "a || b", "a ; b", "a; b;", "a\nb", "a\n\n# why\nb\n", "a &&\n b",
     "a |\n b", "! a | b", "a | # why\nb", "a;\nb", "\n a \n b"],
)  # fmt: skip
def test_joined_commands_are_plain(line: str) -> None:
    assert texts(line) == [("a",), ("b",)]


@pytest.mark.parametrize(
    "line",
    ["ls 2>&1", "ls >/dev/null", "ls 2>/dev/null", "ls &>/dev/null", "ls </dev/null", "ls >&2", "ls 1>&2",
     "ls > /dev/null 2>&1", "ls 2>> /dev/null", ">/dev/null ls"],
)  # fmt: skip
def test_joined_streams_and_discarded_output_are_no_redirects(line: str) -> None:
    assert texts(line) == [("ls",)]
    assert redirects(line) == []


@pytest.mark.parametrize(
    ("line", "target", "is_write"),
    [("a >o", "o", True), ("a >> 'o p'", "o p", True), ("a >|o", "o", True), ("a &>o", "o", True),
     ("a &>>o", "o", True), ("a >&o", "o", True), ("a 2>o", "o", True), ("a <o", "o", False), (">o", "o", True),
     ("a >$x", None, True), ("a >~/o", None, True)],
)  # fmt: skip
def test_redirects_of_files_are_named(line: str, target: str | None, is_write: bool) -> None:
    assert parse(line).is_plain
    assert redirects(line) == [(target, is_write)]


@pytest.mark.parametrize(
    "word", ["$x", '"$x"', "${x}", "a$1", "$?", "~", "~/a", "x=~/a", "a:~", "{a,'b'}", "{1..3}", '"$@"']
)
def test_words_that_depend_on_the_shell_have_no_text(word: str) -> None:
    parsed = parse(f"ls {word}")

    assert parsed.is_plain
    assert parsed.commands[0].words[1].text is None
    assert not parsed.commands[0].words[1].is_glob


@pytest.mark.parametrize(
    ("word", "pattern"),
    [("*", "*"), ("*.py", "*.py"), ("a?", "a?"), ("[ab]*", "[ab]*"), ("'a*'*", "a\\**"),
     ("src/*/\"[x]\"", "src/*/\\[x\\]"),
     ("\\?*", "\\?*")],
)  # fmt: skip
def test_globs_keep_their_pattern(word: str, pattern: str) -> None:
    found = parse(f"ls {word}").commands[0].words[1]

    assert (found.text, found.is_glob, found.pattern) == (None, True, pattern)


@pytest.mark.parametrize(
    ("line", "oddity", "programs"),
    [
        ("echo $(id)", "a command substitution", ["echo", "id"]),
        ("echo `id`", "a command substitution", ["echo", "id"]),
        ('echo "$(id)"', "a command substitution", ["echo", "id"]),
        ("echo $(($(id)))", "arithmetic", ["echo", "id"]),
        ("echo ${x:-$(id)}", "an expansion that does more than look up", ["echo", "id"]),
        ("echo ${x:=y}", "an expansion that does more than look up", ["echo"]),
        ("echo ${x@P}", "an expansion that does more than look up", ["echo"]),
        ("echo ${x[$(id)]}", "a command substitution", ["echo", "id"]),
        ("echo ${!x}", "an expansion that does more than look up", ["echo"]),
        ("echo $((1+1))", "arithmetic", ["echo"]),
        ("((x=1))", "arithmetic", []),
        ("cat <(id)", "a process substitution", ["cat", "id"]),
        ("cat <<E\n$(id)\nE", "a here-document", ["cat", "id"]),
        ("cat <<'E'\nhi\nE", "a here-document", ["cat"]),
        ("cat <<< $(id)", "a here-string", ["cat", "id"]),
        ("a & b", "a command in the background", ["a", "b"]),
        ("(a; b) & c", "a command in the background", ["a", "b", "c"]),
        ("f() { a; b; }", "a function", ["a", "b"]),
        ("for x in $(a); do b; done", "a loop", ["a", "b"]),
        ("for ((;;)); do b; done", "a loop", ["b"]),
        ("while a; do b; done", "a loop", ["a", "b"]),
        ("until a; do b; done", "a loop", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", "an if", ["a", "b", "c", "d", "e"]),
        ("case x in (x) a;; *) b;; esac", "a case", ["a", "b"]),
        ("f() { a; }", "a function", ["a"]),
        ("function f { a; }", "a function", ["a"]),
        ("[[ -f $(a) ]] && b", "a command substitution", ["[[", "a", "b"]),
        ("time ! a", "`!`", ["time", "!", "a"]),
        ("a | time b", "what could not be read for certain", ["a", "time", "b"]),
        ("time -v a", "what could not be read for certain", ["time", "-v"]),
        ("time A=1 a[0]=1 B+=2 b", "an assignment", ["time", "A=1", None, "B+=2", "b"]),
        ("time 1>&2 A=1 a", "an assignment", ["time", "A=1", "a"]),
        ("coproc a", "`coproc`", ["coproc", "a"]),
        ("x=1", "an assignment", []),
        ("PATH=. a", "an assignment", ["a"]),
        ("x=$(a) b", "an assignment", ["b", "a"]),
        ("x=(a b)", "an array", []),
        ('echo $"a"', "what could not be read for certain", ["echo"]),
        ("a | { b & }", "a command in the background", ["a", "b"]),
        ("a\r\nb", "a character that cannot be seen", None),
        ("a\u00a0b", "a character that cannot be seen", None),
        ("a '\u202e'", "a character that cannot be seen", None),
        ("a\x00b", "a character that cannot be seen", None),
        ("a '\x1b'", "a character that cannot be seen", None),
        ("a \udc80", "a character that cannot be seen", None),
        ("a 2>&-", "a closed stream", ["a"]),
        ("a <>o", "what could not be parsed", ["a"]),
        ("for x in a; do b; done >o; c", "a loop", ["b", "c"]),
        ("a 3>o", "what could not be read for certain", ["a"]),
        ("a {x}>o", "what could not be read for certain", ["a"]),
        ("a >/dev/tcp/127.0.0.1/1", "what could not be read for certain", ["a"]),
        ("a 2\\\n>o", "what could not be read for certain", ["a"]),
        ("a <2<b", "what could not be read for certain", ["a"]),
        ("-a", "a `-` at the start", ["-a"]),
        ("a 2>&- -x", "a closed stream", ["a"]),
        ("a 2>&-\n\\b >&2", "what could not be parsed", None),
        ("a &&", "what could not be parsed", None),
        ("a 'b", "what could not be parsed", None),
        ("a ;; b", "what could not be read for certain", None),
        ("fi", "", None),
        ("if a", "what could not be parsed", None),
    ],
)  # fmt: skip
def test_oddity_is_named_and_its_commands_are_found(line: str, oddity: str, programs: list[str] | None) -> None:
    parsed = parse(line)

    assert any(found.startswith(oddity) for found in parsed.oddities), parsed
    if programs is not None:
        assert names(parsed) == programs


@pytest.mark.parametrize(
    "line",
    ["eval 'rm x'", ". ./x", "source x", "trap a EXIT", "export A=1", "set -e", "shopt -s extglob", "alias ls=rm",
     "unset PATH", "exec a", "read x", "printf -v PATH x", "printf $x", "command export x", "builtin cd x", "$x a",
     "hash -p ./x ls", "enable -f x y", "declare x=1", "pushd d", "popd", "mapfile x", "*.sh"],
)  # fmt: skip
def test_shell_changing_builtin_is_odd(line: str) -> None:
    assert any("may change what follows" in oddity for oddity in parse(line).oddities)


@pytest.mark.parametrize("line", ["command -v ls", "command -V ls", "printf '%s' -v", "type ls", "exit 1", "cd src"])
def test_builtins_that_leave_the_shell_unchanged_are_plain(line: str) -> None:
    assert parse(line).is_plain


def test_redirected_group_opens_its_files_first() -> None:
    parsed = parse("(a; b) <f 2>o")

    assert parsed.is_plain
    assert parsed.commands[0].words == ()
    assert redirects("(a; b) <f 2>o") == [("f", False), ("o", True)]
    assert redirects("{ a; } >/dev/null 2>&1") == []


def test_fed_by_lists_the_commands_before_it_except_groups() -> None:
    assert [command.words[0].text for command in parse("a | b | c").commands[2].piped_from] == ["a", "b"]
    assert parse("a | (b) | c").commands[2].piped_from == ()
    assert parse("a | (b | c)").commands[2].piped_from == (parse("b").commands[0],)


def test_redirects_and_assignments_of_nested_commands_are_found() -> None:
    assert redirects("if a; then b >o; fi") == [("o", True)]
    assert redirects("for x in y; do a; done >o") == [("o", True)]
    assert redirects("cat <<E > o\nE") == [("o", True)]
    assert parse("(A=1 B+=2 a)").commands[0].assignments == ("A", "B")
    assert parse("X=1").commands == (SimpleCommand("X=1", (), (), ("X",), None),)
    assert parse("(rm > o -rf x)").commands[0].texts == ("rm", "-rf", "x")


@pytest.mark.parametrize(
    ("line", "directories"),
    [
        ("a", ["."]),
        ("cd d && a", [".", "d"]),
        ("cd d && cd e && a", [".", "d", "d/e"]),
        ("cd d && cd .. && a", [".", "d", "."]),
        ("cd .. && a", [".", ".."]),
        ("cd /x && a", [".", "/x"]),
        ("cd -- d && a", [".", "d"]),
        ("cd '~' && a", [".", "./~"]),
        ("cd d; a", [".", ". d"]),
        ("cd d\na", [".", ". d"]),
        ("cd d; cd e; a", [".", ". d", ". d d/e e"]),
        ("cd d; cd ..; a", [".", ". d", ". .. d"]),
        ("cd d; cd /x && a", [".", ". d", "/x"]),
        ("cd a; cd b; cd c; cd d; e", [".", ". a", ". a a/b b", ". a a/b a/b/c a/c b b/c c", None]),
        ("cd d || a", [".", "."]),
        ("cd d || exit; a", [".", ".", "d"]),
        ("cd d || exit 1 2; a", [".", ".", ". d"]),
        ("cd d || exit >o; a", [".", ".", ". d"]),
        ("cd d || exit --help; a", [".", ".", ". d"]),
        ("cd d || exit | b; a", [".", ".", ".", ". d"]),
        ("cd d && a || b", [".", "d", ". d"]),
        ("cd d | a && b", [".", ".", "."]),
        ("! cd d && a", [".", "."]),
        ("! cd d || a", [".", "d"]),
        ("a || cd d && b", [".", ".", ". d"]),
        ("cd && a", [".", None]),
        ("cd - && a", [".", None]),
        ("cd -P d && a", [".", None]),
        ("cd $x && a", [".", None]),
        ("cd ~ && a", [".", None]),
        ("cd d e && a", [".", None]),
        ("pushd d && a", [".", None]),
        ("command cd d && a", [".", None]),
        ("eval x; a", [".", None]),
        ("(cd d); a", [".", "."]),
        ("(cd d; a); b", [".", ". d", "."]),
        ("(cd d && a) && b", [".", "d", "."]),
        ("{ cd d; a; }; b", [".", ". d", ". d"]),
        ("{ cd d && a; } && b", [".", "d", "d"]),
        ("{ cd d && a; } >o && b", [".", ".", "d", "d"]),
        ("{ cd d && a; } >o || b", [".", ".", "d", ". d"]),
        ("{ cd d; } | a; b", [".", ".", "."]),
        ("! { cd d; } || a", [".", "d"]),
        ("{ exit; }; a", [".", None]),
        ("(exit); a", [".", "."]),
        ("{ cd $x; }; a", [".", None]),
        ("(cd $x); a", [".", "."]),
        ("cd d && (a; { cd e; }; b) && c", [".", "d", "d", "d d/e", "d"]),
        ("time cd d && a", [".", "d"]),
        ("cd d && [[ -f x ]] && a", [".", "d", "d"]),
    ],
)
def test_directories_follow_cd(line: str, directories: list[str | None]) -> None:
    found = [command.directories for command in parse(line).commands]

    assert [None if places is None else " ".join(places) for places in found] == directories


@pytest.mark.parametrize("line", lines_in("plain_lines.txt"))
def test_ordinary_lines_are_plain(line: str) -> None:
    assert parse(line).oddities == ()


@pytest.mark.parametrize("line", lines_in("odd_lines.txt"))
def test_lines_that_do_more_are_odd(line: str) -> None:
    assert not parse(line).is_plain


def unreadable(lines: Sequence[str]) -> list[str]:
    """Return the lines that bash cannot read."""
    each = 'for line; do /bin/bash -n -c "$line" 2>/dev/null; echo $?; done'
    read = subprocess.run(["/bin/bash", "-c", each, "bash", *lines], capture_output=True, text=True, check=True)
    return [line for line, code in zip(lines, read.stdout.split(), strict=True) if code != "0"]


def test_bash_reads_the_plain_lines_too() -> None:
    assert unreadable(lines_in("plain_lines.txt")) == []


def test_bash_cannot_read_unfinished_lines() -> None:
    assert unreadable(["ls", "a &&", "(a", "b"]) == ["a &&", "(a"]


@pytest.mark.parametrize("line", ["a {\u4e2d}; b", "a {1\u4e2d; b", "a {1..\U0010ffff}; b"])
def test_text_that_would_crash_the_grammar_does_not_reach_it(line: str) -> None:
    parsed = parse(line)

    assert any("cannot take" in oddity for oddity in parsed.oddities)
    assert names(parsed) == ["a", "b"]


def test_limits_are_oddities() -> None:
    assert any("characters" in oddity for oddity in parse("a " * MAX_PLAIN_CHARS).oddities)
    assert any("commands" in oddity for oddity in parse("a\n" * (MAX_PLAIN_COMMANDS + 1)).oddities)
    assert parse("a\n" * MAX_PLAIN_COMMANDS).is_plain
    assert parse("a" * MAX_BYTES + "b").commands == ()
    assert not parse("a" * MAX_BYTES + "b").is_plain


@pytest.mark.parametrize(
    "part", ["$(", "(", "( ", "{ ", "`", '"$(', "[[ ", "! ", "a|", "cat <<E\n", "((", "if ", "${a:-", ">a ", "<(a"]
)
def test_depth_does_no_harm(part: str) -> None:
    with suppress(TooNestedError):
        assert not parse(part * 5_000).is_plain


@pytest.mark.parametrize("part", ["$(", "! ", "time ", "xargs ", "a=("])
def test_longest_line_is_judged_in_bounded_time(part: str) -> None:
    """Bounds the work, by processor time, of the longest line that a call may have."""
    line = part * (MAX_COMMAND_BYTES // len(part))
    began_s = time.thread_time()

    with suppress(TooNestedError):
        assert not analyse(line, "/").is_read_only

    assert time.thread_time() - began_s < 20


def test_empty_line_and_comment_have_no_commands() -> None:
    for line in ("", "  ", "\n", "# a comment"):
        assert parse(line) == ParsedLine(())


pieces = st.lists(
    st.sampled_from(["a", " ", "'b c'", '"d"', "$x", "$(e)", "`f`", "|", "&&", ";", "\n", "&", "(", ")", "{ ", "; }",
                     ">o", "<<E", "\\", "*", "~", "x=1", "if", "\r", "é", "!", "#", "[", "[[", "${x:=y}",
                     "2>&1", "\\\n"]),
    max_size=8,
).map("".join)  # fmt: skip


@given(pieces)
@example("! >o")
@example(r">o>o \<<E")
def test_wrapping_never_makes_an_odd_line_plain(line: str) -> None:
    parsed, unfinished = parse(line), line.partition("#")[0].rstrip(" \n").endswith(("\\", "|", "&&"))
    if parsed.is_plain or unfinished or line.rstrip(" \n").endswith(("\\", "|", "&&")):
        return  # what is only not finished may be finished
    if parsed.oddities == ("what can be read in two ways",):
        return  # of the longer line both readings may be the same
    wrapped_lines = [f"a && {line}", f"{line}; a", f"{line}\na", f" {line} ", f"a | {line}"]
    if not set(line) & set("()}"):  # which would end the group that it is put into, and begin another one
        wrapped_lines += [f"({line})", f"{{ {line}; }}"]
    for wrapped in wrapped_lines:
        assert not parse(wrapped).is_plain, wrapped


@given(pieces)
def test_group_has_the_commands_and_plainness_of_its_content(line: str) -> None:
    inner = parse(line)
    if not inner.is_plain or not inner.commands or line.endswith("\\") or "#" in line:
        return
    groups = [f"({line}\n)"]
    if "}" not in line:  # in braces, a word such as `}a` is more than the grammar reads, and is asked about
        groups.append(f"{{ {line}\n}}")
    for group in groups:
        found = parse(group)
        if not found.is_plain:
            assert line.lstrip().startswith(("(", "\\")), group
            continue
        assert [command.words for command in found.commands] == [command.words for command in inner.commands]


@pytest.mark.parametrize(
    "line",
    ["(a", "a)", "( )", "((a))", "(a) b", "{ a }", "{a; }", "{ a; } b", "}", "a | }", "{ a; )", "({ a; )}", "a (b)",
     "x=1 (a)", "(a) (b)", "(a;;b)", "{ a; }}"],
)  # fmt: skip
def test_groups_that_bash_reads_otherwise_are_odd(line: str) -> None:
    assert not parse(line).is_plain


@given(st.lists(st.text("ab '\"\\$*?~{}[]!#=|&;<>()\n\té", max_size=8).filter(bool), min_size=1, max_size=4))
def test_quoted_words_round_trip(words: list[str]) -> None:
    # A bare `==` at the end is taken for what cannot be parsed, and shlex leaves it bare.
    line = " ".join(["run", *("'=='" if word == "==" else shlex.quote(word) for word in words)])

    assert texts(line) == [("run", *words)]


@given(pieces, pieces)
def test_joining_plain_lines_joins_their_commands(first: str, second: str) -> None:
    one, two = parse(first), parse(second)
    if re.match(r"[ \n]*\\", second):
        return  # the grammar runs over a line end before a backslash, and the line is odd for it
    if one.is_plain and two.is_plain and not first.endswith("\\"):
        both = parse(f"{first}\n{second}")
        assert both.is_plain
        assert [command.words for command in both.commands] == [c.words for c in (*one.commands, *two.commands)]


@given(st.text(max_size=30) | st.text("ab \t\n'\"\\$`|&;<>(){}[]*?~#!=-2\r\x00\udc80é", max_size=30))
def test_parse_takes_any_text(text: str) -> None:
    parsed = parse(text)

    assert parsed.oddities or all(command.words or command.redirects or command.source for command in parsed.commands)


@given(st.text("ab \n'\"\\$`|&;<>(){}[]*?~#!=-2é", min_size=1, max_size=12))
def test_line_that_bash_cannot_read_is_never_plain(line: str) -> None:
    if parse(line).is_plain:
        assert subprocess.run(["/bin/bash", "-n", "-c", line], capture_output=True).returncode == 0
