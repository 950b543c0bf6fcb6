"""Time spent waiting for the user."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.turn_text import WaitingTime, spoken_duration
from tests.faces.terminal.dialogs.drawn import Clock


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=20))
def test_waiting_time_is_that_of_any_open_question(steps: list[tuple[bool, int]]) -> None:
    clock = Clock()
    waiting = WaitingTime(clock)
    opened, expected = list[object](), 0
    for begins, seconds in steps:
        if begins:
            opened.append(waiting.counted())
            opened[-1].__enter__()
        elif opened:
            opened.pop(0).__exit__(None, None, None)
        clock.now_s += seconds
        expected += seconds if opened else 0
        assert waiting.seconds == expected


def test_withdrawn_question_is_waited_for_no_more() -> None:
    clock = Clock()
    waiting = WaitingTime(clock)
    try:
        with waiting.counted():
            clock.now_s += 3
            raise ZeroDivisionError
    except ZeroDivisionError:
        clock.now_s += 5

    assert waiting.seconds == 3


def test_open_question_is_not_answered_yet() -> None:
    clock = Clock()
    waiting = WaitingTime(clock)
    with waiting.counted():
        clock.now_s += 3
        assert (waiting.seconds, waiting.answered_s) == (3, 0)

    assert (waiting.seconds, waiting.answered_s) == (3, 3)


def test_duration_names_the_time_for_answers_if_it_matters() -> None:
    assert spoken_duration(52.5, 40.0) == "12.5 s (and 40 s for your answers)"
    assert spoken_duration(2.5, 0.2) == "2.3 s"
    assert spoken_duration(1.0, 1.5) == "0.0 s (and 2 s for your answers)"
