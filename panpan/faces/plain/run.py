"""Runs sessions on a screen of lines; a signal ends them cleanly."""

from contextlib import suppress
from functools import partial

import anyio

from panpan.cli_kit.signals import Received, watch_signals
from panpan.errors import OutputError, unwrap_single_exception
from panpan.faces.plain.line_screen import LineScreen
from panpan.faces.terminal.repl import Sessions


async def run_lines(sessions: Sessions, screen: LineScreen, first_prompt: str | None) -> int:
    """Show sessions until the user leaves, and return the exit code.

    Raises:
        PanpanError: The first session could not be opened.
    """
    received = Received()

    async def may_leave() -> bool:
        return sessions.is_busy or await screen.may_leave()  # work that was stopped but has not ended yet

    with unwrap_single_exception():
        async with anyio.create_task_group() as tasks:
            stop = tasks.cancel_scope.cancel
            tasks.start_soon(
                partial(
                    watch_signals,
                    received,
                    interrupt=sessions.interrupt,
                    stop=stop,
                    may_leave=may_leave,
                    is_busy=lambda: sessions.is_busy,
                )
            )
            await sessions.run(first_prompt)
            stop("the user left")
    if sessions.resume_hint:
        with suppress(OSError, OutputError):
            await screen.say_last(sessions.resume_hint, is_after_signal=received.exit_code is not None)
    return received.exit_code or 0
