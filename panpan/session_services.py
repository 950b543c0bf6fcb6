"""What lives as long as a session and hooks in around its loop, and in which order its hooks are asked.

Apart from `app.py` only for its length: this, too, decides which parts there are and nothing of how they work.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.background.left_running import survivors
from panpan.capabilities.compaction.compactor import Compactor, plan_pin, todos_pin
from panpan.capabilities.compaction.context_nearly_full import ContextNearlyFull
from panpan.capabilities.compaction.long_session import LongSession
from panpan.capabilities.compaction.make_room import MakeRoom
from panpan.capabilities.files.file_changed import FileChanged
from panpan.capabilities.guards.interrupt_notice import InterruptNotice
from panpan.capabilities.guards.keys_in_results import KeysInResults, provider_keys
from panpan.capabilities.guards.repeated_calls import RepeatedCalls
from panpan.capabilities.guards.reply_limits import ReplyLimits
from panpan.capabilities.guards.result_size import MAX_TEXT_CHARS, ResultSize
from panpan.capabilities.guards.round_limit import RoundLimit
from panpan.capabilities.plan_mode.enter_plan_mode import EnterPlanModeTool
from panpan.capabilities.plan_mode.exit_plan_mode import ExitPlanModeTool
from panpan.capabilities.plan_mode.plan_mode import PlanMode
from panpan.capabilities.project_context.collect import ContextPlaces
from panpan.capabilities.project_context.nested_memory import NestedMemory
from panpan.capabilities.project_context.session_start import SessionStart
from panpan.capabilities.questions.ask_user import AskUserQuestionTool
from panpan.capabilities.search.engine import find_ripgrep
from panpan.capabilities.snapshots.journal import SnapshotJournal
from panpan.capabilities.snapshots.session_snapshots import Snapshots
from panpan.capabilities.snapshots.workspace import SnapshotPlaces
from panpan.capabilities.subagents.agent_mentioned import AgentMentioned
from panpan.capabilities.subagents.child import ChildFacts, Parent
from panpan.capabilities.subagents.definitions.load import load_definitions
from panpan.capabilities.subagents.host import Place, SubagentHost
from panpan.capabilities.subagents.notices import GivenContext, PlanNotice, project_context
from panpan.capabilities.subagents.runner import SubagentRunner
from panpan.capabilities.subagents.snapshots_beside import SnapshotsBeside
from panpan.capabilities.subagents.worktrees.merge_worktree import MergeWorktreeTool
from panpan.capabilities.todos.todo_changed import TodoChanged
from panpan.capabilities.todos.todo_forgotten import TodoForgotten
from panpan.capabilities.todos.todos import Todos
from panpan.capabilities.web.page_answers import PageAnswers
from panpan.config.locations import snapshots_folder
from panpan.config.settings_writer import RuleFile
from panpan.core.hooks import Hook
from panpan.permissions.askers import AskerOfMode, NobodyToAsk, YesToAll
from panpan.permissions.new_places import NewPlaces
from panpan.permissions.opening import gate_of, workspace_paths
from panpan.permissions.sandbox_questions import SandboxQuestions
from panpan.session.budget.budget_nearly_spent import BudgetNearlySpent
from panpan.session.budget.opening import count_earlier, session_budget
from panpan.session.context import SessionContext
from panpan.session.models import SessionModels
from panpan.session.opening import opening_mode
from panpan.session.records import permission_mode_record
from panpan.session.reminders.reminders import Reminders
from panpan.session.setup import Setup
from panpan.session.steering import Steering
from panpan.session.tap import Askers, Tap
from panpan.session_tools import SessionTools
from panpan.system.files.home import user_home
from panpan.system.web.network import WebNetwork
from panpan.types.messages import AssistantMessage, Message
from panpan.types.permission import Asker, PermissionMode
from panpan.version import __version__

if TYPE_CHECKING:
    from panpan.capabilities.subagents.worktrees.worktree_merges import WorktreeMerges
    from panpan.capabilities.subagents.worktrees.worktrees import Worktrees


class SessionServices:
    """What lives as long as the session and hooks in around its loop, whichever model it talks to.

    Args:
        context: The session's.
        tap: Sees what crosses its borders.
        network: How tools reach the outside; None: as it is.

    Raises:
        ConfigError: A permission rule, or what the command line says of subagents, cannot be read.
    """

    def __init__(self, context: SessionContext, tap: Tap, *, network: WebNetwork | None = None) -> None:
        setup, caller, warn, tools = context.setup, context.caller, context.warn, context.tool_context
        settings, locations, home = setup.settings, setup.locations, user_home()
        before, note = context.opened.before, context.recorder.decided
        self._context = context
        self._home = home
        self._warn = warn
        paths = workspace_paths(setup.cwd, setup.loaded, locations)
        self.gate = gate_of(
            setup.loaded,
            paths,
            mode=opening_mode(setup, before, is_attended=caller.is_attended, warn=warn),
            store=RuleFile(locations.local_settings),
            auto_approve=caller.says_yes,
            when_mode_changes=self._mode_changed,
        )
        for warning in self.gate.warnings:
            warn(warning)
        self.background = BackgroundTasks(
            settings.background,
            provider_keys(setup.env, settings),
            warn,
            folder=locations.tasks_folder / context.id,
            store=tools.outputs,
            messages=before.messages,
            ripgrep=partial(find_ripgrep, tools.paths),
            is_held=self.gate.mode == "plan",
        )
        for sentence in survivors(locations.tasks_folder, locations.sessions_folder, but=context.id):
            warn(sentence)
        tools.sandbox.take_over(self.background.leavings)
        self.plan_mode = PlanMode(
            self.gate,
            locations.plans_folder,
            tools.seen_files,
            warn,
            note=note,
            holds=(tools.processes, self.background.tree),
        )
        if before.plan_file is not None:
            self.plan_mode.restore(before.plan_file, is_approved=before.is_plan_approved)
        self.plan_mode.mode_changed(self.gate.mode)  # what a session that crashed in plan mode left running
        self.budget = session_budget(settings, caller.clock, warn, note)
        count_earlier(self.budget, context.opened.log.path, before.spent)
        copied_from = context.opened.forked_from
        self.todos = Todos(
            locations.todos_folder / f"{context.id}.json",
            self.history,
            warn,
            copied_from=locations.todos_folder / f"{copied_from}.json" if copied_from else None,
        )
        self.compactor = Compactor(tap.pins((plan_pin(self.plan_mode), todos_pin(self.todos))))
        self._window_tokens: int | None = None
        """Window of the model that is asked; None where it is not known, or nobody has to care."""
        self.reminders = Reminders(
            (
                AgentMentioned(lambda: self.agents.names),
                TodoChanged(self.todos),
                ContextNearlyFull(settings.compaction, lambda: self._window_tokens),
                FileChanged(tools.seen_files, setup.cwd),
                BudgetNearlySpent(self.budget.nearly_spent, lambda: self.budget.limits),
                LongSession(),
                TodoForgotten(self.todos),
            ),
            settings.reminders.max_per_session,
        )
        self.steering = Steering()
        withholds = partial(self.gate.keeps_from_context, root=setup.cwd)
        memory = NestedMemory(setup.cwd, locations.project_root, home, locations.home, warn, withholds)
        places = ContextPlaces(
            setup.cwd, locations.project_root, locations.home, home, settings.additional_directories, withholds
        )
        self.tools = SessionTools(
            setup,
            paths,
            self.gate,
            tools.sandbox,
            network=(network or WebNetwork()).as_set_up(settings.web.private_hosts, settings.web.proxy_url),
            user_agent=f"panpan/{__version__}",
            # what a tap sees must not miss a request to a model
            page_answers=None if caller.is_tapped else PageAnswers(setup, self.budget, self._keep_reply_beside),
            warn=warn,
        )
        self._edit_errors = self.tools.edit_errors()
        self._sandbox_questions = SandboxQuestions(settings.sandbox.outside, lambda: self.gate.mode, warn)
        self._project_context = (SessionStart(places, memory, warn), memory)
        self._repeated_calls = RepeatedCalls(settings.permission.doom_loop)
        self._interrupt_notice = InterruptNotice()
        self._reply_limits = ReplyLimits()
        self._keys_in_results = KeysInResults(provider_keys(setup.env, settings))
        aside = locations.home / "put-aside" / secrets.token_hex(8)
        self._new_places = NewPlaces(aside, caller.askers.user, warn)
        self.snapshots = self._snapshots() if settings.snapshots.enabled else None
        self._worktrees_made: list[Worktrees] = []
        """None or one."""
        self.agents = load_definitions(
            locations.project_root, setup.cwd, locations.home, home, caller.agents, trust=setup.loaded.trust
        )
        self.subagent_host = SubagentHost(
            self.agents,
            lambda: self.models,
            self.gate,
            self._hooks_of_subagent,
            self.background,
            place=Place(context.id, context.opened.log.path.parent, setup.cwd, context.opened.git_branch, __version__),
            offered=lambda: [tool.name for tool in self.setup.tools if tool.name not in self.without_use],
            worktrees=self._worktrees,
            tools=self.tools.make,
            max_depth=settings.agents.max_depth,
            warn=warn,
        )
        has_git = (locations.project_root / ".git").exists()
        worktrees = () if has_git else (MergeWorktreeTool.name,)
        self.without_use = tap.without_use((*worktrees, *self.tools.not_offered()))
        """Names of tools that cannot work here, such as MergeWorktree without git, and conda without conda."""
        asks = caller.askers.permission
        self.ask: Asker = AskerOfMode(
            lambda: self.gate.mode, YesToAll(asks) if caller.says_yes else asks or NobodyToAsk()
        )
        """The one who answers questions of permission."""
        own_agent = Parent(tools, self.gate, self.ask, self.budget)
        every_tool = self.tools.make(
            caller.askers.user,
            planning=self.plan_mode,
            ask_plan=caller.askers.plan,
            history=self.history,
            todos=self.todos,
            subagents=SubagentRunner(self.subagent_host, lambda: own_agent),
            background=self.background,
            worktrees=self.worktree_merges,
        )
        self.setup = replace(setup, every_tool=every_tool)
        """The session's, with its tools."""
        not_offered = (*_not_offered(caller.askers, settings.permission.mode), *self.without_use)
        self.models = SessionModels(self.setup, self.hooks_for, caller.prompts, not_offered=not_offered, tap=tap)

    def _mode_changed(self, mode: PermissionMode) -> None:
        self._context.recorder.decided(permission_mode_record(mode))
        self.plan_mode.mode_changed(mode)

    def _snapshots(self) -> Snapshots:
        context = self._context
        places = SnapshotPlaces(
            context.setup.locations.home,
            context.id,
            lambda: context.tool_context.paths.roots,
            hidden=(context.tool_context.sandbox.temporary,),
        )
        journal = SnapshotJournal(context.opened.log.path, context.recorder.decided)
        return Snapshots(context.setup.settings.snapshots, places, journal, self._warn)

    def _keep_reply_beside(self, reply: AssistantMessage) -> None:
        self._context.conversation.replies_beside.append(reply)

    def _worktrees(self) -> "Worktrees":
        from panpan.capabilities.subagents.worktrees.worktrees import Worktrees  # most sessions make none

        cwd, locations = self._context.setup.cwd, self._context.setup.locations
        worktrees = Worktrees(cwd, folder=locations.worktrees_folder, kept=snapshots_folder(locations.home, cwd))
        self._worktrees_made.append(worktrees)
        return worktrees

    def worktree_merges(self) -> "WorktreeMerges":
        """Return what merges the worktrees of subagents."""
        from panpan.capabilities.subagents.worktrees.worktree_merges import WorktreeMerges

        return WorktreeMerges(self.subagent_host.worktrees, self.subagent_host.running.__contains__)

    async def close_worktrees(self) -> None:
        """Remove the worktrees in which nothing was changed, and let other sessions have those that are left."""
        for worktrees in self._worktrees_made:
            await worktrees.aclose()

    async def name_worktrees(self) -> None:
        """Tell the user which worktrees that were used in this session hold changes that nobody merged."""
        if line := await self._waiting_line([id_ for made in self._worktrees_made for id_ in await made.unmerged()]):
            self._warn(line)

    async def tidy_worktrees(self) -> None:
        """Remove what was left of worktrees before, and name those with changes that nobody merged."""
        if not self._context.setup.locations.worktrees_folder.is_dir():
            return
        left = [worktree.agent_id for worktree in await self.subagent_host.worktrees.tidy()]
        if line := await self._waiting_line(left):
            self._warn(line)

    async def _waiting_line(self, agent_ids: Sequence[str]) -> str:
        from panpan.capabilities.subagents.worktrees.waiting_worktrees import waiting_line

        return await to_thread.run_sync(waiting_line, agent_ids, self.subagent_host.place) if agent_ids else ""

    def history(self) -> Sequence[Message]:
        """Return all that was said."""
        return self._context.conversation.messages

    def hooks_for(self, setup: Setup) -> Sequence[Hook]:
        """Return the services in the order in which they are asked."""
        profile = setup.profile
        self._window_tokens = None if profile.fits_window else setup.context_window
        return (
            self.gate,
            self._sandbox_questions,
            self._repeated_calls,
            *(self._project_context if profile.has_project_context else ()),
            self._interrupt_notice,
            self.plan_mode,
            self.background,
            self.todos,
            *((self.reminders,) if profile.has_project_context else ()),
            RoundLimit(),
            self._reply_limits,
            *(() if profile.fits_window else (self._make_room(setup),)),
            self.steering,  # behind those that may end the turn, so that what waits is not lost with it
            *((self.snapshots.rounds,) if self.snapshots is not None else ()),
            self._edit_errors,
            self._new_places,
            self._keys_in_results,
            # last, so that what other hooks add to a result is bounded, too
            ResultSize(profile.max_result_chars or MAX_TEXT_CHARS),
        )

    def _hooks_of_subagent(self, child: ChildFacts) -> Sequence[Hook]:
        """Return the services of a subagent, in the same order."""
        setup, root = self._context.setup, child.context.paths.root
        settings = setup.settings
        is_in_copy = root != setup.cwd  # its own, or that of the subagent that started it
        top = root if is_in_copy else setup.locations.project_root
        rounds = self.snapshots.rounds if self.snapshots is not None and not is_in_copy else None
        return (
            child.gate,
            self._sandbox_questions,
            RepeatedCalls(settings.permission.doom_loop),
            GivenContext(
                lambda: project_context(self._context.conversation), child.worktree, is_made_anew=child.has_new_worktree
            ),
            NestedMemory(
                root, top, self._home, setup.locations.home, self._warn, partial(self.gate.withholds, root=root)
            ),
            InterruptNotice(),
            PlanNotice(lambda: child.gate.mode),
            self._reminders_of_subagent(child),
            RoundLimit(),
            ReplyLimits(),
            MakeRoom(
                Compactor(), settings.compaction, child.model.context_window, self._warn, subagent=child.record.label
            ),
            *((SnapshotsBeside(rounds, child.record.id),) if rounds is not None else ()),
            self.tools.edit_errors(),
            self._new_places,
            self._keys_in_results,
            ResultSize(child.model.profile.max_result_chars or MAX_TEXT_CHARS),
        )

    def _reminders_of_subagent(self, child: ChildFacts) -> Reminders:
        settings = self._context.setup.settings
        sources = (
            ContextNearlyFull(settings.compaction, lambda: child.model.context_window),
            FileChanged(child.context.seen_files, child.context.paths.root),
            BudgetNearlySpent(child.budget.nearly_spent, lambda: child.budget.limits),
        )
        return Reminders(sources, settings.reminders.max_per_session)

    def _make_room(self, setup: Setup) -> MakeRoom:
        return MakeRoom(self.compactor, setup.settings.compaction, setup.context_window, self._warn)


def _not_offered(askers: Askers, mode: PermissionMode) -> Sequence[str]:
    """Return the tools that the model of a new session is not told of, although a resumed one may call them."""
    names = [] if askers.user else [AskUserQuestionTool.name]
    if askers.plan is None:  # in plan mode the plan is the result of the run; else there is no use for one
        names += [EnterPlanModeTool.name, *([] if mode == "plan" else [ExitPlanModeTool.name])]
    return names
