"""From the options of the command line to a session."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from panpan.api import open_session
from panpan.cli.start import begin_collection
from panpan.cli.subcommands import feature_modules
from panpan.cli_kit.options import Options, overrides_of
from panpan.config.locations import Locations, panpan_home
from panpan.errors import ConfigError
from panpan.models.model_choice import NoModelError
from panpan.session.frontend import SessionInterceptor
from panpan.session.session import Session
from panpan.system.processes.own_process import hide_process
from panpan.types.agent import parse_agents
from panpan.types.permission import Asker, PlanAsker, UserAsker


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
        agents=None if options["agents"] is None else parse_agents(options["agents"]),
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
        from panpan.cli.trust_command import ask_for_trust

        await ask_for_trust(_locations(options), os.environ, overrides, ask_yes_or_no, warn)
    try:
        async with open_with(overrides=overrides, tap=tap()) as session:
            begin_collection()
            yield session
            return
    except NoModelError:
        if (offer := next(feature_modules("model_detection"), None)) is None:
            raise
        has_embedded = offer.has_embedded_model(os.environ)
        say = warn if ask is None else (lambda _: None)  # where there is a person, the session's greeting says it
        offered = await offer.detect_model(_home(options), has_embedded=has_embedded, ask=ask_yes_or_no, say=say)
    overrides["model"] = offered.name
    async with open_with(overrides=overrides, why_model=offered.reason, tap=tap()) as session:
        begin_collection()
        yield session


def _recording(file: str | None, warn: Callable[[str], None]) -> SessionInterceptor | None:
    """Return what records the session, where that is wanted."""
    if file is None:
        return None
    for module in feature_modules("recording"):
        interceptor: SessionInterceptor = module.Recording(Path(file).expanduser().absolute(), warn=warn)
        return interceptor
    raise ConfigError("--record is unavailable: no feature records sessions")


def _locations(options: Options) -> Locations:
    return Locations.find(Path(options["cwd"] or ".").expanduser(), os.environ)


def _home(options: Options) -> Path:
    """Return the panpan home as the session finds it, which may be relative to `--cwd`."""
    return panpan_home(os.environ, Path(options["cwd"] or ".").expanduser())
