"""Tools that run: a row each with their time, and the last lines of what they print."""

from panpan.core.conversation import Conversation
from panpan.types.events import ToolProgress, ToolStarted
from panpan.ui.repl.rendering.cells import without_sequences
from panpan.ui.repl.theme import Theme
from panpan.ui.repl.tools_view import ToolsView
from panpan.ui.repl.transcript import Transcript


class Canvas:
    """Keeps what was shown."""

    theme = Theme("plain", has_sequences=False)
    width = 60

    def __init__(self) -> None:
        self.rows: list[str] = []

    def show(self, *lines: str) -> None:
        self.rows += lines

    def refresh(self) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def rows_of(view: ToolsView) -> list[str]:
    return [without_sequences(row) for row in view.live_lines(60)]


def test_the_limit_of_a_tool_is_shown_besides_the_time_that_has_passed() -> None:
    clock = Clock()
    view = ToolsView(Canvas(), clock, Transcript(Conversation()))
    view.follow(ToolStarted("1", "Bash", "make", timeout_s=120))
    view.follow(ToolStarted("2", "Ask", "which"))

    clock.now_s = 30

    assert rows_of(view) == ["* Bash make 30 s (limit 2 min)", "* Ask which 30 s"]


def test_expanded_it_says_how_many_lines_lie_above() -> None:
    view = ToolsView(Canvas(), Clock(), Transcript(Conversation()))
    view.follow(ToolStarted("1", "Bash", "make"))
    view.follow(ToolProgress("1", "".join(f"line {number}\n" for number in range(30))))

    folded = rows_of(view)
    view.is_expanded = True
    expanded = rows_of(view)

    assert folded == ["* Bash make", *(f"    line {number}" for number in (27, 28, 29))]
    assert expanded == ["* Bash make", "    … 10 lines above", *(f"    line {number}" for number in range(10, 30))]


def test_expanded_it_says_nothing_where_all_is_on_the_screen() -> None:
    view = ToolsView(Canvas(), Clock(), Transcript(Conversation()))
    view.is_expanded = True
    view.follow(ToolStarted("1", "Bash", "make"))
    view.follow(ToolProgress("1", "\none\n\ntwo\n"))

    assert rows_of(view) == ["* Bash make", "    one", "    two"]
