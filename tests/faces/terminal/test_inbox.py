"""Inputs are handled in order, and the one being handled can be stopped without the rest."""

import anyio

from panpan.faces.terminal.input.keys import SentPrompt
from panpan.faces.terminal.prompt_queue import Inbox


async def nothing(sent):
    await anyio.lowlevel.checkpoint()


def inbox_for(handle=nothing, *, has_to_wait=lambda sent: False, return_prompt=lambda text: None):
    return Inbox(handle, has_to_wait, return_prompt)


def recording(handled):
    async def handle(sent):
        await anyio.lowlevel.checkpoint()
        handled.append(sent.text)

    return handle


async def test_inbox_handles_inputs_in_order():
    handled = []
    inbox = inbox_for(recording(handled))
    for text in "abc":
        inbox.put(SentPrompt(text))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.run)
        await anyio.wait_all_tasks_blocked()
        inbox.put(SentPrompt("d"))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert handled == ["a", "b", "c", "d"]


async def test_interrupt_ends_the_current_input_and_the_next_comes():
    ended = []

    async def handle(sent):
        if sent.text == "long":
            await anyio.sleep_forever()
        ended.append(sent.text)

    given_back = []
    inbox = inbox_for(handle, return_prompt=given_back.append)
    assert not inbox.interrupt()
    inbox.put(SentPrompt("long"))
    inbox.put(SentPrompt("short"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.run)
        await anyio.wait_all_tasks_blocked()
        assert inbox.is_busy
        assert inbox.interrupt()
        assert not inbox.interrupt()  # it was told
        await anyio.wait_all_tasks_blocked()
        assert not inbox.is_busy
        tasks.cancel_scope.cancel()
    assert ended == ["short"]
    assert given_back == ["long"]


async def test_waiting_input_lets_others_pass_and_comes_in_order():
    handled, held = [], True
    inbox = inbox_for(recording(handled), has_to_wait=lambda sent: held and sent.text.isupper())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.run)
        for text in "AbBc":
            inbox.put(SentPrompt(text))
        await anyio.wait_all_tasks_blocked()
        assert (handled, inbox.waiting) == (["b", "c"], ("A", "B"))
        held = False
        inbox.look_again()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert handled == ["b", "c", "A", "B"]


async def test_last_input_is_taken_back_and_not_handled():
    handled = []
    inbox = inbox_for(recording(handled))
    assert inbox.take_back() is None
    for text in "abc":
        inbox.put(SentPrompt(text))
    assert inbox.take_back() == "c"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.run)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert handled == ["a", "b"]


async def test_closed_inbox_keeps_waiting_inputs():
    inbox = inbox_for()
    inbox.put(SentPrompt("a"))
    inbox.close()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.run)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert inbox.waiting == ("a",)
