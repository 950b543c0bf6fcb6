"""The composition root: the one place where the parts are put together.

Nothing here decides how a part works; it decides which parts there are, what each is given, and in which order the
hooks are asked.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from panpan.config.limits import limits_of
from panpan.config.sources import Loaded
from panpan.core.conversation import Conversation
from panpan.services.background_tasks.background_tasks import BackgroundTasks
from panpan.services.background_tasks.left_running import survivors
from panpan.services.budgets.opening import count_earlier
from panpan.services.budgets.timed_askers import timed_askers
from panpan.services.budgets.turn_clock import TurnClock
from panpan.services.keys_in_results import provider_keys, without_provider_keys
from panpan.services.permissions.askers import AskerOfMode, NobodyToAsk, YesToAll
from panpan.services.permissions.gate import PermissionGate
from panpan.services.permissions.opening import workspace_paths
from panpan.services.sessions.made_title import title_maker
from panpan.services.sessions.models import PromptWishes, SessionModels
from panpan.services.sessions.opening import (
    OpenedLog,
    WhichSession,
    earlier_model,
    open_log,
    opening_mode,
    opening_prefix,
)
from panpan.services.sessions.parts import ModelParts, SessionParts
from panpan.services.sessions.session import Session
from panpan.services.sessions.setup import Setup, set_up
from panpan.services.sessions.slash_commands import LoadedCommands
from panpan.services.sessions.tap import Askers, Opening, Tap
from panpan.services.sessions.unfinished import Outcome, UnfinishedCalls
from panpan.services.subagents.agent_log import agents_folder
from panpan.services.subagents.child import Parent
from panpan.services.subagents.host import Place
from panpan.services.subagents.left_open import results_of_subagents
from panpan.session_services import SessionServices
from panpan.system.environment import child_environment, user_environment
from panpan.system.output_store import OutputStore
from panpan.system.process_tree import ProcessTree
from panpan.system.process_watch import process_watches
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.web.network import WebNetwork
from panpan.tools.planning.ask_user import AskUserQuestionTool
from panpan.tools.planning.enter_plan_mode import EnterPlanModeTool
from panpan.tools.planning.exit_plan_mode import ExitPlanModeTool
from panpan.tools.search.engine import find_ripgrep
from panpan.tools.tool import ToolContext
from panpan.types.dataclass import dataclass
from panpan.types.permission import Asker, PermissionMode
from panpan.types.plan import PlanAsker
from panpan.types.user_questions import UserAsker
from panpan.version import __version__

UNATTENDED_ROUNDS = 50
"""Rounds of one turn where nobody watches, unless the settings say otherwise."""

SLASH_COMMANDS = "panpan.ui.session_commands"
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
        from panpan.services.subagents.main_agent import main_agent

        main = main_agent(agent, setup, agents, warn=warn)
        why_model = f"the agent {agent} names it" if "model" in main.overrides else why_model
        overrides = {**(overrides or {}), **main.overrides}
        setup = set_up(Path(cwd), env, overrides, (), why_model=why_model, trusts_project=trusts_project)
        append_system_prompt = "\n\n".join(filter(None, (main.prompt, append_system_prompt)))
    prompts = PromptWishes(system_prompt, append_system_prompt)
    is_tapped = tap is not None
    tap = tap or Tap()
    clock = TurnClock()
    askers = tap.askers(timed_askers(Askers(ask, ask_user, ask_plan), clock))
    caller = _Caller(askers, unfinished, prompts, says_yes, is_attended, is_tapped, warn)
    setup = tap.setup(setup)
    services = SessionServices(
        setup,
        tap,
        warn,
        clock=clock,
        ask_user=askers.user,
        agents=agents,
        network=network,
        user_agent=f"panpan/{__version__}",
        is_tapped=is_tapped,
        auto_approve=says_yes,
    )
    every_tool = services.tools.make(
        askers.user,
        planning=services.plan_mode,
        ask_plan=askers.plan,
        history=services.history,
        todos=services.todos,
        subagents=services.subagents,
        background=services.background,
        worktrees=services.worktree_merges,
    )
    setup = replace(setup, every_tool=every_tool)
    warnings = setup.warnings_of_settings
    not_offered = (*caller.not_offered(setup.settings.permission.mode), *services.without_use)
    models = SessionModels(setup, services.hooks_for, caller.prompts, not_offered=not_offered, tap=tap)
    services.models = models
    open_it = partial(open_log, setup, which, is_interactive=is_attended, warn=warn)
    parts = await _put_together(setup, services, models, caller, open_it, tap)
    for warning in (*parts.model.warnings, *warnings, *services.agents.warnings):
        warn(warning)
    try:
        async with Session(parts) as opened:
            if not is_attended and opened.model_note:  # where somebody watches, his face says it
                warn(opened.model_note)
            yield opened
    finally:
        tap.close()
        if forks and not is_attended and parts.unfinished.are_open:  # it has nothing that its origin has not
            from panpan.services.sessions.forking import discard_fork

            discard_fork(parts.log.path)


@dataclass(frozen=True, slots=True)
class _Caller:
    """What whoever opens the session brings and wants."""

    askers: Askers
    unfinished: Outcome | None
    prompts: PromptWishes
    says_yes: bool
    is_attended: bool
    is_tapped: bool
    """Whether what crosses the session's borders is seen by another, which must not miss any of it."""
    warn: Callable[[str], None]

    def not_offered(self, mode: PermissionMode) -> Sequence[str]:
        """Return the tools that the model of a new session is not told of, although a resumed one may call them."""
        names = [] if self.askers.user else [AskUserQuestionTool.name]
        if self.askers.plan is None:  # in plan mode the plan is the result of the run; else there is no use for one
            names += [EnterPlanModeTool.name, *([] if mode == "plan" else [ExitPlanModeTool.name])]
        return names

    @property
    def default_max_rounds(self) -> int:
        """Rounds of one turn at most, where the settings do not say."""
        return ATTENDED_ROUNDS if self.is_attended else UNATTENDED_ROUNDS

    def unfinished_calls(self, opened: OpenedLog) -> UnfinishedCalls:
        """Return what says what became of the calls that the session left open."""
        calls = opened.before.unfinished
        return UnfinishedCalls(
            calls,
            ask=self.askers.user,
            outcome=self.unfinished,
            session_id=opened.forked_from or opened.id,
            is_fork=bool(opened.forked_from),
            known=results_of_subagents(agents_folder(opened.log.path.parent, opened.forked_from or opened.id)),
        )

    def asker(self, gate: PermissionGate) -> Asker:
        """Return who answers the questions of permission."""
        ask = self.askers.permission
        return AskerOfMode(lambda: gate.mode, YesToAll(ask) if self.says_yes else ask or NobodyToAsk())


async def _put_together(
    setup: Setup,
    services: SessionServices,
    models: SessionModels,
    caller: _Caller,
    open_it: Callable[[], OpenedLog],
    tap: Tap,
) -> SessionParts:
    """Return what the session is made of, its model and log open; all is closed again should a part of it fail."""
    async with AsyncExitStack() as stack:
        stack.callback(tap.close)
        model = models.first()
        stack.push_async_callback(model.aclose)
        opened = open_it()
        stack.callback(opened.log.close)
        parts = replace(_parts(setup, services, model, opened, caller), models=models)
        tap.opened(_opening(setup, opened, caller, parts, services))
        stack.pop_all()  # from here on the session closes them
    return parts


def _parts(
    setup: Setup, services: SessionServices, model: ModelParts, opened: OpenedLog, caller: _Caller
) -> SessionParts:
    """Return what the session is made of, all but the models that it may change to."""
    before, warn = opened.before, caller.warn
    services.gate.mode = opening_mode(setup, before, is_attended=caller.is_attended, warn=warn)
    if before.plan_file is not None:
        services.plan_mode.restore(before.plan_file, is_approved=before.is_plan_approved)
    prefix = opening_prefix(model, before, are_prompts_chosen=caller.prompts.are_chosen, warn=warn)
    tool_context = _tool_context(setup, opened.id, services)
    services.conversation = Conversation(prefix.system or "", prefix.tools, before.messages, before.compactions)
    services.conversation.replies_beside.extend(before.replies_beside)
    count_earlier(services.budget, opened.log.path, before.spent)
    services.todos.open(opened.id, opened.forked_from)
    services.background.open(
        setup.locations.tasks_folder / opened.id,
        tool_context.outputs,
        before.messages,
        ripgrep=partial(find_ripgrep, tool_context.paths),
        is_held=services.gate.mode == "plan",
    )
    for sentence in survivors(setup.locations.tasks_folder, setup.locations.sessions_folder, but=opened.id):
        warn(sentence)
    tool_context.sandbox.take_over(services.background.leavings)
    ask = caller.asker(services.gate)
    services.as_parent = lambda: Parent(tool_context, services.gate, ask, services.budget)
    services.subagent_host.open(
        Place(opened.id, opened.log.path.parent, setup.cwd, opened.git_branch, __version__),
        offered=[name for name in model.tools if name not in services.without_use],
    )
    if services.snapshots is not None:
        services.snapshots.open(opened.id, opened.log.path, lambda: tool_context.paths.roots)
    return SessionParts(
        id=opened.id,
        cwd=setup.cwd,
        conversation=services.conversation,
        log=opened.log,
        model=model,
        tool_context=tool_context,
        ask=ask,
        max_rounds=_max_rounds(setup.loaded, caller.default_max_rounds),
        gate=services.gate,
        commands=LoadedCommands(SLASH_COMMANDS, setup.env),
        keys=provider_keys(setup.env, setup.settings),
        plan_mode=services.plan_mode,
        todos=services.todos,
        compactor=services.compactor,
        snapshots=services.snapshots,
        steering=services.steering,
        budget=services.budget,
        unfinished=caller.unfinished_calls(opened),
        settings=setup.settings,
        prefix=prefix,
        recorded_prefixes=before.prefixes,
        panpan_version=__version__,
        earlier_model=earlier_model(setup, before),
        title=before.title,
        new_title=opened.title,
        opened_note=opened.opened_note(is_interactive=caller.is_attended),
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
            partial(_end_background, services.background, tool_context.sandbox, services.gate),
            partial(_end_processes, tool_context.processes, warn),
            tool_context.sandbox.aclose,
            services.tools.aclose,
            services.name_worktrees,
            services.close_worktrees,
        ),
        alongside=(
            services.background.serve,
            services.subagent_host.serve,
            services.tools.language_servers.serve,
            *process_watches(tool_context.limits, (tool_context.processes, services.background.tree), warn),
            tool_context.sandbox.serve,
            *_early_snapshots(services, model, caller),
            services.tidy_worktrees,
        ),
    )


def _early_snapshots(
    services: SessionServices, model: ModelParts, caller: _Caller
) -> Sequence[Callable[[], Coroutine[None, None, None]]]:
    """Return what takes the first snapshot while the model thinks; nothing where no file can be changed anyway."""
    stays_in_plan_mode = services.gate.mode == "plan" and not caller.is_attended
    can_change = not stays_in_plan_mode and any(not tool.only_reads for tool in model.tools.values())
    return (services.snapshots.rounds.serve,) if services.snapshots is not None and can_change else ()


def _opening(
    setup: Setup, opened: OpenedLog, caller: _Caller, parts: SessionParts, services: SessionServices
) -> Opening:
    """Return the session as it begins, for its tap."""
    return Opening(
        setup,
        opened.log,
        opened.before.messages,
        opened.before.compactions,
        system_prompt=caller.prompts.override,
        append_system_prompt=caller.prompts.append,
        is_attended=caller.is_attended,
        max_rounds=parts.max_rounds,
        panpan_version=__version__,
        without_use=services.without_use,
    )


def _max_rounds(loaded: Loaded, default: int) -> int:
    """Return the most rounds of a turn; a file of the project may only lower them."""
    chosen = loaded.settings.max_rounds
    if chosen is None:
        return default
    return min(chosen, default) if loaded.origins["max_rounds"].kind == "project" else chosen


def _tool_context(setup: Setup, session_id: str, services: SessionServices) -> ToolContext:
    settings, locations = setup.settings, setup.locations
    env = without_provider_keys(setup.env, settings)
    outputs = locations.outputs_folder / session_id
    return ToolContext(
        tool_use_id="",
        paths=workspace_paths(
            setup.cwd, setup.loaded, locations, readable=outputs, temporary=services.sandbox.temporary
        ),
        seen_files=services.seen_files,
        outputs=OutputStore(outputs, keys=provider_keys(setup.env, settings)),
        environment=child_environment(env, pass_env=settings.environment.pass_env),
        user_environment=user_environment(env, pass_env=settings.environment.pass_env),
        own_environment=env,
        limits=limits_of(settings.limits),
        sandbox=services.sandbox,
    )


async def _end_background(background: BackgroundTasks, sandbox: CommandSandbox, gate: PermissionGate) -> None:
    """Stop what runs in the background, or leave it and what it needs."""
    await background.close(keep=background.keeps, is_held=gate.mode == "plan")
    sandbox.left_behind = background.needed


async def _end_processes(processes: ProcessTree, warn: Callable[[str], None]) -> None:
    """End what the session's commands left running, and name what cannot be ended."""
    for process in await processes.end():
        warn(f"process {process.pid} was started by a command and could not be ended")
