import pytest

from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.parser import ShellParser
from panpan.shell_analysis.words import MOST_WORDS

PARSER = ShellParser()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls src/{a,b}", ["ls", "src/a", "src/b"]),
        ("ls {a,b}/{c,d}.py", ["ls", "a/c.py", "a/d.py", "b/c.py", "b/d.py"]),
        ("ls a{,.bak}", ["ls", "a", "a.bak"]),
        ("ls -{l,a}", ["ls", "-l", "-a"]),
        ("ls {1..2,b}", ["ls", "1..2", "b"]),
    ],
)
def test_plain_braces_expand_to_the_words_of_bash(line: str, words: list[str]) -> None:
    parsed = PARSER.parse(line)

    assert parsed.is_plain
    assert [word.text for word in parsed.commands[0].words] == words


@pytest.mark.parametrize(
    "word",
    ["{a,b", "{a..c}", "{a,{b,c}}", "{a,'b'}", "{a,$X}", '"{a,b}"', "{,}", "{a,b}{", "\\{a,b}", "x{}y{a,b}", "{a,~/b}"],
)
def test_other_braces_are_not_expanded(word: str) -> None:
    _, *arguments = PARSER.parse(f"ls {word}").commands[0].words

    assert [argument.text for argument in arguments] != ["a", "b"]
    assert all(argument.text is None or argument.text in ("{a,b", "{a,b}", "a") for argument in arguments)


def test_pattern_in_braces_is_one_pattern_each() -> None:
    [effect] = analyse("cat src/*.{ts,tsx}").effects

    assert effect.is_read_only
    assert effect.read_details.globs == ("src/*.ts", "src/*.tsx")


def test_program_and_redirect_target_in_braces_are_not_expanded() -> None:
    assert not analyse("{ls,-l}").is_read_only
    assert analyse("echo x > {a,b}").effects[0].writes is None


def test_words_in_braces_count_as_protected_paths() -> None:
    assert analyse("rm -rf .{git,x}").writes == (".git", ".x")
    assert ".git/config" in analyse("make .git/{config,x}; (true)").effects[0].path_like_words


def test_brace_words_are_bounded() -> None:
    most = "{" + ",".join("ab"[:1] * MOST_WORDS) + "}"

    assert len(PARSER.parse(f"ls {most}").commands[0].words) == MOST_WORDS + 1
    assert len(PARSER.parse(f"ls {most}{{a,b}}").commands[0].words) == 2
