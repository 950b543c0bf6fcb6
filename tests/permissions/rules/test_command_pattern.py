import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.permissions.rules.command_parts import simple_commands
from panpan.permissions.rules.patterns import CommandPattern
from panpan.types.permission import exact_pattern


def allows(pattern: str, command: str) -> bool:
    commands = simple_commands(command)
    return commands is not None and all(CommandPattern(pattern).matches_words(words) for words in commands)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("npm run test", "npm run test"),
        ("npm run test", "npm  run 'test'"),
        ("npm run *", "npm run test --watch"),
        ("npm run *", "npm run"),
        ("npm run:*", "npm run test"),
        ("npm run:*", "npm run"),
        ("npm*", "npmx a"),
        ("git * main", "git checkout -b main"),
        ("* --version", "python --version"),
        ("git commit -m *", "git commit -m 'a; b'"),
        ('git commit -m "a b"', "git commit -m 'a b'"),
        ("find . -name '\\*.py'", "find . -name '*.py'"),
        ("find . -name '\\*.py'", "find . -name \\*.py"),
        ("find . -name '\\*.py' *", "find . -name '*.py' -ls"),
        ("rm build/*", "rm build/*"),
        ("rm *.o", "rm *.o"),
        ("~/bin/tool *", "~/bin/tool x"),
        ("[ *", "[ -f x ]"),
        ("touch '' *", "touch '' a"),
        ("*", "anything"),
    ],
)
def test_allowance_matches_by_words(pattern: str, command: str) -> None:
    assert allows(pattern, command)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("npm run test", "npm run tests"),
        ("npm run test", "npm run test --watch"),
        ("npm run *", "npm runx"),
        ("npm run *", "npm run test; rm x"),
        ("npm run *", "npm run $(rm x)"),
        ("npm run *", "npm run > x"),
        ("npm run *", "npm run &"),
        ("npm run *", "npm run `rm x`"),
        ("npm run *", "npm run\nrm x"),
        ("echo a b", "echo 'a b'"),
        ("echo a b", "'echo a' b"),
        ("npm run *", "'npm run' x"),
        ("git * main", "git x main2"),
        ("ls *", "lsof"),
        ("find . -name \\*.py", "find . -name a.py"),
        ("rm '\\*' *", "rm * x"),
        ("rm ? *", "rm ? x"),
        ("rm *b]", "rm [ab]"),
        ("rm '~' *", "rm ~ x"),
        ("rm *\\*", "rm a*"),
        ("'~/bin/tool' *", "~/bin/tool x"),
        ("touch '' *", "touch a"),
        ("make && rm x", "make '&&' rm x"),
    ],
)
def test_allowance_is_not_widened(pattern: str, command: str) -> None:
    assert not allows(pattern, command)


@pytest.mark.parametrize("pattern", ["", "  ", "echo 'a", ' "'])
def test_pattern_that_names_no_command_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"names no command|closing one"):
        CommandPattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("rm *", "rm x"),
        ("rm *", "rm"),
        ("rm:*", "a; /usr/bin/rm -r x"),
        ("git push *", "cd x && git -C y push origin main"),
        ("npm test | tail *", "npm test | tail -5"),
        ("curl * | sh", "curl http://x | sh"),
        ("*", ""),
        ("rm \\*", "rm *"),
        ("rm \\*", "rm '*'"),
        ("rm ~", "rm ~"),
        ("rm ~", "rm '~'"),
        ("rm '' x", "rm x"),
        ("rm *", "A='x y' rm z"),
        ("git push *", 'GIT_COMMITTER_NAME="a; b" git push'),
        ("rm *", "A=x\\ y rm z"),
        ("rm *", "A=${B:-x y} rm z"),
        ("rm *", ">'a b' rm x"),
        ("rm *", ">'a;b' rm x"),
        ("rm *", "# it's a comment\nA='x y' rm z"),
        ("rm *", "time -p rm x"),
        ("rm *", "function f { rm x; }; f"),
        ("rm *", "chrt 1 rm x"),
    ],
)
def test_restriction_holds_for_any_part(pattern: str, command: str) -> None:
    assert CommandPattern(pattern).restricts(command)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [("rm *", "rmdir x"), ("rm *", "echo rm"), ("git push *", "git status"), ("rm *", "ls -rm x")],
)
def test_restriction_does_not_hold_for_other_commands(pattern: str, command: str) -> None:
    assert not CommandPattern(pattern).restricts(command)
    assert not CommandPattern(pattern).may_restrict(command)


def test_restriction_may_hold_for_words_known_only_later() -> None:
    pattern = CommandPattern("rm -rf /tmp/x")

    assert pattern.may_restrict("$CMD x")
    assert pattern.may_restrict("rm $ARGS")
    assert pattern.may_restrict("rm ~/x")
    assert not pattern.may_restrict("wc $FILE")
    assert not pattern.may_restrict("[ -f x ]")


LINES = st.text(alphabet="ab cd-*\\'\";&|$`()<>\n:", min_size=1, max_size=20)


@given(LINES)
def test_exact_pattern_matches_its_own_line(line: str) -> None:
    try:
        pattern = CommandPattern(exact_pattern(line))
    except ValueError:
        return

    assert pattern.matches_exactly(line)
    assert pattern.restricts(line)


@given(LINES, LINES)
def test_exact_pattern_matches_no_line_of_other_words(line: str, other: str) -> None:
    try:
        pattern = CommandPattern(exact_pattern(line))
    except ValueError:
        return

    if pattern.matches_exactly(other):
        assert other.strip() == line.strip()
    commands = simple_commands(other)
    if commands and pattern.matches_words(commands[0]):
        assert simple_commands(line.lstrip()) == [commands[0]]


@given(st.text(alphabet="ab &;|\n", max_size=12), st.text(alphabet="ab ", max_size=6))
def test_restriction_covers_every_line_that_an_allowance_does(command: str, pattern: str) -> None:
    try:
        compiled = CommandPattern(f"{pattern}*")
    except ValueError:
        return

    for words in simple_commands(command) or ():
        if compiled.matches_words(words):
            assert compiled.restricts(command)
