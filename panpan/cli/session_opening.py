"""Opens the session that the options of the command line ask for."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from panpan.api import open_session
from panpan.cli.start import begin_collection
from panpan.cli.subcommands import feature_modules
from panpan.cli_kit.options import Options, overrides_of
from panpan.cli_kit.sdk_options import prompt_of, schema_of
from panpan.config.locations import Locations, panpan_home
from panpan.errors import ConfigError, PanpanError
from panpan.models.model_choice import ModelNotNamedError, NoModelError
from panpan.session.frontend import Askers, SessionInterceptor
from panpan.session.host import Host
from panpan.session.opening import Cut
from panpan.session.session import Session
from panpan.system.files.folder_tree import temporary_folder
from panpan.system.processes.own_process import hide_process
from panpan.system.text.terminal_text import clean_line
from panpan.types.agent import parse_agents
from panpan.types.dataclass import dataclass
from panpan.types.permission import Asker, PlanAsker, UserAsker

if TYPE_CHECKING:
    from panpan.session.command import Questions

_MOST_NAMED = 10
"""Most models of a server that an error names."""


@asynccontextmanager
async def session_of(
    options: Options,
    *,
    ask: Asker | None,
    ask_user: UserAsker | None = None,
    ask_plan: PlanAsker | None = None,
    ask_yes_or_no: Callable[[str], Awaitable[bool | None]] | None = None,
    questions: Callable[[], AbstractAsyncContextManager["Questions"]] | None = None,
    host: Host | None = None,
    warn: Callable[[str], None],
) -> AsyncGenerator[Session, None]:
    """Open the session that the options ask for; without a chosen model, with one that this machine offers.

    Args:
        options: Options of the command line.
        ask: Answers permission questions; None: nobody is there.
        ask_user: Answers questions of the model.
        ask_plan: Answers questions about plans.
        ask_yes_or_no: Answers other questions.
        questions: Hands the terminal over to a menu; None if there is no terminal for one.
        host: The program that runs panpan, with hooks and MCP servers of its own.
        warn: Shows the user a warning.

    Raises:
        Exit: The user left the menu.
        PanpanError: The session could not be opened.
    """
    hide_process(os.environ)
    overrides = overrides_of(options)
    if ask_yes_or_no is not None and not options["trusts_project"]:
        from panpan.cli.trust_command import ask_for_trust

        await ask_for_trust(_locations(options), os.environ, overrides, ask_yes_or_no, warn)
    async with AsyncExitStack() as stack:
        is_kept = not options["no_session_persistence"]
        folder = None if is_kept else stack.enter_context(temporary_folder("panpan-session-"))
        askers = Askers(ask, ask_user, ask_plan)
        opened = partial(_opened, options, askers=askers, warn=warn, log_folder=folder, host=host)
        try:
            session = await stack.enter_async_context(opened(overrides))
        except (NoModelError, ModelNotNamedError) as error:
            say = warn if ask is None else (lambda _: None)  # on a terminal the session's greeting says it
            if isinstance(error, ModelNotNamedError):
                chosen = await _only_model(_locations(options), overrides, error, say)
            else:
                chosen = await _offered_model(error, _home(options), ask_yes_or_no, questions, say)
            session = await stack.enter_async_context(opened({**overrides, **chosen.overrides}, chosen.reason))
        begin_collection()
        yield session


def cut_of(options: Options) -> Cut | None:
    """Return the place at which the session of the options goes on; None for its end."""
    at, drops = options["resume_session_at"], options["resume_drops_turn"]
    return None if at is None else Cut(at, drops)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Choice of a model where none was named; empty if the user gave a key, which determines the model."""

    overrides: Mapping[str, object] = field(default_factory=dict)
    reason: str | None = None


def _opened(
    options: Options,
    overrides: Mapping[str, object],
    why_model: str | None = None,
    *,
    askers: Askers,
    warn: Callable[[str], None],
    log_folder: Path | None,
    host: Host | None,
) -> AbstractAsyncContextManager[Session]:
    """Return the context manager that opens the session of the options."""
    return open_session(
        Path(options["cwd"] or "."),
        overrides=overrides,
        continue_latest=options["continue_latest"],
        resume=options["resume"],
        session=options["session_id"] or options["session_name"],
        fork=options["fork"],
        unfinished=options["unfinished"],
        cut=cut_of(options),
        log_folder=log_folder,
        system_prompt=prompt_of(options, "system_prompt"),
        append_system_prompt=prompt_of(options, "append_system_prompt"),
        agents=None if options["agents"] is None else parse_agents(options["agents"]),
        agent=options["agent"],
        mcp_config=options["mcp_config"],
        strict_mcp_config=options["strict_mcp_config"],
        json_schema=schema_of(options["json_schema"]),
        skills=options.get("skills"),
        ask=askers.permission,
        ask_user=askers.user,
        ask_plan=askers.plan,
        when_asked=options["when_asked"] or "refuse",
        auto_approve=options["auto_approve"],
        is_interactive=askers.permission is not None and host is None,
        host=host,
        trusts_project=options["trusts_project"],
        warn=warn,
        why_model=why_model,
        interceptor=_recording(options["record"], warn),
    )


async def _offered_model(
    error: NoModelError,
    home: Path,
    ask_yes_or_no: Callable[[str], Awaitable[bool | None]] | None,
    questions: Callable[[], AbstractAsyncContextManager["Questions"]] | None,
    say: Callable[[str], None],
) -> _Choice:
    """Return the model that this machine offers, or that the user chooses.

    Raises:
        ConfigError: There is no model, and nobody to choose one.
    """
    if (detection := next(feature_modules("model_detection"), None)) is None:
        raise error
    has_embedded = detection.has_embedded_model(os.environ)
    ask = ask_yes_or_no if has_embedded or questions is None else None
    try:
        offered = await detection.detect_model(home, has_embedded=has_embedded, ask=ask, say=say)
    except ConfigError:
        if questions is None:
            raise
        from panpan.cli.start_menu import choose_start

        async with questions() as asking:
            offered = await choose_start(asking, home, os.environ, detection)
    return _Choice() if offered is None else _Choice({"model": offered.name}, offered.reason)


async def _only_model(
    locations: Locations, overrides: Mapping[str, object], error: ModelNotNamedError, say: Callable[[str], None]
) -> _Choice:
    """Return the one model that a server has.

    Raises:
        ConfigError: The server has several models, which are named, or does not list them.
    """
    from panpan.app import kinds_of
    from panpan.config.sources import load_settings
    from panpan.models.factory import resolve_from
    from panpan.models.model_list import listed_models

    any_model = {**overrides, "model": "custom/any"}
    loaded = load_settings(locations.project_root, os.environ, any_model, locations)
    server = resolve_from(loaded, os.environ, kinds=kinds_of(loaded, locations))
    try:
        names = [clean_line(name) for name in await listed_models(server)]
    except PanpanError:  # the original error says which setting is missing
        raise error from None
    if len(names) == 1:
        reason = f"it is the only one at {server.base_url}"
        say(f"using {names[0]}, since {reason}")
        return _Choice({"model": f"custom/{names[0]}"}, reason)
    if not names:
        raise error
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    few = ", ".join(names[:_MOST_NAMED])
    raise ConfigError(f"{server.base_url} has several models; choose one with --model: {few}{more}") from None


def _recording(file: str | None, warn: Callable[[str], None]) -> SessionInterceptor | None:
    """Return the recorder of the session; None if there is no --record."""
    if file is None:
        return None
    for module in feature_modules("recording"):
        interceptor: SessionInterceptor = module.Recording(Path(file).expanduser().absolute(), warn=warn)
        return interceptor
    raise ConfigError("--record is unavailable: no feature records sessions")


def _locations(options: Options) -> Locations:
    return Locations.find(Path(options["cwd"] or ".").expanduser(), os.environ)


def _home(options: Options) -> Path:
    """Return the panpan home as the session finds it: it may be relative to `--cwd`."""
    return panpan_home(os.environ, Path(options["cwd"] or ".").expanduser())
