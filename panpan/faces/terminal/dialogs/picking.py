"""Letting the user pick from a list, and looking up meanwhile what he types; never in the way of his typing."""

from collections.abc import Callable, Sequence

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from panpan.core.command import Option, OptionSearch
from panpan.faces.terminal.dialogs.dialog import Dialog
from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.dialogs.pick import NothingPicked, PickDialog

PAUSE_S = 0.15
"""In the typing, before it is looked up."""


async def picked(
    dialogs: DialogQueue,
    title: str,
    options: Sequence[Option],
    search: OptionSearch | None,
    *,
    room: Callable[[], int],
    refresh: Callable[[], None],
) -> int | None:
    """Return the index of what the user picks; None where he does not want any.

    Args:
        dialogs: Where he is asked.
        title: What is picked.
        options: What is listed.
        search: Finds further ones by what he types; None: there are no others.
        room: Returns how many rows there are.
        refresh: Draws the screen again.
    """
    send, receive = anyio.create_memory_object_stream[str](float("inf"))
    dialog = PickDialog(title, options, room=room, look_up=None if search is None else send.send_nowait)
    asked: Dialog[int | NothingPicked] = dialog
    with send, receive:
        async with anyio.create_task_group() as tasks:
            if search is not None:
                tasks.start_soon(_look_up, dialog, receive, search, refresh)
            answer = await dialogs.ask(asked)
            tasks.cancel_scope.cancel("something was picked")
    return None if isinstance(answer, NothingPicked) else answer


async def _look_up(
    dialog: PickDialog, typed: MemoryObjectReceiveStream[str], search: OptionSearch, refresh: Callable[[], None]
) -> None:
    while True:
        text = await typed.receive()
        await anyio.sleep(PAUSE_S)
        while typed.statistics().current_buffer_used:
            text = typed.receive_nowait()
        dialog.take_found(text, await search(text) if text.strip() else {})
        refresh()
