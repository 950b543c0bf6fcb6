"""A session: one conversation, the turns that make it longer, and what a face may change while it is open.

The session owns the tasks for its whole life and a turn is one of them; `submit` only receives.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Self

from anyio import AsyncContextManagerMixin, create_task_group, move_on_after, to_thread

from panpan.config.settings import Settings
from panpan.core.event_channel import EventChannel
from panpan.core.tool import ToolContext
from panpan.core.tool_executor import CLEANUP_S
from panpan.errors import ConfigError, PanpanError, SessionLogError, ToolError, unwrap_single_exception
from panpan.permissions.gate import PermissionGate
from panpan.session.agent import Agent, ModelParts, ModelSource
from panpan.session.budget.budget import Budget
from panpan.session.capability import Capabilities, ServiceT, concurrently
from panpan.session.command import NoCommands, SlashCommands
from panpan.session.context_usage import ContextUsage, measured_usage
from panpan.session.log.record_kinds import ModelRecord, TitleRecord, kept_prefix
from panpan.session.log.records import record_of
from panpan.session.one_shot import GeneratedTitle
from panpan.session.opening import EarlierModel, prefix_note
from panpan.session.turn import Steering, TurnRun
from panpan.session.user_hooks import HooksOfUser
from panpan.system.files.paths import PathResolver
from panpan.system.processes.limits import process_watches
from panpan.system.processes.process_table import ProcessTree
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import TextBlock, UserContent
from panpan.types.dataclass import dataclass
from panpan.types.events import CommandRan, Compacted, Event, FileChange, TurnEnded
from panpan.types.llm import Effort
from panpan.types.messages import AssistantMessage, Usage, UserMessage
from panpan.types.permission import PermissionMode, is_permission_mode


class AddedFolders:
    """Lets the tools work in further folders until the session is closed.

    The log does not keep them, since a log grants nothing: a resumed session has to be told again.
    """

    def __init__(self, paths: PathResolver, workspace: Path) -> None:
        self._paths = paths
        self._workspace = workspace
        self._folders: dict[Path, None] = {}

    @property
    def all(self) -> Sequence[Path]:
        return tuple(self._folders)

    def add(self, folder: str | Path) -> Path:
        """Add a folder, absolute or relative to the workspace or `~`, and return it canonical.

        Raises:
            ConfigError: It is no folder.
        """
        try:
            added = self._paths.add_root(self._workspace / Path(folder).expanduser())
        except (ToolError, RuntimeError, OSError, ValueError) as error:
            raise ConfigError(f"{folder} cannot be added: it is not a folder") from error
        self._folders[added] = None
        return added


@asynccontextmanager
async def commands_running(context: ToolContext, warn: Callable[[str], None]) -> AsyncGenerator[None, None]:
    """Serve the sandbox and watch what commands start while the session is open; end what is left of it."""
    watches = process_watches(context.limits, (context.processes,), warn)
    async with (
        concurrently(context.sandbox.serve, context.sandbox.keep_tidy, then=context.sandbox.aclose),
        concurrently(*watches, then=partial(_end, context.processes, warn)),
    ):
        yield


async def _end(processes: ProcessTree, warn: Callable[[str], None]) -> None:
    for process in await processes.end():
        warn(f"process {process.pid} was started by a command and could not be ended")


_EVENTS_AHEAD = 64
"""Events that a turn may be ahead of its face."""

MAX_TITLE_CHARS = 200

MOST_WOKEN = 50
"""Turns in a row that begin without a message of the user, so that tasks and turns do not start each other for ever."""


@dataclass(frozen=True, slots=True)
class Titles:
    """The title of a session, and the title generator."""

    present: str | None = None
    """Present title; None without one."""
    make: Callable[[str], Awaitable[GeneratedTitle | None]] | None = None
    """Generator of a title from the user's first message, which raises nothing; None if only the user may set one."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """Facts about a session for faces."""

    id: str
    cwd: Path
    model: str
    choice: str
    key_source: str
    """Source of the key, such as the name of a variable; never the key."""
    permission_mode: PermissionMode
    tools: Sequence[str]


class Session(AsyncContextManagerMixin):
    """One conversation. Enter it, then `submit` prompts one after the other.

    Args:
        agent: The agent that the user talks to.
        capabilities: Its features.
        settings: The settings when the session was opened; later changes are in the session.
        steering: Messages for the turn that runs; one of the agent's hooks.
        models: Makes the parts of other models; with None the session keeps its model.
        commands: Its slash commands.
        titles: Its title, and the title generator.
        earlier_model: The model that a resumed session was last with; None if it is not known.
    """

    def __init__(
        self,
        agent: Agent,
        capabilities: Capabilities,
        *,
        settings: Settings | None = None,
        steering: Steering | None = None,
        models: ModelSource | None = None,
        commands: SlashCommands | None = None,
        titles: Titles | None = None,
        earlier_model: EarlierModel | None = None,
    ) -> None:
        self.agent = agent
        self.capabilities = capabilities
        self.settings = settings or Settings()
        self.steering = steering or Steering()
        self.commands: SlashCommands = commands or NoCommands()
        self.conversation = agent.conversation
        self._model_source = models
        self.titles = titles or Titles()
        self._title = self.titles.present
        self._earlier_model = earlier_model
        self._recorder = agent.transcript.recorder
        self.chosen_model: str | None = None
        """Argument of the last `use_model`; None while the session has the model that it was opened with."""
        self._asked_with: dict[str, tuple[str, Effort | None, bool]] = {}
        """Models and efforts for the turns of single messages, by their ids; True if only a model here may be."""
        self.folders = AddedFolders(agent.context.paths, agent.context.paths.root)
        self._woken = 0
        """Turns since the user last said something."""

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        try:
            with unwrap_single_exception():
                async with (
                    concurrently(then=self._close_model),
                    self.capabilities.closing(),
                    commands_running(self.agent.context, self.agent.warn),
                    self.capabilities.lifespan(),
                    create_task_group() as self._task_group,
                ):
                    yield self
                    self._task_group.cancel_scope.cancel("the session is over")
        finally:
            self.agent.transcript.log.close()

    async def _close_model(self) -> None:
        await self.agent.model.aclose()  # the model that it has by then

    def find(self, kind: type[ServiceT]) -> ServiceT | None:
        """Return the object of a class, or of one that names it as its base, that a feature offers, or None."""
        return self.capabilities.find(kind)

    def __getitem__(self, kind: type[ServiceT]) -> ServiceT:
        """Return the same, or raise KeyError."""
        return self.capabilities[kind]

    async def submit(self, prompt: str | UserMessage) -> AsyncGenerator[Event, None]:
        """Run one turn and yield its events; leaving early, or `interrupt()`, ends the turn and all that it started.

        Files behind an `@` in the words of the user go along. Words that begin with a slash command run that, and ask
        the model only where the command does. Of a message of several texts, the first is the words, and the others
        are data: nothing in them is a mention or a command.

        Raises:
            ConfigError: There is no such command, or it needs a terminal.
            PanpanError: The turn failed; what was said before stays in the conversation.
            RuntimeError: A turn is running already.
        """
        self.agent.require_idle()
        message = UserMessage.of(prompt) if isinstance(prompt, str) else prompt
        line = self.commands.line_in(message.typed)
        turn = self._run_command(line, message) if line is not None else self.send(await self.prepare_message(message))
        async with aclosing(turn) as events:
            async for event in events:
                yield event

    async def _run_command(self, line: str, message: UserMessage) -> AsyncGenerator[Event, None]:
        """Run a slash command, and the turns that it asks for, which get the data of its message."""
        started_at, before = perf_counter(), len(self.conversation.compactions)
        result = await self.commands.run(line, self)
        for compaction in self.conversation.compactions[before:]:
            yield Compacted(compaction)
        if result.text:
            yield CommandRan(line, result.text)
        data = _behind_typed(message)
        if data and not result.prompts:
            self.agent.warn(f"{line.split()[0]} asks no model and ignores the data that came with it")
        for prompt in result.prompts:
            said = UserMessage.of(prompt) if isinstance(prompt, str) else prompt
            asked = await self.prepare_message(said.model_copy(update={"content": (*said.content, *data)}))
            async with aclosing(self.send(asked)) as events:
                async for event in events:
                    yield event
        if not result.prompts:
            yield TurnEnded(0, Usage(), 0.0, perf_counter() - started_at, 0.0)

    async def steer(self, prompt: str | UserMessage) -> bool:
        """Let the turn that runs have a prompt at its next round; without a turn it waits in `steering`.

        Return False for a slash command, which has to wait.
        """
        message = UserMessage.of(prompt) if isinstance(prompt, str) else prompt
        if self.commands.line_in(message.typed) is not None:
            return False
        self.steering.add(await self.prepare_message(message))
        return True

    async def prepare_message(self, prompt: str | UserMessage) -> UserMessage:
        """Return a message with the files that it mentions, and warn of each that stays out."""
        message = UserMessage.of(prompt) if isinstance(prompt, str) else prompt
        for capability in self.capabilities:
            message = await capability.prepare_message(message)
        return message

    async def send(self, message: UserMessage) -> AsyncGenerator[Event, None]:
        """Run one turn as `submit` does, with a complete message, such as one that `prepare_message` returned."""
        self.agent.require_idle()
        self._woken = 0
        if self._title is None and not self._has_reply:
            self._task_group.start_soon(self._entitle, message.typed or message.text)
        async with self._model_for(message), aclosing(self._turn(message)) as events:
            async for event in events:
                yield event

    def ask_with(self, message: str, model: str, effort: Effort | None, *, only_here: bool = False) -> None:
        """Ask another model, or for another effort, in the turn of a message of this id alone.

        Args:
            message: Id of the message.
            model: Name as with `--model`; empty for the present one.
            effort: The effort; None for the present one.
            only_here: True if the model must be at the same place as the present one.
        """
        self._asked_with[message] = (model, effort, only_here)

    @asynccontextmanager
    async def _model_for(self, message: UserMessage) -> AsyncGenerator[None, None]:
        model, effort, only_here = self._asked_with.pop(message.uuid, ("", None, False))
        if not (model or effort):
            yield
            return
        models, old = self._models("the model"), self.agent.model
        go_back = models.keep()
        try:
            with self.agent.exclusive() as scope, scope:
                try:
                    if model:
                        await self._switch_to(models, model, only_here=only_here)
                        await self._tell_switch("PostModelSwitch", old, self.agent.model)
                except PanpanError as error:
                    self.agent.warn(f"{old.name} answers, not {model}: {error}")
                if effort:
                    self._take_model(models.with_effort(effort))
            if scope.cancelled_caught:
                self.agent.warn(f"{self.agent.model.name} answers, for the change of the model was interrupted")
            yield
        finally:
            new = self.agent.model
            if new is not old:
                go_back()
                self._use(old)
            if new.llm is not old.llm:
                self._take_prefix_of(old)
                with move_on_after(CLEANUP_S, shield=True):
                    await new.aclose()
                    await self._tell_switch("PostModelSwitch", new, old)

    async def wake(self) -> AsyncGenerator[Event, None]:
        """Run a turn as `submit` does, but without a message of the user, for what the model does not know yet.

        Where there is nothing that it has to answer, it is not asked, and the turn ends at once.
        """
        self.agent.require_idle()
        self._woken += 1
        try:
            async with aclosing(self._turn(None)) as events:
                async for event in events:
                    yield event
        finally:
            if self._woken == MOST_WOKEN:
                self.agent.warn(
                    f"the model was woken {MOST_WOKEN} times without a message of yours; it hears of further "
                    "background tasks with your next message"
                )

    @property
    def turn_files(self) -> Sequence[FileChange]:
        """Changes of the newest turn to files, as far as they are kept."""
        return [file for hook in self.agent.model.hooks for file in hook.turn_files]

    @property
    def may_be_woken(self) -> bool:
        """True if there is news for the model, such as the end of a background task, that is worth a turn now.

        After `MOST_WOKEN` turns in a row without a word of the user, nothing is: it is told with their next message.
        """
        return self._woken < MOST_WOKEN and any(hook.wants_turn for hook in self.agent.model.hooks)

    async def _turn(self, message: UserMessage | None) -> AsyncGenerator[Event, None]:
        channel = EventChannel[Event](_EVENTS_AHEAD)
        with self.agent.exclusive() as scope:
            run = TurnRun(self.agent, channel, scope)
            turn = self._task_group.start_soon(run.run, message)
            try:
                while events := await channel.take():
                    for event in events:
                        yield event
            finally:
                scope.cancel("the face has left")
                channel.leave()
                with move_on_after(2 * CLEANUP_S, shield=True):
                    await turn.wait()
        if run.failure:
            if (hooks := self.find(HooksOfUser)) is not None:
                await hooks.tell("StopFailure", "", {"error": str(run.failure[0])})
            raise run.failure[0]

    def interrupt(self) -> bool:
        """End the running turn, or other work; safe to call from a key binding. True if there was one to end."""
        return self.agent.interrupt()

    async def prepare(self) -> None:
        """Do beforehand what the first request and the first command would wait for, as while the user types."""
        await self.agent.model.prepare()
        if warning := await self.agent.context.sandbox.take_warning():
            self.agent.warn(warning)

    def retry_now(self) -> bool:
        """End the pause before the model is asked again; safe to call from a key binding. True if there was one."""
        return self.agent.model.retry_now()

    def add_message(self, message: UserMessage) -> None:
        """Add to the conversation what the user said or did without asking for an answer, such as a command.

        Raises:
            SessionLogError: The log is full; the message is in the conversation, and in the log as soon as it has
                space.
            RuntimeError: A turn is running; `steering` takes messages then.
        """
        self.agent.require_idle()
        try:
            self._recorder.begin()
        finally:  # also if the log is full
            self._recorder.keep(message)

    async def rewind(self, to: str, *, is_kept: bool = False) -> None:
        """Take back a message of the user, by its `uuid`, and all that was said since; files stay as they are.

        The log keeps what is taken back, as a branch of its own. With `is_kept`, the message may be any, and it stays
        the last one.

        Raises:
            SessionLogError: The log is full or cannot be read; everything is as it was.
            ValueError: There is no such message.
            RuntimeError: A turn is running.
        """
        self.agent.require_idle()
        await to_thread.run_sync(partial(self._recorder.rewind, to, is_kept=is_kept))
        self.agent.unfinished.forget()
        self.agent.context.seen_files.clear()
        for hook in self.agent.model.hooks:
            await hook.history_replaced(self.conversation)

    async def context_usage(self) -> ContextUsage:
        """Return what fills the context window; the provider is asked for the exact count, where it offers one."""
        return await measured_usage(self.conversation, self.agent.model.llm, self.context_window)

    @property
    def info(self) -> SessionInfo:
        model = self.agent.model
        return SessionInfo(
            id=self.agent.id,
            cwd=self.agent.context.paths.root,
            model=model.name,
            choice=model.choice,
            key_source=model.key_source,
            permission_mode=self.permission_mode,
            tools=[tool.name for tool in self.conversation.tools if tool.name in model.tools],
        )

    @property
    def log_path(self) -> Path:
        return self.agent.transcript.log.path

    @property
    def git_branch(self) -> str:
        """Branch of the workspace when the session was opened; empty if there is none."""
        return self.agent.transcript.log.git_branch

    @property
    def budget(self) -> Budget:
        return self.agent.budget

    @property
    def title(self) -> str | None:
        return self._title

    def rename(self, title: str) -> str:
        """Give the session a title, on one line, and return it; ConfigError if it is empty."""
        line = clean_line(title)[:MAX_TITLE_CHARS].strip()
        if not line:
            raise ConfigError("a title needs at least one character")
        self._title = line
        self._recorder.record_decision(TitleRecord(summary=line).as_json())
        return line

    @property
    def _has_reply(self) -> bool:
        return any(isinstance(message, AssistantMessage) for message in self.conversation.messages)

    async def _entitle(self, prompt: str) -> None:
        """Generate a title from the user's first message; a title that they set meanwhile stays."""
        made = await self.titles.make(prompt) if self.titles.make is not None else None
        if made is None:
            return
        self.conversation.side_calls.append(made.reply)
        self._title = self._title or made.title or None
        if self._title is not None:
            self._recorder.record_decision(TitleRecord(summary=self._title, reply=record_of(made.reply)).as_json())
        try:
            self._recorder.note_side_calls()
        except SessionLogError as error:
            self.agent.warn(str(error))

    @property
    def permission_mode(self) -> PermissionMode:
        """Mode that decides about calls for which there is no rule."""
        return self.agent.gate.mode

    @property
    def auto_trouble(self) -> str:
        """Reason against auto mode, as far as one is known; empty if it can be used."""
        return self.agent.context.sandbox.trouble

    def set_permission_mode(self, mode: PermissionMode) -> None:
        """Change the mode from the next call on, also within a running turn; a resumed session goes on in it.

        Raises:
            ConfigError: There is no such mode, or it needs a sandbox and none works here.
        """
        if not is_permission_mode(mode):
            raise ConfigError(f"there is no permission mode {mode!r}")
        if mode == "auto" and self.auto_trouble:
            raise ConfigError(f"auto mode needs the sandbox: {self.auto_trouble}")
        self.gate.mode = mode

    @property
    def gate(self) -> PermissionGate:
        """Gate that decides about calls, with the rules that count."""
        assert isinstance(self.agent.gate, PermissionGate), "the main agent has the session's own"
        return self.agent.gate

    @property
    def model(self) -> str:
        return self.agent.model.name

    @property
    def model_note(self) -> str:
        """Note for the user if a resumed session goes on with another model; else empty."""
        earlier = self._earlier_model
        return "" if earlier is None else earlier.note(self.model)

    @property
    def effort(self) -> Effort | None:
        """Effort that the model should put into an answer; None leaves it to the model."""
        return self.agent.model.effort

    @property
    def thinks(self) -> bool:
        """True if the model is asked to think before it answers; not every model heeds it."""
        return self.agent.model.thinks

    @property
    def context_window(self) -> int | None:
        """Tokens of a request and its reply together; None if it is not known of the model."""
        return self.agent.model.context_window

    async def use_model(self, name: str) -> str:
        """Ask another model, named as with `--model`, from the next turn on; return which one and why, on one line.

        Raises:
            ConfigError: The name leads to no model, or a turn is running; everything stays as it is.
            BudgetError: There is a budget and the price of the model is not known; everything stays as it is.
            HookRefusedError: A hook of the user says no; everything stays as it is.
        """
        models, old = self._models("the model"), self.agent.model
        model = await self._switch_to(models, name)
        self.chosen_model = name
        with move_on_after(CLEANUP_S, shield=True):
            await old.aclose()
        await self._tell_switch("PostModelSwitch", old, model)
        return model.choice

    async def _switch_to(self, models: ModelSource, name: str, *, only_here: bool = False) -> ModelParts:
        """Ask another model from the next request on, and leave the old one open."""
        old = self.agent.model
        go_back = models.keep()
        model = models.other(name, only_here=only_here)
        try:
            await self._tell_switch("PreModelSwitch", old, model)
        except BaseException:
            go_back()
            with move_on_after(CLEANUP_S, shield=True):
                await model.aclose()
            raise
        self._take_model(model)
        self._take_prefix_of(model)
        return model

    async def _tell_switch(self, event: str, old: ModelParts, new: ModelParts) -> None:
        if (hooks := self.find(HooksOfUser)) is not None:
            await hooks.tell(event, new.name, {"from_model": old.name, "to_model": new.name})

    def _take_prefix_of(self, model: ModelParts) -> None:
        prefix = kept_prefix(model.prefix, self._recorder.prefixes, model.profile)
        if self._recorder.take_prefix(prefix) and self.conversation.messages:
            self.agent.warn(prefix_note(model.name, model.profile))

    async def use_effort(self, effort: Effort | None) -> None:
        """Ask for another effort from the next turn on; with None, the model chooses itself."""
        self._take_model(self._models("the effort").with_effort(effort))

    def use_thinking(self, *, is_on: bool) -> None:
        """Ask the model to think first, or not to, from the next turn on; the log does not keep it."""
        self._take_model(self._models("thinking").with_thinking(is_on=is_on))

    def _models(self, what: str) -> ModelSource:
        if self.agent.is_busy:
            raise ConfigError(f"{what} cannot be changed while a turn runs; wait for its end, or interrupt it")
        if self._model_source is None:
            raise ConfigError(f"{what} of this session cannot be changed")
        return self._model_source

    def _take_model(self, model: ModelParts) -> None:
        known = self.agent.model.warnings
        self._use(model)
        for warning in model.warnings:
            if warning not in known:
                self.agent.warn(warning)

    def _use(self, model: ModelParts) -> None:
        self.agent.use(model)
        self._recorder.record_decision(ModelRecord(model=model.name, effort=model.effort).as_json())


def _behind_typed(message: UserMessage) -> Sequence[UserContent]:
    """Return what a message has beside the words of the user."""
    typed = next((block for block in message.content if isinstance(block, TextBlock)), None)
    return [block for block in message.content if block is not typed]
