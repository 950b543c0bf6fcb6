"""Summaries of a turn, in the words that the terminal and the plain face share."""

from collections.abc import Sequence

import pytest

from panpan.faces.turn_text import TokensSoFar, tokens_in_short, turn_summary
from panpan.types.events import (
    FileChange,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    ToolInputDelta,
    TurnEnded,
)
from panpan.types.messages import Usage
from tests.fakes.subagents import of_agent, reply

CHANGED = FileChange("lamp.py", "modified", 3, 1)
CACHES = (FileChange("__pycache__/lamp.pyc", "added", None, None), FileChange(".pytest_cache/", "added", None, None))


def summary(usage: Usage, *files: FileChange, cost_usd: float | None = None, rounds: int = 1) -> str:
    parts = turn_summary(TurnEnded(rounds, usage, cost_usd, 3.8, 0.0, files=files), 0.0)
    return " · ".join(part for part, _ in parts)


def test_summary_tells_new_input_output_and_the_cached_share() -> None:
    usage = Usage(
        input_tokens=200, output_tokens=1_100, cache_read_input_tokens=25_000, cache_creation_input_tokens=5_000
    )

    said = summary(usage, CHANGED, cost_usd=0.0146, rounds=5)

    assert said == "↑ 5.2k new ↓ 1.1k out · 83% cached · 3.8 s · 5 rounds · $0.0146 · 1 file +3 -1"


def test_summary_is_short_where_nothing_was_counted_or_cached() -> None:
    assert summary(Usage()) == "3.8 s · 1 round"
    assert summary(Usage(input_tokens=912, output_tokens=7)) == "↑ 912 new ↓ 7 out · 3.8 s · 1 round"


def test_summary_says_how_much_ran_unasked() -> None:
    parts = turn_summary(TurnEnded(1, Usage(), None, 3.8, 0.0, unasked=3), 0.0)

    assert " · ".join(part for part, _ in parts) == "3.8 s · 1 round · 3 commands without a question"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (CACHES, ""),
        ([FileChange("out/", "added", 0, 0)], ""),
        ([*CACHES, CHANGED], " · 1 file +3 -1"),
        ([FileChange("out/", "added", 0, 0), CHANGED], " · 1 file +3 -1, 1 folder"),
    ],
)
def test_summary_tells_of_the_users_files_only(files: Sequence[FileChange], said: str) -> None:
    assert summary(Usage(), *files) == f"3.8 s · 1 round{said}"


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(999, "999"), (1_000, "1.0k"), (999_949, "999.9k"), (999_950, "1.0M"), (12_345_678, "12.3M")],
)
def test_tokens_are_rounded_to_one_decimal(tokens: int, said: str) -> None:
    assert tokens_in_short(Usage(input_tokens=tokens)) == f"↑ {said} ↓ 0"


def test_tokens_so_far_count_subagents_and_what_arrives() -> None:
    tokens = TokensSoFar()
    tokens.follow(reply())
    tokens.follow(of_agent(reply())[0])
    tokens.follow(ReplyStarted("", "m", Usage(input_tokens=50, output_tokens=1)))
    tokens.follow(TextDelta(0, "x" * 80))
    tokens.follow(ToolInputDelta(1, "x" * 80))

    assert tokens_in_short(tokens.usage) == "↑ 250 ↓ 60"

    tokens.follow(RetryScheduled(2, "overloaded", 1.0))
    assert tokens_in_short(tokens.usage) == "↑ 200 ↓ 20"
