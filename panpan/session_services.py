"""What lives as long as a session and hooks in around its loop, and in which order its hooks are asked.

Apart from `app.py` only for its length: this, too, decides which parts there are and nothing of how they work.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from panpan.config.locations import snapshots_folder
from panpan.config.settings_writer import RuleFile
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.services.background_tasks.background_tasks import BackgroundTasks
from panpan.services.budgets.opening import session_budget
from panpan.services.budgets.turn_clock import TurnClock
from panpan.services.compaction.compactor import Compactor, plan_pin, todos_pin
from panpan.services.compaction.make_room import MakeRoom
from panpan.services.interrupt_notice import InterruptNotice
from panpan.services.keys_in_results import KeysInResults, provider_keys
from panpan.services.page_answers import PageAnswers
from panpan.services.permissions.new_places import NewPlaces
from panpan.services.permissions.opening import gate_of, sandbox_of, workspace_paths
from panpan.services.permissions.sandbox_questions import SandboxQuestions
from panpan.services.plan_mode import PlanMode
from panpan.services.project_context.collect import ContextPlaces
from panpan.services.project_context.nested_memory import NestedMemory
from panpan.services.project_context.session_start import SessionStart
from panpan.services.reminders.agent_mentioned import AgentMentioned
from panpan.services.reminders.budget_nearly_spent import BudgetNearlySpent
from panpan.services.reminders.context_nearly_full import ContextNearlyFull
from panpan.services.reminders.file_changed import FileChanged
from panpan.services.reminders.long_session import LongSession
from panpan.services.reminders.reminders import Reminders
from panpan.services.reminders.todo_changed import TodoChanged
from panpan.services.reminders.todo_forgotten import TodoForgotten
from panpan.services.repeated_calls import RepeatedCalls
from panpan.services.reply_limits import ReplyLimits
from panpan.services.result_size import MAX_TEXT_CHARS, ResultSize
from panpan.services.round_limit import RoundLimit
from panpan.services.sessions.models import SessionModels
from panpan.services.sessions.setup import Setup
from panpan.services.sessions.tap import Tap
from panpan.services.snapshots.session_snapshots import Snapshots
from panpan.services.steering import Steering
from panpan.services.subagents.child import ChildFacts, Parent
from panpan.services.subagents.definitions.load import load_definitions
from panpan.services.subagents.host import SubagentHost
from panpan.services.subagents.notices import GivenContext, PlanNotice, project_context
from panpan.services.subagents.runner import SubagentRunner
from panpan.services.subagents.snapshots_beside import SnapshotsBeside
from panpan.services.todos.todos import Todos
from panpan.session_tools import SessionTools
from panpan.system.home import user_home
from panpan.system.web.network import WebNetwork
from panpan.tools.agents.merge_worktree import MergeWorktreeTool
from panpan.tools.seen_files import SeenFiles
from panpan.types.messages import AssistantMessage, Message
from panpan.types.user_questions import UserAsker

if TYPE_CHECKING:
    from panpan.services.subagents.worktrees.worktree_merges import WorktreeMerges
    from panpan.services.subagents.worktrees.worktrees import Worktrees


class SessionServices:
    """What lives as long as the session and hooks in around its loop, whichever model it talks to.

    Args:
        setup: The session's.
        tap: Sees what crosses its borders.
        warn: Told what the user should know, one sentence each.
        clock: Stands while the user is asked; None: nobody asks him.
        ask_user: Puts questions to the user; None: nobody is there.
        agents: Kinds of subagents that the command line defines, by name; None: none.
        network: How tools reach the outside; None: as it is.
        user_agent: What web servers are told of panpan, where the settings do not say.
        is_tapped: Whether the tap must see each request to a model.
        auto_approve: True if questions of permission that anybody may answer are answered with yes.

    Raises:
        ConfigError: A permission rule, or what the command line says of subagents, cannot be read.
    """

    def __init__(
        self,
        setup: Setup,
        tap: Tap,
        warn: Callable[[str], None],
        *,
        clock: TurnClock | None = None,
        ask_user: UserAsker | None = None,
        agents: Mapping[str, Any] | None = None,
        network: WebNetwork | None = None,
        user_agent: str = "panpan",
        is_tapped: bool = False,
        auto_approve: bool = False,
    ) -> None:
        settings, locations, home = setup.settings, setup.locations, user_home()
        paths = workspace_paths(setup.cwd, setup.loaded, locations)
        self.gate = gate_of(setup.loaded, paths, store=RuleFile(locations.local_settings), auto_approve=auto_approve)
        for warning in self.gate.warnings:
            warn(warning)
        self.seen_files = SeenFiles()
        self.plan_mode = PlanMode(self.gate, locations.plans_folder, self.seen_files, warn)
        self.conversation: Conversation | None = None
        """Once it is there."""
        self.budget = session_budget(settings, clock or TurnClock(), warn)
        self.todos = Todos(locations.todos_folder, self.history, warn)
        self.compactor = Compactor(tap.pins((plan_pin(self.plan_mode), todos_pin(self.todos))))
        self._context_nearly_full = ContextNearlyFull(settings.compaction)
        self.reminders = Reminders(
            (
                AgentMentioned(lambda: self.agents.names),
                TodoChanged(self.todos),
                self._context_nearly_full,
                FileChanged(self.seen_files, setup.cwd),
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
        self.sandbox = sandbox_of(settings, setup.env, locations)
        self.tools = SessionTools(
            setup,
            paths,
            self.gate,
            self.sandbox,
            network=(network or WebNetwork()).as_set_up(settings.web.private_hosts, settings.web.proxy_url),
            user_agent=user_agent,
            # what a tap sees must not miss a request to a model
            page_answers=None if is_tapped else PageAnswers(setup, self.budget, self._keep_reply_beside),
            warn=warn,
        )
        self._edit_errors = self.tools.edit_errors()
        self._sandbox_questions = SandboxQuestions(settings.sandbox.outside, lambda: self.gate.mode, warn)
        self._project_context = (SessionStart(places, memory, warn), memory)
        self._repeated_calls = RepeatedCalls(settings.permission.doom_loop)
        self._interrupt_notice = InterruptNotice()
        self._reply_limits = ReplyLimits()
        self._keys_in_results = KeysInResults(provider_keys(setup.env, settings))
        self._warn = warn
        aside = locations.home / "put-aside" / secrets.token_hex(8)
        self._new_places = NewPlaces(aside, ask_user, warn)
        self.snapshots = (
            Snapshots(settings.snapshots, locations.home, hidden=(self.sandbox.temporary,), warn=warn)
            if settings.snapshots.enabled
            else None
        )
        self.background = BackgroundTasks(settings.background, provider_keys(setup.env, settings), warn)
        self.models: SessionModels | None = None
        """Once they are there."""
        self.as_parent: Callable[[], Parent] | None = None
        """Returns the session's own agent, as whoever starts subagents; once it is there."""
        self._worktrees_made: list[Worktrees] = []
        """None or one."""
        self._setup = setup
        self._home = home
        self.agents = load_definitions(
            locations.project_root, setup.cwd, locations.home, home, agents, trust=setup.loaded.trust
        )
        self.subagent_host = SubagentHost(
            self.agents,
            self._present_models,
            self.gate,
            self._hooks_of_subagent,
            self.background,
            worktrees=self._worktrees,
            tools=self.tools.make,
            max_depth=settings.agents.max_depth,
            warn=warn,
        )
        self.subagents = SubagentRunner(self.subagent_host, self._parent)
        has_git = (locations.project_root / ".git").exists()
        worktrees = () if has_git else (MergeWorktreeTool.name,)
        self.without_use = tap.without_use((*worktrees, *self.tools.not_offered()))
        """Names of tools that cannot work here, such as MergeWorktree without git, and conda without conda."""

    def _keep_reply_beside(self, reply: AssistantMessage) -> None:
        assert self.conversation is not None, "tools run while the session is open"
        self.conversation.replies_beside.append(reply)

    def _present_models(self) -> SessionModels:
        assert self.models is not None, "subagents are started while the session is open"
        return self.models

    def _parent(self) -> Parent:
        assert self.as_parent is not None, "subagents are started while the session is open"
        return self.as_parent()

    def _worktrees(self) -> "Worktrees":
        from panpan.services.subagents.worktrees.worktrees import Worktrees  # most sessions make none

        cwd, locations = self._setup.cwd, self._setup.locations
        worktrees = Worktrees(cwd, folder=locations.worktrees_folder, kept=snapshots_folder(locations.home, cwd))
        self._worktrees_made.append(worktrees)
        return worktrees

    def worktree_merges(self) -> "WorktreeMerges":
        """Return what merges the worktrees of subagents."""
        from panpan.services.subagents.worktrees.worktree_merges import WorktreeMerges

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
        if not self._setup.locations.worktrees_folder.is_dir():
            return
        left = [worktree.agent_id for worktree in await self.subagent_host.worktrees.tidy()]
        if line := await self._waiting_line(left):
            self._warn(line)

    async def _waiting_line(self, agent_ids: Sequence[str]) -> str:
        from panpan.services.subagents.waiting_worktrees import waiting_line

        place = self.subagent_host.place
        assert place is not None, "the session is open"
        return await to_thread.run_sync(waiting_line, agent_ids, place) if agent_ids else ""

    def history(self) -> Sequence[Message]:
        """Return all that was said."""
        return self.conversation.messages if self.conversation is not None else ()

    def hooks_for(self, setup: Setup) -> Sequence[Hook]:
        """Return the services in the order in which they are asked."""
        profile = setup.profile
        self._context_nearly_full.window_tokens = None if profile.fits_window else setup.context_window
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
        setup, settings, root = self._setup, self._setup.settings, child.context.paths.root
        is_in_copy = root != setup.cwd  # its own, or that of the subagent that started it
        top = root if is_in_copy else setup.locations.project_root
        rounds = self.snapshots.rounds if self.snapshots is not None and not is_in_copy else None
        return (
            child.gate,
            self._sandbox_questions,
            RepeatedCalls(settings.permission.doom_loop),
            GivenContext(
                lambda: project_context(self.conversation), child.worktree, is_made_anew=child.has_new_worktree
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
        settings = self._setup.settings
        nearly_full = ContextNearlyFull(settings.compaction)
        nearly_full.window_tokens = child.model.context_window
        sources = (
            nearly_full,
            FileChanged(child.context.seen_files, child.context.paths.root),
            BudgetNearlySpent(child.budget.nearly_spent, lambda: child.budget.limits),
        )
        return Reminders(sources, settings.reminders.max_per_session)

    def _make_room(self, setup: Setup) -> MakeRoom:
        return MakeRoom(self.compactor, setup.settings.compaction, setup.context_window, self._warn)
