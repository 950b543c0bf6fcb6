"""What was sent is handled in order, and what is handled can be stopped without the rest."""

import anyio

from panpan.ui.repl.inbox import Inbox, Sent


async def test_one_after_the_other_in_order():
    handled = []

    async def handle(sent):
        await anyio.lowlevel.checkpoint()
        handled.append(sent.text)

    inbox = Inbox(handle, lambda text: None)
    for text in "abc":
        inbox.put(Sent(text))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.run)
        await anyio.wait_all_tasks_blocked()
        inbox.put(Sent("d"))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert handled == ["a", "b", "c", "d"]


async def test_an_interrupt_ends_what_is_handled_and_the_next_one_comes():
    ended = []

    async def handle(sent):
        if sent.text == "long":
            await anyio.sleep_forever()
        ended.append(sent.text)

    given_back = []
    inbox = Inbox(handle, given_back.append)
    assert not inbox.interrupt()
    inbox.put(Sent("long"))
    inbox.put(Sent("short"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.run)
        await anyio.wait_all_tasks_blocked()
        assert inbox.is_busy
        assert inbox.interrupt()
        await anyio.wait_all_tasks_blocked()
        assert not inbox.is_busy
        tasks.cancel_scope.cancel()
    assert ended == ["short"]
    assert given_back == ["long"]


async def test_when_it_is_closed_what_waits_stays():
    inbox = Inbox(lambda sent: anyio.lowlevel.checkpoint(), lambda text: None)
    inbox.put(Sent("a"))
    inbox.close()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.run)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert inbox.waiting == ("a",)
