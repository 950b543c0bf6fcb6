from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan import __version__
from panpan.faces.terminal.commands.show_commands import bar_cells, context_note, context_shapes, duration
from panpan.faces.terminal.rendering.displays import display_rows
from panpan.faces.terminal.screen.theme import Theme, ThemeName
from panpan.session.context_usage import SOURCES, ContextPart, ContextUsage
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, SystemReminder, Usage, UserMessage
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in

RULES = SystemReminder(
    text='<context name="rules">\n<rules file="/p/AGENTS.md">\nuse tabs\n</rules>\n'
    '<rules file="/p/more.md" imported-by="/p/AGENTS.md">\nno\n</rules>\n</context>',
    cause="session:start",
)


def reply(cost_usd: float | None, tokens: int = 1_000) -> AssistantMessage:
    usage = Usage(input_tokens=tokens, output_tokens=200, cache_read_input_tokens=300, cache_creation_input_tokens=50)
    return AssistantMessage(
        content=(TextBlock(text="yes"),), model="scripted", usage=usage, cost_usd=cost_usd, duration_s=2.0
    )


@pytest.mark.parametrize("theme", ["dark", "light", "high-contrast", "plain"])
@pytest.mark.parametrize("width", [40, 80, 200])
async def test_context_is_shown_by_source_within_the_width(tmp_path: Path, theme: ThemeName, width: int) -> None:
    terminal = terminal_in(tmp_path / "p", UserMessage.of("hello"), reply(0.1), width=width, theme=Theme(theme))

    await type_in(terminal, "/context")

    assert "1,550 of 10,000 tokens" in terminal.text
    for name in ("System prompt", "Tool definitions", "Your messages", "Replies", "Thinking", "Free"):
        assert name in terminal.text
    assert "estimate" in terminal.text
    assert terminal.widest <= width


async def test_context_that_nobody_counted_is_said_to_be_an_estimate(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", UserMessage.of("hello")), "/context")

    assert "about " in terminal.text
    assert "so is the sum" in terminal.text


async def test_window_of_unknown_size_is_said_to_be_one(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", UserMessage.of("hello"), reply(0.1))
    terminal.session.context_window = None

    await type_in(terminal, "/context")

    assert "not known" in terminal.text
    assert "Free" not in terminal.text
    assert "[compaction] window_tokens says how large it is" in " ".join(terminal.text.split())


@pytest.mark.parametrize(
    ("window", "is_kept_short", "said"),
    [
        (10_000, True, ""),
        (None, True, "made shorter only once a request is refused as too long"),
        (10_000, False, "/compact does"),
        (None, False, "/compact does"),
    ],
)
def test_context_view_says_what_a_full_window_causes(window: int | None, is_kept_short: bool, said: str) -> None:
    usage = ContextUsage(window, [ContextPart(source, 1) for source in SOURCES], is_counted=True)

    note = context_note(usage, is_kept_short=is_kept_short)

    assert said in note
    assert bool(said) == ("shorter" in note)


@given(st.lists(st.integers(0, 100_000), min_size=7, max_size=7), st.integers(1, 200_000), st.integers(10, 80))
def test_bar_is_as_wide_as_it_should_be_and_true(tokens: list[int], window: int, width: int) -> None:
    usage = ContextUsage(window, [ContextPart(*part) for part in zip(SOURCES, tokens, strict=True)], is_counted=True)

    cells = bar_cells(usage, width)

    whole = max(window, sum(tokens))
    assert sum(cells) <= width
    assert all(abs(cell - count * width / whole) <= 1 for cell, count in zip(cells, tokens, strict=True))


def test_context_sources_differ_in_letters_without_colours() -> None:
    usage = ContextUsage(70, [ContextPart(source, 10) for source in SOURCES], is_counted=True)

    (bar,) = display_rows(context_shapes(usage, 70)[1], 70, Theme("high-contrast"))

    letters = [char for char in bar if char.isalpha() and char != "m"]
    assert len(set(letters)) == len(SOURCES)


async def test_cost_is_shown_by_model_with_cached_and_written_tokens(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", UserMessage.of("a"), reply(0.25), reply(0.5), width=200)

    await type_in(terminal, "/cost")

    assert "2,000 input, 400 output, 600 read from the cache, 100 written to it; $0.7500" in terminal.text
    assert "4.0 s of it waiting" in terminal.text


async def test_price_that_is_not_known_is_said_to_be_so(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", reply(None), reply(0.5), width=200)

    await type_in(terminal, "/usage")

    assert "at least $0.5000; a price is not known" in terminal.text


async def test_cost_before_the_first_reply_is_nothing(tmp_path: Path) -> None:
    assert "cost nothing" in (await type_in(terminal_in(tmp_path / "p"), "/cost")).text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 0 s"), (185, "3 min 5 s"), (7_800, "2 h 10 min")],
)
def test_duration_is_told_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


async def test_status_says_where_one_is(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", UserMessage.of("hello"), reply(0.25), width=200)
    (tmp_path / "p" / ".git").mkdir()
    (tmp_path / "p" / ".git" / "HEAD").write_text("ref: refs/heads/wip\n")
    terminal.session.title = "The \x1b[2Jtest"

    await type_in(terminal, "/status")

    for said in (
        "s1 The test",
        str(tmp_path / "p"),
        "wip",
        "scripted, since a test",
        "default",
        "$0.2500",
        __version__,
    ):
        assert said in terminal.text


async def test_memory_is_what_the_model_was_told(tmp_path: Path) -> None:
    deeper = SystemReminder(text='<rules file="/p/sub/CLAUDE.md">\nhush\n</rules>', cause="memory:/p/sub/CLAUDE.md")
    other = SystemReminder(text='<rules file="/no">\nx\n</rules>', cause="a tool said so")

    terminal = await type_in(terminal_in(tmp_path / "p", UserMessage.of("x"), RULES, deeper, other), "/memory")

    assert [path for path in ("/p/AGENTS.md", "/p/more.md", "/p/sub/CLAUDE.md") if path in terminal.text] == [
        "/p/AGENTS.md",
        "/p/more.md",
        "/p/sub/CLAUDE.md",
    ]
    assert "imported by /p/AGENTS.md" in terminal.text
    assert "/no" not in terminal.text


async def test_memory_before_the_first_message_is_what_will_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    terminal = terminal_in(tmp_path / "p", width=300)
    (tmp_path / "p" / "AGENTS.md").write_text("use tabs")

    await type_in(terminal, "/memory")

    assert str(tmp_path / "p" / "AGENTS.md") in terminal.text.replace("\n", "").replace(" ", "")
    assert "with the first message" in terminal.text


async def test_memory_command_without_memory_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert "/init" in (await type_in(terminal_in(tmp_path / "p"), "/memory")).text


async def test_answer_time_is_no_time_of_the_turns(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", UserMessage.of("hello"), reply(0.1), waited_s=60.0, width=200)

    assert "0.0 s in turns (and 1 min 0 s for your answers)" in (await type_in(terminal, "/cost")).text
