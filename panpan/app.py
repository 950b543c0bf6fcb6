"""The composition root: the one place where the parts are put together.

Nothing here decides how a part works; it decides which parts there are, what each is given, and in which order the
hooks are asked.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
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
from panpan.llm.factory import ResolvedModel, answer_wishes, create_client, resolve_from
from panpan.services.budget import Budget, check_price_known
from panpan.services.interrupt_notice import InterruptNotice
from panpan.services.permissions.askers import NobodyToAsk, YesToAll
from panpan.services.permissions.gate import PermissionGate
from panpan.services.permissions.rules import RuleSource
from panpan.services.project_context.collect import ContextPlaces
from panpan.services.project_context.nested_memory import NestedMemory
from panpan.services.project_context.session_start import SessionStart
from panpan.services.repeated_calls import RepeatedCalls
from panpan.services.reply_limits import ReplyLimits
from panpan.services.result_size import ResultSize
from panpan.services.round_limit import RoundLimit
from panpan.services.sessions.fold import FoldedSession, folded
from panpan.services.sessions.git_branch import git_branch
from panpan.services.sessions.log import SessionLog, read_records
from panpan.services.sessions.records import start_record
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
    place = _place(Path(cwd), os.environ if env is None else env)
    loaded = load_settings(place.cwd, place.env, overrides or {}, place.locations)
    resolved = resolve_from(loaded, place.env)
    settings = loaded.settings
    check_price_known(settings.max_budget_usd, model=resolved.model, is_price_known=resolved.facts.price is not None)
    async with AsyncExitStack() as stack:  # closes what is open should the rest fail
        client = create_client(resolved, answer_wishes(settings))
        stack.push_async_callback(client.aclose)
        before, log = _open_log(place, continues=continues, resume=resume)
        stack.callback(log.close)
        tools = enabled_tools(all_tools(), settings.tools.enabled, disallowed=settings.permission.deny)
        warnings = [*loaded.warnings, *_rules_of_no_tool(loaded)]
        tool_context = _tool_context(place, loaded, log)
        conversation = _conversation(before, tools, system_prompt, append_system_prompt, warn)
        parts = SessionParts(
            info=_info(log, place, resolved, settings, tools),
            conversation=conversation,
            log=log,
            llm=client,
            tools={tool.name: tool for tool in tools},
            tool_context=tool_context,
            hooks=_hooks(place, loaded, warn),
            ask=_asker(ask, settings.permission.mode, says_yes=says_yes),
            max_rounds=_max_rounds(loaded, ATTENDED_ROUNDS if is_attended else UNATTENDED_ROUNDS),
            start_record=start_record(
                new_id(), system=conversation.system, tools=conversation.tools, panpan_version=__version__
            ),
            on_close=(client.aclose, partial(_end_processes, tool_context.processes, warn)),
        )
        stack.pop_all()  # from here on the session closes them
    for warning in warnings:
        warn(warning)
    async with Session(parts) as session:
        yield session


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a session works."""

    cwd: Path
    env: Mapping[str, str]
    locations: Locations


def _place(cwd: Path, env: Mapping[str, str]) -> _Place:
    try:
        canonical = cwd.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"the working directory {cwd} cannot be used: it does not exist") from error
    if not canonical.is_dir():
        raise ConfigError(f"the working directory {cwd} is not a folder")
    return _Place(canonical, env, Locations.find(canonical, env))


def _hooks(place: _Place, loaded: Loaded, warn: Callable[[str], None]) -> Sequence[Hook]:
    """Return the services in the order in which they are asked."""
    settings, locations = loaded.settings, place.locations
    gate = PermissionGate(
        _rule_sources(loaded), mode=settings.permission.mode, store=RuleFile(locations.local_settings)
    )
    for warning in gate.warnings:
        warn(warning)
    memory = NestedMemory(place.cwd, locations.project_root, user_home(), locations.home, warn)
    budget = [Budget(settings.max_budget_usd)] if settings.max_budget_usd is not None else []
    return (
        gate,
        RepeatedCalls(),
        SessionStart(
            ContextPlaces(
                place.cwd, locations.project_root, locations.home, user_home(), settings.additional_directories
            ),
            memory,
            warn,
        ),
        memory,
        InterruptNotice(),
        *budget,
        RoundLimit(),
        ReplyLimits(),
        ResultSize(),  # last, so that what other hooks add to a result is bounded, too
    )


def _asker(ask: Asker | None, mode: PermissionMode, *, says_yes: bool) -> Asker:
    if mode == "dontAsk":
        return NobodyToAsk()
    return YesToAll(ask) if says_yes else ask or NobodyToAsk()


def _rules_of_no_tool(loaded: Loaded) -> Iterator[str]:
    """Yield a warning for each rule that closes a tool that does not exist: it would mean nothing, in silence.

    Raises:
        ConfigError: The name is close to that of a tool, and so a slip.
    """
    names = [tool.name for tool in all_tools()]
    for source in loaded.sources:
        for rule in (*source.rules("deny"), *source.rules("ask")):
            name = rule.partition("(")[0].strip()
            if name in names or "*" in name or name.startswith("mcp__"):
                continue
            if close := get_close_matches(name, names, n=1):
                raise ConfigError(f"the rule {rule!r} of {source.place} names no tool; did you mean {close[0]}?")
            yield f"the rule {rule!r} of {source.place} names a tool that this panpan does not have"


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
    before: FoldedSession | None,
    tools: Sequence[Tool[Any]],
    override: str | None,
    append: str | None,
    warn: Callable[[str], None],
) -> Conversation:
    """Return the conversation so far; a resumed one keeps the prefix that it was begun with."""
    prompt = prompts.system_prompt(override, append)
    definitions = tuple(tool.definition for tool in tools)
    if before is None:
        return Conversation(prompt, definitions)
    if before.is_from_newer_version:
        warn("the session was written by a newer panpan; what this one does not know is left out")
    if before.system is not None and before.system != prompt and (override or append):
        warn("the session keeps the system prompt that it was begun with")
    return Conversation(
        prompt if before.system is None else before.system, before.tools or definitions, before.messages
    )


def _open_log(place: _Place, *, continues: bool, resume: str | None) -> tuple[FoldedSession | None, SessionLog]:
    """Open the log of a new session, or of the one that is to go on."""
    folder = place.locations.sessions_folder
    path = None
    if resume is not None:
        path = find_session(place.locations.home / "projects", folder, resume)
    elif continues:
        path = newest_session(folder)
    session_id = path.stem if path is not None else new_id()
    log = SessionLog(
        path or session_path(folder, session_id),
        session_id=session_id,
        cwd=place.cwd,
        git_branch=git_branch(place.locations.project_root),
    )
    if path is None:
        return None, log
    try:
        before = folded(read_records(path))
    except BaseException:
        log.close()
        raise
    log.parent_uuid = before.last_uuid
    return before, log


def _info(
    log: SessionLog,
    place: _Place,
    resolved: ResolvedModel,
    settings: Settings,
    tools: Sequence[Tool[Any]],
) -> SessionInfo:
    return SessionInfo(
        id=log.path.stem,
        cwd=place.cwd,
        model=resolved.model,
        choice=resolved.reason,
        key_source=resolved.key_place or "none",
        permission_mode=settings.permission.mode,
        tools=[tool.name for tool in tools],
    )


def _tool_context(place: _Place, loaded: Loaded, log: SessionLog) -> ToolContext:
    settings = loaded.settings
    for number, folder in enumerate(settings.additional_directories):
        if not folder.is_dir():
            origin = loaded.origins[f"additional_directories[{number}]"]
            raise ConfigError(f"{folder} ({origin}) is not a folder, so that tools cannot work there")
    key_variables = {settings.api_key_env, *(provider.api_key_env for provider in settings.providers.values())}
    outputs = place.locations.outputs_folder / log.path.stem
    return ToolContext(
        tool_use_id="",
        paths=PathResolver(
            place.cwd,
            extra_roots=settings.additional_directories,
            readable_roots=(outputs,),
            protected_roots=(place.locations.home,),
        ),
        seen_files=SeenFiles(),
        outputs=OutputStore(outputs),
        environment=child_environment({name: value for name, value in place.env.items() if name not in key_variables}),
    )


async def _end_processes(processes: ProcessTree, warn: Callable[[str], None]) -> None:
    """End what the session's commands left running, and name what cannot be ended."""
    for process in await processes.end():
        warn(f"process {process.pid} was started by a command and could not be ended")
