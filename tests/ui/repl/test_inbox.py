"""What was sent is handled in order, and what is handled can be stopped without the rest."""

import anyio

from panpan.ui.repl.inbox import Inbox, Sent


async def test_one_after_the_other_in_order():
    handled = []

    async def handle(sent):
        await anyio.lowlevel.checkpoint()
        handled.append(sent.text)

    inbox = Inbox(handle)
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

    inbox = Inbox(handle)
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
