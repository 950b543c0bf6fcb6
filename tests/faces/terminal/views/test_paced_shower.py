"""However much a model says at once, keys are taken in between, and after an interrupt the end comes soon."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.views.turn_view import CHARS_AFTER_STOP, PIECE_CHARS, PacedRenderer
from panpan.types.content import TextBlock
from panpan.types.events import BlockFinished, Event, TextDelta, ThinkingDelta, ToolInputDelta, ToolProgress
from tests.fakes.subagents import of_agent

SIZES = st.lists(st.integers(1, 5 * PIECE_CHARS), max_size=8)


class View:
    """Notes what is shown, and how much of it from one pause to the next."""

    def __init__(self) -> None:
        self.shown: list[Event] = []
        self.runs: list[int] = [0]

    def show(self, event: Event) -> None:
        self.shown.append(event)
        if isinstance(event, TextDelta | ThinkingDelta | ToolProgress):
            self.runs[-1] += len(event.text)

    async def drain(self) -> None:
        self.runs.append(0)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.shown if isinstance(event, TextDelta))


def deltas(sizes: list[int]) -> list[TextDelta]:
    return [TextDelta(index=0, text=f"{number % 10}" * size) for number, size in enumerate(sizes)]


@given(SIZES)
async def test_shower_shows_all_text_with_pauses(sizes: list[int]) -> None:
    view = View()
    shower = PacedRenderer(view, lambda: False)

    for delta in deltas(sizes):
        await shower.show(delta)

    assert view.text == "".join(delta.text for delta in deltas(sizes))
    assert max(view.runs) < 2 * PIECE_CHARS
    assert shower.left_out == 0


@given(SIZES, SIZES)
async def test_stop_shows_little_more_and_counts_the_rest(before: list[int], after: list[int]) -> None:
    view = View()
    is_stopped = False
    shower = PacedRenderer(view, lambda: is_stopped)
    for delta in deltas(before):
        await shower.show(delta)
    is_stopped = True

    for delta in deltas(after):
        await shower.show(delta)

    assert len(view.text) - sum(before) == min(len(view.text) - sum(before), CHARS_AFTER_STOP)
    assert len(view.text) + shower.left_out == sum(before) + sum(after)
    assert sum(after) > CHARS_AFTER_STOP or shower.left_out == 0


async def test_stop_in_the_middle_of_one_delta_counts_at_once() -> None:
    view = View()
    shower = PacedRenderer(view, lambda: len(view.text) >= 2 * PIECE_CHARS)

    await shower.show(TextDelta(index=0, text="a" * 300_000))

    assert len(view.text) == 2 * PIECE_CHARS + CHARS_AFTER_STOP
    assert shower.left_out == 300_000 - len(view.text)


async def test_event_without_text_is_shown_after_a_stop() -> None:
    view = View()
    shower = PacedRenderer(view, lambda: True)
    over = BlockFinished(index=0, block=TextBlock(text="a"))

    await shower.show(TextDelta(index=0, text="a" * 300_000))
    await shower.show(over)

    assert view.shown[-1] is over


async def test_subagent_deltas_are_passed_on_without_pauses() -> None:
    view = View()
    shower = PacedRenderer(view, lambda: False)

    for event in of_agent(*[TextDelta(0, "ten chars.")] * 1_000, *[ToolInputDelta(0, "ten chars.")] * 1_000):
        await shower.show(event)

    assert len(view.shown) == 2_000
    assert len(view.runs) == 1 + 2_000 * 10 // PIECE_CHARS


async def test_subagent_text_after_a_stop_is_no_part_of_the_answer() -> None:
    view = View()
    shower = PacedRenderer(view, lambda: True)

    for event in of_agent(*[TextDelta(0, "x" * PIECE_CHARS)] * 10):
        await shower.show(event)

    assert (len(view.shown), shower.left_out) == (CHARS_AFTER_STOP // PIECE_CHARS, 0)
