"""The line below the input."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.status import Cost, ModelStatus, StatusState, beside_mode, status_line
from panpan.system.text.cell_width import cell_width
from panpan.types.content import text

DARK = Theme("dark")
FULL = StatusState(
    mode="plan",
    model=ModelStatus("claude-opus-5", context_used_percent=43.4),
    cost=Cost(1.5),
    branch="main",
    of_features=(text("2 tasks running", "accent"),),
    hint="? for keys",
)


def plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def test_status_line_shows_all_parts_if_they_fit() -> None:
    assert plain(status_line(FULL, 200, DARK)) == (
        "plan mode · claude-opus-5 · 43% context · $1.50 · main · 2 tasks running · ? for keys"
    )


def test_status_line_marks_a_cost_that_is_estimated() -> None:
    state = replace(FULL, cost=Cost(1.5, is_estimated=True))

    assert "· ~$1.50 ·" in plain(status_line(state, 200, DARK))


def test_status_line_omits_the_least_important_parts() -> None:
    narrow = plain(status_line(FULL, 40, DARK))

    assert narrow == "plan mode · claude-opus-5 · 43% context"
    assert plain(status_line(FULL, 20, DARK)).startswith("plan mode")


def test_other_folder_is_shown_before_cost_and_branch() -> None:
    state = replace(FULL, folder="./src")

    assert "43% context · in ./src · $1.50 · main" in plain(status_line(state, 200, DARK))
    assert plain(status_line(state, 51, DARK)) == "plan mode · claude-opus-5 · 43% context · in ./src"
    assert "· in " not in plain(status_line(replace(FULL, hint=""), 200, DARK))


def test_keys_of_vi_and_thinking_have_a_sign() -> None:
    state = StatusState(vi_mode="NORMAL", model=ModelStatus("m", thinks=True))

    assert plain(status_line(state, 80, DARK)) == "default · NORMAL · m · thinking"


def test_unusual_mode_is_shown_beside_the_users_line() -> None:
    own = "\x1b[31mmy line\x1b[0m"

    assert beside_mode(own, "default", 80, DARK) == own
    assert plain(beside_mode(own, "bypassPermissions", 80, DARK)) == "bypass permissions · my line"
    assert own in beside_mode(own, "plan", 80, DARK)


@given(st.text(alphabet="ab 世", max_size=50), st.integers(1, 60))
def test_mode_stays_beside_any_line_of_the_user(own: str, width: int) -> None:
    line = beside_mode(own, "plan", width, DARK)

    assert cell_width(line) <= width
    assert plain(line).startswith("plan mode"[: width - 1])


def test_unknown_parts_are_left_out() -> None:
    assert plain(status_line(StatusState(), 80, DARK)) == "default"
    assert "0% context" in plain(status_line(StatusState(model=ModelStatus(context_used_percent=0.0)), 80, DARK))
    assert "1 task running" in plain(status_line(StatusState(of_features=(text("1 task running"),)), 80, DARK))


def test_window_that_fills_up_changes_its_colour() -> None:
    low, high, full = (
        status_line(StatusState(model=ModelStatus(context_used_percent=percent)), 80, DARK)
        for percent in (10.0, 85.0, 97.0)
    )

    assert DARK.paint("dim", "10% context") in low
    assert DARK.paint("warn", "85% context") in high
    assert DARK.paint("bad", "97% context") in full


def test_status_line_names_cannot_drive_the_terminal() -> None:
    line = status_line(replace(FULL, branch="x\x1b]0;evil\x07y", model=ModelStatus("a\x1b[2J\nb")), 200, DARK)

    assert "evil" not in line
    assert "\x1b[2J" not in line
    assert "\n" not in line


@given(
    st.builds(
        StatusState,
        mode=st.sampled_from(["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]),
        model=st.builds(ModelStatus, name=st.text(max_size=40), context_used_percent=st.none() | st.floats(0, 100)),
        cost=st.none() | st.builds(Cost, usd=st.floats(0, 1e6)),
        branch=st.text("abc/日本語é👍", max_size=40),
        of_features=st.lists(st.text(max_size=20).map(text), max_size=3),
        hint=st.text(max_size=60),
    ),
    st.integers(0, 120),
)
def test_status_line_is_never_wider_than_the_terminal(state: StatusState, width: int) -> None:
    assert cell_width(plain(status_line(state, width, DARK))) <= width


def test_mode_and_model_stay_in_little_room() -> None:
    long, short = (ModelStatus(name, context_used_percent=43.4) for name in ("claude-sonnet-4-5-20250929", "gpt-5"))
    state = replace(FULL, mode="default", model=long, hint="")

    assert plain(status_line(state, 40, DARK)) == "default · claude-sonnet-4… · 43% context"
    assert plain(status_line(replace(state, mode="bypassPermissions"), 40, DARK)) == (
        "bypass permissions · claude-sonnet-4-5-…"
    )
    assert plain(status_line(replace(state, model=short), 40, DARK)) == "default · gpt-5 · 43% context · $1.50"
