"""Dialogs that wait: one at a time, and answered only by keys that were meant for them."""

from contextlib import asynccontextmanager

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.dialogs.dialog import QUIET_S
from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.dialogs.permission import PermissionDialog
from panpan.faces.terminal.dialogs.pick import PickDialog
from panpan.faces.terminal.dialogs.questions import QuestionsDialog
from panpan.faces.terminal.screen.theme import Theme
from panpan.session.command import Option
from panpan.types.permission import Choice, PermissionAnswer, PermissionQuestion, UserQuestion
from tests.faces.terminal.dialogs.drawn import Clock, assert_fit, keys, plain, texts


class OneKey:
    """Is answered by the first key."""

    is_transient = False

    def __init__(self):
        self.answer = None
        self.cursor = None
        self.pasted = []
        self.was_seen = False

    def lines(self, width, theme):
        return ["? Which", "this"]

    def was_drawn(self):
        self.was_seen = True

    def takes(self, key):
        return True

    def press(self, key):
        self.answer = key

    def paste(self, text):
        self.pasted.append(text)
        return True


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def draft():
    return []


@pytest.fixture
def queue(clock, draft):
    return DialogQueue(lambda: None, clock, lambda: bool(draft), draft.append)


async def settle():
    await anyio.wait_all_tasks_blocked()


def look(queue, clock):
    """Draw it, and let the time pass in which nothing is typed."""
    queue.was_drawn(True)
    clock.now_s += QUIET_S


async def test_dialog_takes_keys_after_drawing_and_a_quiet_moment(queue, clock):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.ask, OneKey())
        await settle()
        clock.now_s += 100
        assert not queue.takes_keys, "it is not on the screen yet"
        queue.was_drawn(True)
        assert not queue.takes_keys
        clock.now_s += QUIET_S / 2
        queue.typed_elsewhere()
        clock.now_s += QUIET_S / 2
        assert not queue.takes_keys, "somebody was typing"
        clock.now_s += QUIET_S / 2
        assert queue.takes_keys
        queue.press("y")


async def test_dialogs_are_answered_in_order_after_being_seen(queue, clock):
    answers = {}

    async def ask(name):
        answers[name] = await queue.ask(OneKey())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "first")
        await settle()
        tasks.start_soon(ask, "second")
        await settle()
        assert len(queue.all) == 2
        look(queue, clock)
        queue.press("a")
        queue.press("b")  # meant for the first, which is answered
        assert not queue.takes_keys
        await settle()
        assert answers == {"first": "a"}
        assert not queue.takes_keys, "the second was not on the screen yet"
        look(queue, clock)
        queue.press("c")
    assert answers == {"first": "a", "second": "c"}
    assert queue.current is None


async def test_withdrawn_question_gives_way_to_the_next(queue, clock):
    first, second = OneKey(), OneKey()
    scope = anyio.CancelScope()

    async def ask_first():
        with scope:
            await queue.ask(first)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_first)
        await settle()
        tasks.start_soon(queue.ask, second)
        await settle()
        look(queue, clock)
        scope.cancel()
        await settle()
        assert queue.current is second
        assert not queue.takes_keys
        look(queue, clock)
        queue.press("x")
    assert first.answer is None


async def test_paste_is_typed_and_never_a_key(queue, clock):
    dialog = OneKey()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.ask, dialog)
        await settle()
        look(queue, clock)
        assert queue.paste("y")
        assert dialog.answer is None
        assert dialog.pasted == ["y"]
        queue.press("n")


@asynccontextmanager
async def asked(queue, dialog):
    """Ask, and take the question away at the end."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.ask, dialog)
        await settle()
        yield
        tasks.cancel_scope.cancel()


async def test_dialog_no_longer_whole_takes_no_keys_until_seen_again(queue, clock):
    async with asked(queue, OneKey()):
        look(queue, clock)
        assert queue.takes_keys
        queue.was_drawn(False)
        clock.now_s += 100
        assert not queue.takes_keys
        queue.was_drawn(True)
        assert not queue.takes_keys
        clock.now_s += QUIET_S
        assert queue.takes_keys


async def test_half_typed_text_is_left_with_tab_and_never_answers(queue, clock, draft):
    async with asked(queue, OneKey()):
        draft.append("half")
        look(queue, clock)
        clock.now_s += 100
        assert not queue.takes_keys
        assert rows(queue) == ["? Which  tab to answer", "this"]

        queue.typed_elsewhere()  # as before each key, this one being Tab
        assert queue.is_behind_draft
        queue.turn_to()
        assert not queue.takes_keys
        clock.now_s += QUIET_S
        assert queue.takes_keys
        assert rows(queue) == ["? Which", "this"]

        queue.typed_elsewhere()
        clock.now_s += 100
        assert not queue.takes_keys


async def test_tab_reaches_only_a_dialog_that_was_visible(queue, clock, draft):
    async with asked(queue, OneKey()):
        draft.append("half")
        queue.was_drawn(True)
        queue.typed_elsewhere()
        assert not queue.is_behind_draft


@pytest.mark.parametrize(("width", "room"), [(80, 1), (15, 10), (0, 10)])
async def test_dialog_without_room_says_so_and_takes_only_escape(queue, clock, width, room):
    dialog = OneKey()
    async with asked(queue, dialog):
        assert len(rows(queue, width, room)) == 1
        look(queue, clock)
        queue.press("y")
        assert not queue.paste("y")
        assert not dialog.was_seen
        assert dialog.answer is None
        assert dialog.pasted == []
        queue.press("escape")
    assert dialog.answer == "escape"


async def test_question_that_has_room_again_has_to_be_seen_first(queue, clock):
    dialog = OneKey()
    async with asked(queue, dialog):
        rows(queue, room=1)
        look(queue, clock)
        assert rows(queue) == ["? Which  a moment …", "this"]
        assert not queue.takes_keys
        look(queue, clock)
        assert queue.takes_keys
        assert dialog.was_seen


async def test_caret_is_where_keys_are_typed(queue, clock):
    dialog = OneKey()
    dialog.cursor = (1, 2)
    async with asked(queue, dialog):
        assert queue.caret is None
        rows(queue)
        look(queue, clock)
        assert queue.caret == (1, 2)
        rows(queue, room=1)
        look(queue, clock)
        assert queue.caret is None


def permission(command, rule, room):
    question = PermissionQuestion("1", "Bash", {"command": command}, "the title", "it may change things", rule)
    return PermissionDialog(question, [], room=room)


def preview(command, rule, room):
    question = PermissionQuestion("1", "Edit", {}, "the title", command, rule)
    return PermissionDialog(question, command.split("\n"), room=room)


def question(command, rule, room):
    return QuestionsDialog([UserQuestion(rule, command, (Choice(rule, command), Choice("b")))] * 2, room=room)


def pick(command, rule, room):
    return PickDialog(rule, [Option(command, rule), Option("b")], room=room)


@given(
    st.sampled_from([permission, preview, question, pick]),
    texts,
    texts,
    st.lists(st.tuples(keys, st.integers(0, 30), st.integers(1, 12)), max_size=6),
    st.booleans(),
)
def test_dialog_fits_terminals_of_any_size(dialog_of, command, rule, pressed, has_draft):
    rooms = [24]
    dialog = dialog_of(command, rule, lambda: rooms[-1])

    async def main():
        clock = Clock()
        queue = DialogQueue(lambda: None, clock, lambda: has_draft)
        async with asked(queue, dialog):
            for key, width, room in [("x", 80, 24), *pressed]:
                rooms.append(room)
                shown = queue.lines(width, room, Theme("dark"))
                assert 1 <= len(shown) <= room
                assert_fit(shown, width)
                queue.was_drawn(True)
                clock.now_s += QUIET_S
                queue.turn_to()
                if queue.takes_keys:
                    queue.press(key)

    anyio.run(main)


async def test_key_allows_nothing_that_is_not_on_the_screen(queue, clock):
    room = [20]
    dialog = permission("touch x", None, lambda: room[-1])
    async with asked(queue, dialog):
        rows(queue)
        room.append(2)
        rows(queue, room=2)
        look(queue, clock)
        queue.press("y")
        assert dialog.answer is None
        queue.press("escape")
    assert dialog.answer == PermissionAnswer(is_allowed=False)


def rows(queue, width=80, room=24):
    """Draw what is asked."""
    return [plain(row) for row in queue.lines(width, room, Theme("dark"))]


def bash():
    return permission("make", None, lambda: 20)


def head(queue):
    return plain(queue.lines(80, 20, Theme("dark"))[0])


async def test_dialog_says_when_it_takes_no_keys_yet(queue, clock):
    assert not queue.is_moving()
    async with asked(queue, bash()):
        assert head(queue) == "? Allow Bash?  a moment …"
        queue.was_drawn(True)
        assert queue.is_moving()
        clock.now_s += QUIET_S
        assert queue.is_moving(), "the words have to go"
        assert head(queue) == "? Allow Bash?"
        assert not queue.is_moving()
        assert not queue.is_moving()


async def test_waiting_words_end_after_any_other_drawing(queue, clock):
    async with asked(queue, bash()):
        assert head(queue) == "? Allow Bash?  a moment …"
        queue.was_drawn(True)
        clock.now_s += QUIET_S  # nobody asked meanwhile whether it moves, since there was always something to draw
        assert queue.is_moving()
        assert head(queue) == "? Allow Bash?"
        assert not queue.is_moving()


async def test_early_letter_answers_only_when_pressed_again(queue, clock, draft):
    async with asked(queue, dialog := bash()):
        queue.was_drawn(True)
        assert queue.is_early("y")
        assert queue.early.hold("y") == ""
        queue.typed_elsewhere()
        assert head(queue) == "? Allow Bash?  y came too early: press it again"
        assert not queue.is_behind_draft

        clock.now_s += QUIET_S
        assert queue.takes_keys, "nothing stands in the input"
        assert dialog.answer is None
        assert head(queue) == "? Allow Bash?  y came too early: press it again"
        assert queue.early.let_go("y") == ""
        queue.press("y")
        await settle()
    assert dialog.answer == PermissionAnswer(is_allowed=True)
    assert draft == []


async def test_second_letter_makes_a_text_of_a_held_letter(queue, clock, draft):
    async with asked(queue, dialog := bash()):
        queue.was_drawn(True)
        queue.early.hold("t")
        assert queue.is_early("h"), "which means nothing to the dialog, but follows a letter that is held"
        assert queue.early.hold("h") == "th"
        assert not queue.early.letter
        queue.early.hold("n")
        clock.now_s += QUIET_S
        assert queue.early.let_go("y") == "ny", "also where it comes later, and would be an answer"
    assert dialog.answer is None


@pytest.mark.parametrize("key", ["tab", "enter", "escape", "down"])
async def test_other_key_drops_a_held_letter(queue, clock, draft, key):
    async with asked(queue, bash()):
        queue.was_drawn(True)
        queue.early.hold("y")
        clock.now_s += QUIET_S
        assert queue.early.let_go(key) == ""
        assert not queue.early.letter
        assert head(queue) == "? Allow Bash?"
    assert draft == []


async def test_letter_held_for_a_withdrawn_dialog_is_given_back(queue, draft):
    async with asked(queue, bash()):
        queue.was_drawn(True)
        queue.early.hold("y")
    assert draft == ["y"]
    assert not queue.early.letter


async def test_letter_is_held_only_if_early_and_meaningful(queue, clock, draft):
    assert not queue.is_early("y"), "nothing is asked"
    async with asked(queue, bash()):
        assert not queue.is_early("x")
        assert not queue.is_early("enter")
        draft.append("half")
        assert not queue.is_early("y")
        draft.clear()
        assert queue.is_early("y"), "it is not on the screen yet"
        queue.was_drawn(True)
        clock.now_s += QUIET_S
        assert not queue.is_early("y")


@given(st.lists(st.sampled_from("ynatxé ") | st.sampled_from([0.1, QUIET_S, "tab", "backspace"]), max_size=12))
def test_typed_letters_are_never_lost_and_early_never_answer(pressed):
    """Letters answer, are typed elsewhere in their order, or are held; none of it twice."""
    clock, typed = Clock(), []
    queue = DialogQueue(lambda: None, clock, lambda: bool(typed), typed.append)

    async def run():
        dialog = bash()
        async with asked(queue, dialog):
            queue.was_drawn(True)
            seen_s, letters = clock.now_s, ""
            for key in pressed:
                if isinstance(key, float):
                    clock.now_s += key
                    continue
                in_time = queue.takes_keys
                if not in_time:
                    assert clock.now_s - seen_s < QUIET_S or typed
                    queue.typed_elsewhere()
                seen_s = clock.now_s
                if len(key) > 1:
                    queue.early.let_go(key)
                    letters = "".join(typed)
                    continue
                letters += key
                if not in_time and queue.is_early(key):
                    typed.extend(queue.early.hold(key))
                elif not in_time:
                    typed.append(key)
                elif text := queue.early.let_go(key):
                    typed.extend(text)
                elif queue.takes(key):
                    break  # it answers, or chooses
                else:
                    typed.append(key)
                held = letters[len("".join(typed)) :]
                assert letters.startswith("".join(typed))
                assert not held or set(held) == {held[0]}
            assert dialog.answer is None

    anyio.run(run)


async def test_dialog_of_several_names_its_number(queue, clock):
    scope = anyio.CancelScope()

    async def ask_and_withdraw():
        with scope:
            await queue.ask(OneKey())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.ask, OneKey())
        await settle()
        look(queue, clock)
        assert head(queue) == "? Which", "it is the only one"

        tasks.start_soon(queue.ask, OneKey())
        tasks.start_soon(ask_and_withdraw)
        await settle()
        assert head(queue) == "? Which  1 of 3"
        queue.press("x")
        await settle()
        assert head(queue) == "? Which  2 of 3  a moment …"
        scope.cancel()
        await settle()
        assert head(queue) == "? Which  2 of 2  a moment …", "one was withdrawn"
        look(queue, clock)
        queue.press("x")
        await settle()

        tasks.start_soon(queue.ask, OneKey())
        await settle()
        look(queue, clock)
        assert head(queue) == "? Which", "those before are over"
        queue.press("x")


@pytest.mark.parametrize(
    ("width", "is_in_the_way", "shown"),
    [
        (16, False, "? Which  1 of 2"),
        (31, True, "? Which  1 of 2  tab to answer"),
        (29, True, "? Which         tab to answer"),
    ],
)
async def test_dialog_number_hides_no_hint(queue, clock, draft, width, is_in_the_way, shown):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.ask, OneKey())
        tasks.start_soon(queue.ask, OneKey())
        await settle()
        look(queue, clock)
        if is_in_the_way:
            draft.append("half a text")
        assert rows(queue, width)[0].split() == shown.split()
        tasks.cancel_scope.cancel()
