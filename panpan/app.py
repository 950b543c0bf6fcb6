"""The composition root: the one place where the parts are put together.

Nothing here decides how a part works; it decides which parts there are, what each is given, and in which order the
hooks are asked.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from panpan import __version__
from panpan.config.locations import Locations
from panpan.config.settings import Settings
from panpan.config.settings_writer import RuleFile
from panpan.config.sources import Loaded, load_settings
from panpan.core import system_prompt as prompts
from panpan.core.conversation import Conversation
from panpan.core.enabled_tools import enabled_tools
from panpan.core.hooks import Hook
from panpan.errors import ConfigError
from panpan.llm.answer_notes import notes_on_answers
from panpan.llm.factory import ResolvedModel, answer_wishes, create_client, resolve_from
from panpan.services.budget import Budget, check_price_known
from panpan.services.interrupt_notice import InterruptNotice
from panpan.services.keys_in_results import KeysInResults, provider_keys
from panpan.services.permissions.askers import NobodyToAsk, YesToAll
from panpan.services.permissions.gate import PermissionGate
from panpan.services.permissions.rules import RuleSource, rules_of_no_tool
from panpan.services.project_context.collect import ContextPlaces
from panpan.services.project_context.nested_memory import NestedMemory
from panpan.services.project_context.session_start import SessionStart
from panpan.services.repeated_calls import RepeatedCalls
from panpan.services.reply_limits import ReplyLimits
from panpan.services.result_size import ResultSize
from panpan.services.round_limit import RoundLimit
from panpan.services.sessions.fold import FoldedSession
from panpan.services.sessions.git_branch import git_branch
from panpan.services.sessions.log import SessionLog
from panpan.services.sessions.records import start_record
from panpan.services.sessions.resuming import resumed
from panpan.services.sessions.session import Session, SessionInfo, SessionParts
from panpan.services.sessions.store import find_session, newest_session, session_path
from panpan.system.environment import child_environment
from panpan.system.home import user_home
from panpan.system.output_store import OutputStore
from panpan.system.paths import PathResolver
from panpan.system.process_tree import ProcessTree
from panpan.tools.registry import all_tools
from panpan.tools.seen_files import SeenFiles
from panpan.tools.tool import Tool, ToolContext
from panpan.types.ids import new_id
from panpan.types.permission import Asker, PermissionMode

UNATTENDED_ROUNDS = 50
"""Rounds of one turn where nobody watches, unless the settings say otherwise."""

ATTENDED_ROUNDS = 10_000
"""Where a user watches, he is the limit; this only bounds what nobody could mean."""


@asynccontextmanager
async def open_session(
    cwd: str | Path = ".",
    *,
    overrides: Mapping[str, object] | None = None,
    continues: bool = False,
    resume: str | None = None,
    system_prompt: str | None = None,
    append_system_prompt: str | None = None,
    ask: Asker | None = None,
    says_yes: bool = False,
    is_attended: bool = False,
    env: Mapping[str, str] | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[Session, None]:
    """Open a session in a folder, new or resumed.

    Args:
        cwd: The workspace: tools work here, and ask before they leave it.
        overrides: Settings by dotted key, such as `{"model": "smart", "permission.mode": "plan"}`; stronger than files
            and environment.
        continues: Whether to go on with the newest session of the project.
        resume: Id of a session to go on with, or the beginning of one.
        system_prompt: Used in place of panpan's own.
        append_system_prompt: Added behind it.
        ask: Puts permission questions to the user; None: nobody is there, and the answer is no.
        says_yes: Whether questions are answered with yes, except for protected paths.
        is_attended: Whether a user watches; if not, a turn has fewer rounds unless the settings say otherwise.
        env: The environment; None is that of the process.
        warn: Told what the user should know, one sentence each.

    Raises:
        ConfigError: A setting, the model, the key or the session is not there or wrong.
        BudgetError: There is a budget and the model's price is not known.
    """
    logging.getLogger("panpan").addHandler(logging.NullHandler())  # or Python prints what nobody listens to
    setup = _setup(Path(cwd), os.environ if env is None else env, overrides or {}, warn)
    async with AsyncExitStack() as stack:  # closes what is open should the rest fail
        client = create_client(setup.model, answer_wishes(setup.settings))
        stack.push_async_callback(client.aclose)
        before, log = _open_log(setup, continues=continues, resume=resume)
        stack.callback(log.close)
        conversation = _conversation(setup, before, system_prompt, append_system_prompt)
        tool_context = _tool_context(setup, log)
        parts = SessionParts(
            info=_info(setup, log),
            conversation=conversation,
            log=log,
            llm=client,
            tools={tool.name: tool for tool in setup.tools},
            tool_context=tool_context,
            hooks=_hooks(setup),
            ask=_asker(ask, setup.settings.permission.mode, says_yes=says_yes),
            max_rounds=_max_rounds(setup.loaded, ATTENDED_ROUNDS if is_attended else UNATTENDED_ROUNDS),
            start_record=_start_record(conversation),
            on_close=(client.aclose, partial(_end_processes, tool_context.processes, warn)),
        )
        stack.pop_all()  # from here on the session closes them
    for warning in setup.warnings:
        warn(warning)
    async with Session(parts) as session:
        yield session


@dataclass(frozen=True, slots=True)
class _Setup:
    """What is settled before anything is opened: where, with which settings, model and tools."""

    cwd: Path
    """Canonical."""
    env: Mapping[str, str]
    locations: Locations
    loaded: Loaded
    model: ResolvedModel
    tools: Sequence[Tool[Any]]
    warn: Callable[[str], None]
    warnings: Sequence[str]
    """What the user should know of the settings, once the session is open."""

    @property
    def settings(self) -> Settings:
        return self.loaded.settings


def _setup(cwd: Path, env: Mapping[str, str], overrides: Mapping[str, object], warn: Callable[[str], None]) -> _Setup:
    """Read the settings and decide what follows from them; nothing is opened and nothing sent."""
    cwd = _workspace(cwd)
    locations = Locations.find(cwd, env)
    loaded = load_settings(cwd, env, overrides, locations)
    settings = loaded.settings
    model = resolve_from(loaded, env)
    check_price_known(settings.max_budget_usd, model=model.model, is_price_known=model.facts.price is not None)
    every = all_tools()
    given = [tool for tool in every if model.profile.gets(tool.name)]
    tools = enabled_tools(given, settings.tools.enabled, disallowed=settings.permission.deny)
    warnings = (
        *([model.profile.banner] if model.profile.banner else []),
        *loaded.warnings,
        *notes_on_answers(model, answer_wishes(settings)),
        *rules_of_no_tool(_rule_sources(loaded), [tool.name for tool in every]),
    )
    return _Setup(cwd, env, locations, loaded, model, tools, warn, warnings)


def _workspace(cwd: Path) -> Path:
    """Return the folder to work in, canonical."""
    try:
        canonical = cwd.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"the working directory {cwd} cannot be used: it does not exist") from error
    if not canonical.is_dir():
        raise ConfigError(f"the working directory {cwd} is not a folder")
    return canonical


def _hooks(setup: _Setup) -> Sequence[Hook]:
    """Return the services in the order in which they are asked."""
    settings, profile = setup.settings, setup.model.profile
    store = RuleFile(setup.locations.local_settings)
    gate = PermissionGate(_rule_sources(setup.loaded), mode=settings.permission.mode, store=store)
    for warning in gate.warnings:
        setup.warn(warning)
    budget = [Budget(settings.max_budget_usd)] if settings.max_budget_usd is not None else []
    return (
        gate,
        RepeatedCalls(),
        *(_project_context(setup) if profile.has_project_context else ()),
        InterruptNotice(),
        *budget,
        RoundLimit(),
        ReplyLimits(),
        KeysInResults(provider_keys(setup.env, settings)),
        # last, so that what other hooks add to a result is bounded, too
        ResultSize() if profile.max_result_chars is None else ResultSize(profile.max_result_chars),
    )


def _project_context(setup: _Setup) -> Sequence[Hook]:
    """Return what tells the model of the project: once at the start, then where it gets to deeper folders."""
    cwd, locations, home = setup.cwd, setup.locations, user_home()
    memory = NestedMemory(cwd, locations.project_root, home, locations.home, setup.warn)
    places = ContextPlaces(cwd, locations.project_root, locations.home, home, setup.settings.additional_directories)
    return (SessionStart(places, memory, setup.warn), memory)


def _asker(ask: Asker | None, mode: PermissionMode, *, says_yes: bool) -> Asker:
    if mode == "dontAsk":
        return NobodyToAsk()
    return YesToAll(ask) if says_yes else ask or NobodyToAsk()


def _max_rounds(loaded: Loaded, default: int) -> int:
    """Return the most rounds of a turn; a file of the project may only lower them."""
    chosen = loaded.settings.max_rounds
    if chosen is None:
        return default
    return min(chosen, default) if loaded.origins["max_rounds"].kind == "project" else chosen


def _rule_sources(loaded: Loaded) -> Sequence[RuleSource]:
    return [
        RuleSource(
            source.place,
            may_allow=source.kind != "project",
            allow=source.rules("allow"),
            ask=source.rules("ask"),
            deny=source.rules("deny"),
        )
        for source in loaded.sources
    ]


def _conversation(
    setup: _Setup, before: FoldedSession | None, override: str | None, append: str | None
) -> Conversation:
    """Return the conversation so far; a resumed one keeps the prefix it was begun with, if the model takes it."""
    profile = setup.model.profile
    prompt = prompts.system_prompt(profile.system_prompt if override is None else override, append)
    definitions = tuple(profile.definition_of(tool.definition) for tool in setup.tools)
    if before is None:
        return Conversation(prompt, definitions)
    if not profile.takes(before.tools):
        return Conversation(prompt, definitions, before.messages)
    if before.system is not None and before.system != prompt and (override or append):
        setup.warn("the session keeps the system prompt that it was begun with")
    return Conversation(
        prompt if before.system is None else before.system, before.tools or definitions, before.messages
    )


def _start_record(conversation: Conversation) -> dict[str, Any]:
    return start_record(new_id(), system=conversation.system, tools=conversation.tools, panpan_version=__version__)


def _open_log(setup: _Setup, *, continues: bool, resume: str | None) -> tuple[FoldedSession | None, SessionLog]:
    """Open the log of a new session, or of the one that is to go on."""
    folder = setup.locations.sessions_folder
    path = None
    if resume is not None:
        path = find_session(setup.locations.home, folder, resume)
    elif continues:
        path = newest_session(folder)
    session_id = path.stem if path is not None else new_id()
    log = SessionLog(
        path or session_path(folder, session_id),
        session_id=session_id,
        cwd=setup.cwd,
        git_branch=git_branch(setup.locations.project_root),
    )
    if path is None:
        return None, log
    try:
        before = resumed(path, cwd=setup.cwd, warn=setup.warn)
    except BaseException:
        log.close()
        raise
    log.parent_uuid = before.last_uuid
    return before, log


def _info(setup: _Setup, log: SessionLog) -> SessionInfo:
    return SessionInfo(
        id=log.path.stem,
        cwd=setup.cwd,
        model=setup.model.model,
        choice=setup.model.reason,
        key_source=setup.model.key_place or "none",
        permission_mode=setup.settings.permission.mode,
        tools=[tool.name for tool in setup.tools],
    )


def _tool_context(setup: _Setup, log: SessionLog) -> ToolContext:
    settings, locations = setup.settings, setup.locations
    for number, folder in enumerate(settings.additional_directories):
        if not folder.is_dir():
            origin = setup.loaded.origins[f"additional_directories[{number}]"]
            raise ConfigError(f"{folder} ({origin}) is not a folder, so that tools cannot work there")
    key_variables = {settings.api_key_env, *(provider.api_key_env for provider in settings.providers.values())}
    outputs = locations.outputs_folder / log.path.stem
    return ToolContext(
        tool_use_id="",
        paths=PathResolver(
            setup.cwd,
            extra_roots=settings.additional_directories,
            readable_roots=(outputs,),
            protected_roots=(locations.home,),
        ),
        seen_files=SeenFiles(),
        outputs=OutputStore(outputs, keys=provider_keys(setup.env, settings)),
        environment=child_environment({name: value for name, value in setup.env.items() if name not in key_variables}),
    )


async def _end_processes(processes: ProcessTree, warn: Callable[[str], None]) -> None:
    """End what the session's commands left running, and name what cannot be ended."""
    for process in await processes.end():
        warn(f"process {process.pid} was started by a command and could not be ended")
