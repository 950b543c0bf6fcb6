"""A single word is a command or an error, and a prompt only where the user says so."""

import string
from collections.abc import Sequence

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.cli.main import FIRST_PROMPT, cli
from panpan.cli.subcommands import subcommands

COMMANDS = subcommands()
CONTEXT = click.Context(cli)
GROUP_BY_NAME = {
    name: command for name in COMMANDS if isinstance(command := cli.get_command(CONTEXT, name), click.Group)
}
NAMES = string.ascii_letters + string.digits + "_-."


def prompt_of(*args: str) -> str | None:
    """The prompt that a command line has beside -p."""
    prompt = cli.make_context("panpan", list(args)).meta.get(FIRST_PROMPT)
    assert prompt is None or isinstance(prompt, str)
    return prompt


@given(st.text(NAMES, min_size=1, max_size=20).filter(lambda word: word[0] not in "-." and word not in COMMANDS))
def test_bare_word_is_no_prompt_unless_the_user_says_so(word: str) -> None:
    if word != "help":
        with pytest.raises(click.UsageError, match="there is no command"):
            prompt_of("-q", word)
    assert prompt_of("--", word) == word
    if word != "help":
        assert prompt_of(word, "-p") == word


@pytest.mark.parametrize("word", sorted(COMMANDS))
def test_name_of_a_command_behind_two_dashes_is_a_prompt(word: str) -> None:
    assert prompt_of("--", word) == word


@pytest.mark.parametrize("text", ["fix it", "why?", "/review", "@notes.md", "修复失败的测试", "/etc/hosts", "c++"])
def test_text_that_is_no_bare_word_is_a_prompt(text: str) -> None:
    assert prompt_of(text) == text


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["sesions"], "`panpan sessions`"),
        (["sesions", "list"], "`panpan sessions`"),
        (["reviw"], "`panpan review`"),
        (["statuss"], "`panpan -p /status`"),
        (["frobnicate"], "the commands are acp, agents, attach, batch, capabilities, ci, commit"),
        (["mend", "the", "test"], "needs quotes"),
        (["logn"], "did you mean `panpan login`?"),
        (["logouts"], "did you mean `panpan logout`?"),
        (["doctr"], "did you mean `panpan doctor`?"),
    ],
)
def test_refusal_of_a_bare_word_names_the_nearest_command(args: Sequence[str], hint: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        prompt_of(*args)

    assert hint in caught.value.message


@pytest.mark.parametrize("group", sorted(GROUP_BY_NAME))
def test_refusal_names_each_group_that_has_the_word(group: str) -> None:
    for inner in set(GROUP_BY_NAME[group].list_commands(CONTEXT)) - COMMANDS.keys():
        with pytest.raises(click.UsageError) as caught:
            prompt_of(inner)

        assert f"`panpan {group} {inner}`" in caught.value.message


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["-c", "x"], "panpan -c -p x"),
        (["x", "-c"], "panpan -p x -c"),
        (["--cwd", "my folder", "-q", "x"], "panpan --cwd 'my folder' -q -p x"),
        (["-c", "statuss"], "panpan -c -p /status"),
        (["sesions", "list"], "panpan -p 'sesions list'"),
        (["--api-key", "hidden-1", "x"], "panpan … -p x"),
        (["--set", "api_key=hidden-1", "x"], "panpan … -p x"),
    ],
)
def test_refusal_of_a_bare_word_keeps_the_options(args: Sequence[str], line: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        prompt_of(*args)

    assert line in caught.value.message
    assert "hidden-1" not in caught.value.message
