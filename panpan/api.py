"""`open_session`, and its short forms: one prompt, one answer."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from pathlib import Path
from typing import Unpack

import anyio

from panpan.app import opened_session
from panpan.errors import ConfigError
from panpan.session.command import Command, SlashCommands
from panpan.session.frontend import Frontend, SessionConfig, SessionOptions
from panpan.session.session import Session

_log = logging.getLogger("panpan")


def open_session(cwd: str | Path = ".", **options: Unpack[SessionOptions]) -> AbstractAsyncContextManager[Session]:
    """Open a session in a folder, new or resumed.

    Args:
        cwd: The workspace: tools work here, and ask before they leave it.
        options: Options of the session, and of the caller that answers its questions; `SessionOptions` documents each.

    Raises:
        ConfigError: A setting, the model, the key or the session is not there or wrong.
        BudgetError: There is a budget and the model's price is not known.
    """
    return opened_session(SessionConfig(Path(cwd), options), Frontend.of(options, _slash_commands))


def _slash_commands(env: Mapping[str, str], further: Sequence[Command]) -> SlashCommands:
    from panpan.faces.session_commands import SessionCommands  # few sessions need them

    return SessionCommands(env, further)


async def ask(
    prompt: str,
    cwd: str | Path = ".",
    *,
    model: str | None = None,
    overrides: Mapping[str, object] | None = None,
    auto_approve: bool = False,
) -> str:
    """Run one turn in a new session and return the text of its answer.

    The session is recorded like any other. Warnings go to the logger `panpan`.

    Args:
        prompt: The user's prompt.
        cwd: The workspace.
        model: A name, an alias or provider/model; None for the one in the settings.
        overrides: Settings by dotted key, such as `{"permission.mode": "acceptEdits"}`.
        auto_approve: True to answer permission questions with yes, except those about protected paths and the sandbox.
            Otherwise the answer is no.

    Raises:
        ConfigError: The prompt is blank, or a setting is wrong; no session is begun.
        PanpanError: The session could not be opened, or the turn failed; the text says what to do.
    """
    from panpan.faces.headless.face import TurnSummary  # `open_session` needs no face

    if not prompt.strip():
        raise ConfigError("there is no prompt; give a text that is not blank")
    settings = {**(overrides or {}), **({} if model is None else {"model": model})}
    summary = TurnSummary()
    async with (
        open_session(cwd, overrides=settings, auto_approve=auto_approve, warn=_log.warning) as session,
        aclosing(session.submit(prompt)) as events,
    ):
        async for event in events:
            summary.follow(event)
    return summary.answer


def ask_sync(
    prompt: str,
    cwd: str | Path = ".",
    *,
    model: str | None = None,
    overrides: Mapping[str, object] | None = None,
    auto_approve: bool = False,
) -> str:
    """Do the same as `ask`, without async.

    Raises:
        PanpanError: As with `ask`.
        RuntimeError: An event loop runs in this thread already, as in a notebook.
    """
    try:
        anyio.get_current_task()
    except anyio.NoEventLoopError:
        pass
    else:
        raise RuntimeError("ask_sync cannot run inside an event loop; use `await panpan.ask(…)`")
    return anyio.run(partial(ask, prompt, cwd, model=model, overrides=overrides, auto_approve=auto_approve))
