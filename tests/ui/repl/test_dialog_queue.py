"""Dialogs that wait: one at a time, and answered only by keys that were meant for them."""

import anyio
import pytest

from panpan.ui.repl.dialog_queue import QUIET_S, DialogQueue


class OneKey:
    """Is answered by the first key."""

    def __init__(self):
        self.answer = None
        self.cursor = None
        self.pasted = []

    def lines(self, width, theme):
        return ["?"]

    def press(self, key):
        self.answer = key

    def paste(self, text):
        self.pasted.append(text)


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(clock):
    return DialogQueue(lambda: None, clock)


async def settle():
    await anyio.wait_all_tasks_blocked()


def look(queue, clock):
    """Draw it, and let the time pass in which nothing is typed."""
    queue.was_drawn()
    clock.now_s += QUIET_S


async def test_it_takes_keys_only_after_it_was_drawn_and_nothing_was_typed_for_a_moment(queue, clock):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.ask, OneKey())
        await settle()
        clock.now_s += 100
        assert not queue.takes_keys, "it is not on the screen yet"
        queue.was_drawn()
        assert not queue.takes_keys
        clock.now_s += QUIET_S / 2
        queue.typed_elsewhere()
        clock.now_s += QUIET_S / 2
        assert not queue.takes_keys, "somebody was typing"
        clock.now_s += QUIET_S / 2
        assert queue.takes_keys
        queue.press("y")


async def test_they_are_answered_in_order_and_the_second_waits_to_be_seen(queue, clock):
    answers = {}

    async def ask(name):
        answers[name] = await queue.ask(OneKey())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "first")
        await settle()
        tasks.start_soon(ask, "second")
        await settle()
        assert queue.waiting == 1
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


async def test_a_question_that_is_withdrawn_goes_and_the_next_one_comes(queue, clock):
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


async def test_a_paste_is_typed_and_never_a_key(queue, clock):
    dialog = OneKey()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.ask, dialog)
        await settle()
        look(queue, clock)
        queue.paste("y")
        assert dialog.answer is None
        assert dialog.pasted == ["y"]
        queue.press("n")
