"""From the options of the command line to a session."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from panpan.app import open_session
from panpan.cli.collection import begin_collection
from panpan.cli_kit.options import Options, overrides_of
from panpan.config.locations import Locations, panpan_home
from panpan.models.model_choice import NoModelError
from panpan.session.interceptor import SessionInterceptor
from panpan.session.session import Session
from panpan.system.processes.own_process import hide_process
from panpan.types.asking import PlanAsker, UserAsker
from panpan.types.permission import Asker


@asynccontextmanager
async def session_of(
    options: Options,
    *,
    ask: Asker | None,
    ask_user: UserAsker | None = None,
    ask_plan: PlanAsker | None = None,
    ask_yes_or_no: Callable[[str], Awaitable[bool | None]] | None = None,
    warn: Callable[[str], None],
) -> AsyncGenerator[Session, None]:
    """Open the session that the options ask for; where nothing says which model, with what this machine offers."""
    hide_process(os.environ)
    open_with = partial(
        open_session,
        Path(options["cwd"] or "."),
        continues=options["continues"],
        resume=options["resume"],
        session=options["session_id"] or options["session_name"],
        forks=options["forks"],
        unfinished=options["unfinished"],
        system_prompt=options["system_prompt"],
        append_system_prompt=options["append_system_prompt"],
        agents=_agents(options),
        agent=options["agent"],
        ask=ask,
        ask_user=ask_user,
        ask_plan=ask_plan,
        says_yes=options["says_yes"],
        is_attended=ask is not None,
        trusts_project=options["trusts_project"],
        warn=warn,
    )
    overrides = overrides_of(options)
    tap = partial(_recording, options["record"], warn)
    if ask_yes_or_no is not None and not options["trusts_project"]:
        from panpan.cli.trust.trust_question import ask_for_trust

        await ask_for_trust(_locations(options), os.environ, overrides, ask_yes_or_no, warn)
    try:
        async with open_with(overrides=overrides, tap=tap()) as session:
            begin_collection()
            yield session
            return
    except NoModelError:
        from panpan.capabilities.local_model.model_offer import has_embedded_model, offered_model

        has_embedded = has_embedded_model(os.environ)
        say = warn if ask is None else (lambda _: None)  # where there is a person, the session's greeting says it
        offered = await offered_model(_home(options), has_embedded=has_embedded, ask=ask_yes_or_no, say=say)
    overrides["model"] = offered.name
    async with open_with(overrides=overrides, why_model=offered.reason, tap=tap()) as session:
        begin_collection()
        yield session


def _agents(options: Options) -> Mapping[str, Any] | None:
    """Return the definitions that the command line gives.

    Raises:
        ConfigError: They are no JSON object.
    """
    if options["agents"] is None:
        return None
    from panpan.capabilities.subagents.definitions.load import parse_given

    return parse_given(options["agents"])


def _recording(file: str | None, warn: Callable[[str], None]) -> SessionInterceptor | None:
    """Return what records the session, where that is wanted."""
    if file is None:
        return None
    from panpan.capabilities.cassettes.recording import Recording

    return Recording(Path(file).expanduser().absolute(), warn=warn)


def _locations(options: Options) -> Locations:
    return Locations.find(Path(options["cwd"] or ".").expanduser(), os.environ)


def _home(options: Options) -> Path:
    """Return the panpan home as the session finds it, which may be relative to `--cwd`."""
    return panpan_home(os.environ, Path(options["cwd"] or ".").expanduser())
