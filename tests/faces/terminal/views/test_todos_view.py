"""The checklist above the input: there as long as something is open, never in the way, and hidden with a key."""

from collections.abc import Sequence

from panpan.faces.terminal.screen.footer import TodosView
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.content import ChecklistItem, ItemStatus

PLAIN = Theme("plain", has_sequences=False)


def todos(*statuses: ItemStatus) -> Sequence[ChecklistItem]:
    return [
        ChecklistItem(id=str(number), content=f"do {number}", active_form=f"doing {number}", status=status)
        for number, status in enumerate(statuses, 1)
    ]


class View:
    """A view of a list that a test sets."""

    def __init__(self, *statuses: ItemStatus) -> None:
        self.todos = todos(*statuses)
        self.view = TodosView(lambda: self.todos)

    def rows(self, *, width: int = 60, room: int = 40) -> Sequence[str]:
        return self.view.lines(width, room, PLAIN)


def test_open_todos_are_shown_with_their_progress() -> None:
    shown = View("completed", "in_progress", "pending")

    assert shown.rows() == ["  1 of 3 done · ctrl+t hides", "  ☑ do 1", "  ◐ doing 2", "  ☐ do 3"]
    assert shown.view.doing == "doing 2"


def test_completed_or_empty_list_takes_no_room() -> None:
    assert (View("completed", "completed").rows(), View().rows()) == ((), ())
    assert View("pending").view.doing == ""


def test_doing_is_not_taken_over_from_an_earlier_turn() -> None:
    shown = View("in_progress", "pending")
    shown.view.turn_has_begun()
    assert shown.view.doing == ""

    shown.todos = todos("completed", "in_progress")
    assert shown.view.doing == "doing 2"


def test_todo_key_hides_and_shows_the_list() -> None:
    shown = View("pending")

    assert "ctrl+t shows" in shown.view.toggle()
    assert shown.rows() == ()
    assert shown.view.toggle() == ""
    assert len(shown.rows()) == 2


def test_todo_key_without_todos_says_so_and_hides_nothing() -> None:
    shown = View("completed")
    assert shown.view.toggle() == "1 of 1 done; /todos shows them"
    shown.todos = ()
    assert "no todos" in shown.view.toggle()

    shown.todos = todos("pending")
    assert len(shown.rows()) == 2


def test_long_list_in_a_small_terminal_leaves_room() -> None:
    shown = View(*["pending"] * 50)

    assert [len(shown.rows(room=room)) for room in (40, 15, 6, 3)] == [9, 5, 2, 0]
