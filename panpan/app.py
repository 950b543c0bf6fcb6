"""The composition root: the one place where the parts are put together.

Nothing here decides how a part works; it decides which parts there are, what each is given, and in which order the
hooks are asked.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.guards.keys_in_results import provider_keys
from panpan.capabilities.subagents.agent_log import agents_folder
from panpan.capabilities.subagents.left_open import results_of_subagents
from panpan.config.sources import Loaded
from panpan.permissions.gate import PermissionGate
from panpan.session.budget.timed_askers import timed_askers
from panpan.session.budget.turn_clock import TurnClock
from panpan.session.context import Caller, SessionContext, context_of
from panpan.session.made_title import title_maker
from panpan.session.models import PromptWishes
from panpan.session.opening import (
    OpenedLog,
    WhichSession,
    earlier_model,
    open_log,
    opening_prefix,
)
from panpan.session.parts import ModelParts, SessionParts
from panpan.session.session import Session
from panpan.session.setup import set_up
from panpan.session.slash_commands import LoadedCommands
from panpan.session.tap import Askers, Opening, Tap
from panpan.session.unfinished import Outcome, UnfinishedCalls
from panpan.session_services import SessionServices
from panpan.system.processes.process_tree import ProcessTree
from panpan.system.processes.process_watch import process_watches
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.web.network import WebNetwork
from panpan.types.asking import UserAsker
from panpan.types.permission import Asker
from panpan.types.plan import PlanAsker
from panpan.version import __version__

UNATTENDED_ROUNDS = 50
"""Rounds of one turn where nobody watches, unless the settings say otherwise."""

SLASH_COMMANDS = "panpan.faces.session_commands"
"""The module that has them: what they show belongs to the faces, which are above this and never imported from here."""

ATTENDED_ROUNDS = 10_000
"""Where a user watches, he is the limit; this only bounds what nobody could mean."""


@asynccontextmanager
async def open_session(
    cwd: str | Path = ".",
    *,
    overrides: Mapping[str, object] | None = None,
    why_model: str | None = None,
    continues: bool = False,
    resume: str | None = None,
    session: str | None = None,
    forks: bool = False,
    unfinished: Outcome | None = None,
    system_prompt: str | None = None,
    append_system_prompt: str | None = None,
    ask: Asker | None = None,
    ask_user: UserAsker | None = None,
    ask_plan: PlanAsker | None = None,
    says_yes: bool = False,
    is_attended: bool = False,
    trusts_project: bool = False,
    agents: Mapping[str, Any] | None = None,
    agent: str | None = None,
    env: Mapping[str, str] | None = None,
    tap: Tap | None = None,
    network: WebNetwork | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[Session, None]:
    """Open a session in a folder, new or resumed.

    Args:
        cwd: The workspace: tools work here, and ask before they leave it.
        overrides: Settings by dotted key, such as `{"model": "smart", "permission.mode": "plan"}`; stronger than files
            and environment.
        why_model: Why `overrides` names the model, as half a sentence; None: the command line does.
        continues: Whether to go on with the newest session of the project.
        resume: The session to go on with: its id or the beginning of that, its title, or a part of that or of what the
            user said first.
        session: The session of this UUID or name, which is begun where there is none. With `continues` or `resume`, and
            `forks`: the id or name of the copy.
        forks: Whether to go on in a copy of the session, and leave that as it is.
        unfinished: What became of calls that the session left open in a crash, where nobody can be asked and the files
            do not tell; None: the first turn fails then.
        system_prompt: Used in place of panpan's own.
        append_system_prompt: Added behind it.
        ask: Puts permission questions to the user; None: nobody is there, and the answer is no.
        ask_user: Puts the model's questions to the user; None: nobody is there, and the model of a new session is not
            told that it may ask.
        ask_plan: Puts plans to the user; None: nobody is there to approve one, and in plan mode the plan is the result
            of the turn.
        says_yes: Whether questions are answered with yes, except those about protected paths and the sandbox.
        is_attended: Whether a user watches; if not, a turn has fewer rounds unless the settings say otherwise.
        trusts_project: Whether what the project's own settings say is believed in this session, as they are now,
            whatever the user said of the project; where requests go and with which key is never a project's.
        agents: Kinds of subagents beside those of files, by name: for each the keys of a definition, and `prompt`.
        agent: The kind of subagent that the main conversation of a new session is, by name; None: none.
        env: The environment; None is that of the process.
        tap: Sees all that crosses the session's borders, and may stand in for it, as a cassette does; closed with it.
        network: How tools reach the outside; None: as it is.
        warn: Told what the user should know, one sentence each.

    Raises:
        ConfigError: A setting, the model, the key or the session is not there or wrong.
        BudgetError: There is a budget and the model's price is not known.
    """
    logging.getLogger("panpan").addHandler(logging.NullHandler())  # or Python prints what nobody listens to
    env = os.environ if env is None else env
    setup = set_up(Path(cwd), env, overrides or {}, (), why_model=why_model, trusts_project=trusts_project)
    which = WhichSession(continues, resume, session, forks)
    if agent is not None and not which.is_there(setup.locations):  # one that goes on stays what it was begun as
        from panpan.capabilities.subagents.main_agent import main_agent

        main = main_agent(agent, setup, agents, warn=warn)
        why_model = f"the agent {agent} names it" if "model" in main.overrides else why_model
        overrides = {**(overrides or {}), **main.overrides}
        setup = set_up(Path(cwd), env, overrides, (), why_model=why_model, trusts_project=trusts_project)
        append_system_prompt = "\n\n".join(filter(None, (main.prompt, append_system_prompt)))
    is_tapped = tap is not None
    tap = tap or Tap()
    clock = TurnClock()
    caller = Caller(
        tap.askers(timed_askers(Askers(ask, ask_user, ask_plan), clock)),
        clock,
        unfinished,
        PromptWishes(system_prompt, append_system_prompt),
        says_yes=says_yes,
        is_attended=is_attended,
        is_tapped=is_tapped,
        agents=agents,
        warn=warn,
    )
    async with AsyncExitStack() as stack:
        stack.callback(tap.close)
        setup = tap.setup(setup)
        logged = open_log(setup, which, is_interactive=is_attended, warn=warn)
        if logged.forked_from:
            stack.callback(_discard_fork, logged)
        stack.callback(logged.log.close)
        context = context_of(setup, logged, caller)
        services = SessionServices(context, tap, network=network)
        model = services.models.first()
        stack.push_async_callback(model.aclose)
        context.recorder.take_prefix(
            opening_prefix(model, logged.before, are_prompts_chosen=caller.prompts.are_chosen, warn=warn)
        )
        parts = _parts(context, services, model)
        tap.opened(_opening(context, services, parts.max_rounds))
        for warning in (*model.warnings, *services.setup.warnings_of_settings, *services.agents.warnings):
            warn(warning)
        opened = Session(parts)
        if logged.title is not None:
            opened.rename(logged.title)
        stack.pop_all()  # from here on the session closes them
    try:
        async with opened:
            if not is_attended and opened.model_note:  # where somebody watches, his face says it
                warn(opened.model_note)
            yield opened
    finally:
        tap.close()
        if forks and not is_attended and parts.unfinished.are_open:  # it has nothing that its origin has not
            _discard_fork(logged)


def _discard_fork(opened: OpenedLog) -> None:
    from panpan.session.forking import discard_fork  # few sessions are copies

    discard_fork(opened.log.path)


def _parts(context: SessionContext, services: SessionServices, model: ModelParts) -> SessionParts:
    """Return what the session is made of."""
    setup, caller, opened, tools = context.setup, context.caller, context.opened, context.tool_context
    before, warn = opened.before, context.warn
    calls = UnfinishedCalls(
        before.unfinished,
        ask=caller.askers.user,
        outcome=caller.unfinished,
        session_id=opened.forked_from or opened.id,
        is_fork=bool(opened.forked_from),
        known=results_of_subagents(agents_folder(opened.log.path.parent, opened.forked_from or opened.id)),
    )
    return SessionParts(
        id=context.id,
        cwd=setup.cwd,
        conversation=context.conversation,
        log=opened.log,
        recorder=context.recorder,
        model=model,
        tool_context=tools,
        ask=services.ask,
        max_rounds=_max_rounds(setup.loaded, ATTENDED_ROUNDS if caller.is_attended else UNATTENDED_ROUNDS),
        models=services.models,
        gate=services.gate,
        commands=LoadedCommands(SLASH_COMMANDS, setup.env),
        keys=provider_keys(setup.env, setup.settings),
        plan_mode=services.plan_mode,
        todos=services.todos,
        compactor=services.compactor,
        snapshots=services.snapshots,
        steering=services.steering,
        budget=services.budget,
        unfinished=calls,
        settings=setup.settings,
        earlier_model=earlier_model(setup, before),
        title=before.title,
        make_title=(
            None if caller.is_tapped else title_maker(setup, services.budget, is_attended=caller.is_attended, warn=warn)
        ),
        warn=warn,
        background=services.background,
        agents=services.agents,
        running_agents=lambda: services.subagent_host.running,
        language_servers=lambda: services.tools.language_servers.states,
        on_close=(
            services.subagent_host.aclose,
            partial(_end_background, services.background, tools.sandbox, services.gate),
            partial(_end_processes, tools.processes, warn),
            tools.sandbox.aclose,
            services.tools.aclose,
            services.name_worktrees,
            services.close_worktrees,
        ),
        alongside=(
            services.background.serve,
            services.subagent_host.serve,
            services.tools.language_servers.serve,
            *process_watches(tools.limits, (tools.processes, services.background.tree), warn),
            tools.sandbox.serve,
            *_early_snapshots(services, model, caller),
            services.tidy_worktrees,
        ),
    )


def _early_snapshots(
    services: SessionServices, model: ModelParts, caller: Caller
) -> Sequence[Callable[[], Coroutine[None, None, None]]]:
    """Return what takes the first snapshot while the model thinks; nothing where no file can be changed anyway."""
    stays_in_plan_mode = services.gate.mode == "plan" and not caller.is_attended
    can_change = not stays_in_plan_mode and any(not tool.only_reads for tool in model.tools.values())
    return (services.snapshots.rounds.serve,) if services.snapshots is not None and can_change else ()


def _opening(context: SessionContext, services: SessionServices, max_rounds: int) -> Opening:
    """Return the session as it begins, for its tap."""
    caller, opened = context.caller, context.opened
    return Opening(
        context.setup,
        opened.log,
        opened.before.messages,
        opened.before.compactions,
        system_prompt=caller.prompts.override,
        append_system_prompt=caller.prompts.append,
        is_attended=caller.is_attended,
        max_rounds=max_rounds,
        panpan_version=__version__,
        without_use=services.without_use,
    )


def _max_rounds(loaded: Loaded, default: int) -> int:
    """Return the most rounds of a turn; a file of the project may only lower them."""
    chosen = loaded.settings.max_rounds
    if chosen is None:
        return default
    return min(chosen, default) if loaded.origins["max_rounds"].kind == "project" else chosen


async def _end_background(background: BackgroundTasks, sandbox: CommandSandbox, gate: PermissionGate) -> None:
    """Stop what runs in the background, or leave it and what it needs."""
    await background.close(keep=background.keeps, is_held=gate.mode == "plan")
    sandbox.left_behind = background.needed


async def _end_processes(processes: ProcessTree, warn: Callable[[str], None]) -> None:
    """End what the session's commands left running, and name what cannot be ended."""
    for process in await processes.end():
        warn(f"process {process.pid} was started by a command and could not be ended")
