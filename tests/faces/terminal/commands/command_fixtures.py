"""A terminal and a session of fakes, and how to type a command into them."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prompt_toolkit.utils import get_cwidth

from panpan.app import slash_commands
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.subagents.definitions.load import AgentDefinitions
from panpan.capabilities.subagents.host import SubagentHost
from panpan.capabilities.todos.todos import Todos
from panpan.config.settings import Settings
from panpan.config.ui_look import ThemeSetting
from panpan.core.conversation import Conversation
from panpan.faces.terminal.commands.registry import all_commands, find
from panpan.faces.terminal.rendering.displays import pager_rows, show_displays
from panpan.faces.terminal.screen.theme import Theme
from panpan.permissions.gate import PermissionGate
from panpan.session.budget.budget import Budget
from panpan.session.command import Next, Option, OptionSearch, PanelSource, Questions
from panpan.session.context_usage import ContextUsage, context_usage
from panpan.session.log.agent_log import PastSubagents
from panpan.session.session import AddedFolders, SessionInfo
from panpan.system.files.paths import PathResolver
from panpan.types.content import ChecklistItem, Display
from panpan.types.messages import AssistantMessage, Message, UserMessage
from tests.fakes.settings import settings_with

_SGR = re.compile(r"\x1b\[[0-9;]*m")


class FakeTodos:
    """The part of `Todos` that faces use."""

    todos: Sequence[ChecklistItem] = ()

    async def current(self) -> Sequence[ChecklistItem]:
        return self.todos

    async def clear(self) -> None:
        self.todos = ()


class FakeSession:
    """The part of a session that commands use; remembers their calls."""

    def __init__(self, cwd: Path, messages: Sequence[Message] = (), settings: Settings | None = None) -> None:
        self.conversation = Conversation("A system prompt.", messages=messages)
        self.budget = Budget()
        for message in messages:
            if isinstance(message, AssistantMessage):
                self.budget.settle(self.budget.reserve(), message)
        self.settings = settings or settings_with()
        self.title: str | None = None
        self.model = "scripted"
        self.effort: str | None = None
        self.context_window: int | None = 10_000
        self.permission_mode = "default"
        self.gate = PermissionGate()
        self.folders = AddedFolders(PathResolver(cwd), cwd)
        self._features: dict[type, Any] = {
            Todos: FakeTodos(),
            AgentDefinitions: SimpleNamespace(all=()),
            SubagentHost: SimpleNamespace(running=()),
            PastSubagents: PastSubagents(cwd / "s1" / "subagents"),
            LanguageServers: SimpleNamespace(states=()),
        }
        self.log_path = cwd / "s1.jsonl"
        self.git_branch = ""
        self.thinks = False
        self._cwd = cwd

    @property
    def info(self) -> SessionInfo:
        return SessionInfo("s1", self._cwd, self.model, f"{self.model}, since a test", "none", self.permission_mode, ())

    def find(self, kind: type) -> Any:
        return self._features.get(kind)

    def __getitem__(self, kind: type) -> Any:
        return self._features[kind]

    def __setitem__(self, kind: type, feature: Any) -> None:
        self._features[kind] = feature

    def rename(self, title: str) -> str:
        self.title = title
        return title

    def set_permission_mode(self, mode: str) -> None:
        self.permission_mode = mode

    async def context_usage(self) -> ContextUsage:
        return context_usage(self.conversation, self.context_window)

    async def use_model(self, name: str) -> str:
        self.model = name
        return f"{name}, since the user said so"

    async def use_effort(self, effort: str | None) -> None:
        self.effort = effort

    def use_thinking(self, *, is_on: bool) -> None:
        self.thinks = is_on


@dataclass
class FakeTerminal:
    """Remembers what was shown, and picks what the test wants picked."""

    session: Any
    env: dict[str, str]
    picks: int | None = None
    wants: list[str] = field(default_factory=list)
    """Beginnings of what it picks in one list after the other; behind them, `picks` counts."""
    width: int = 80
    theme: Theme = field(default_factory=lambda: Theme("dark"))
    theme_setting: ThemeSetting = "auto"
    rows: list[str] = field(default_factory=list)
    title: str = ""
    options: Sequence[Option] = ()
    search: OptionSearch | None = None
    submitted: list[UserMessage] = field(default_factory=list)
    handed_back: list[str] = field(default_factory=list)
    read_lines: list[str] = field(default_factory=list)
    sent: bytes = b""
    has_vim: bool = False
    has_look: bool = True
    """False: there are only lines."""
    waited_s: float = 0.0
    then: Next | None = None
    asking: Questions | None = None

    @property
    def look(self) -> "FakeTerminal | None":
        return self if self.has_look else None

    def show(self, *lines: str) -> None:
        self.rows += lines

    echo = show

    def display(self, *shapes: Display) -> None:
        show_displays(self, shapes)

    async def choose(self, title: str, options: Sequence[Option], search: OptionSearch | None = None) -> int | None:
        self.title, self.options, self.search = title, options, search
        if self.wants:
            wanted = self.wants.pop(0)
            return next(index for index, option in enumerate(options) if option.label.startswith(wanted))
        return self.picks

    async def show_panel(self, sections: Mapping[str, Display]) -> None:
        for title, shape in sections.items():
            self.show(title)
            self.display(shape)

    def questions(self) -> AbstractAsyncContextManager[Questions]:
        assert self.asking is not None
        return nullcontext(self.asking)

    async def watch(self, look: PanelSource) -> None:
        await self.show_panel(await look())

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        self.read_lines += pager_rows(shapes, self.width, self.theme)

    def submit(self, prompt: UserMessage) -> None:
        self.submitted.append(prompt)

    def prefill_input(self, text: str) -> None:
        self.handed_back.append(text)

    def send(self, sequence: bytes) -> None:
        self.sent += sequence

    def use_theme(self, setting: ThemeSetting) -> None:
        self.theme_setting = setting
        self.theme = Theme("light" if setting == "auto" else setting)

    def toggle_vim(self) -> bool:
        self.has_vim = not self.has_vim
        return self.has_vim

    def leave(self, then: Next) -> None:
        self.then = then

    @property
    def text(self) -> str:
        """Return the shown text, without colours."""
        return _SGR.sub("", "\n".join(self.rows))

    @property
    def widest(self) -> int:
        """Cells of the widest row."""
        return max((get_cwidth(row) for row in self.text.split("\n")), default=0)


def terminal_in(cwd: Path, *messages: Message, settings: Settings | None = None, **fields: Any) -> FakeTerminal:
    """Return a terminal whose session works in `cwd`, with a panpan home beside it."""
    cwd.mkdir(exist_ok=True)
    env = {"HOME": str(cwd.parent / "home"), "PANPAN_HOME": str(cwd.parent / "home" / ".panpan")}
    env |= fields.pop("env", {})
    return FakeTerminal(FakeSession(cwd, messages, settings), env, **fields)


async def type_in(terminal: FakeTerminal, line: str) -> FakeTerminal:
    """Run the command of a line."""
    found = find(all_commands(slash_commands()), line)
    assert found is not None, line
    command, rest = found
    await command.run(terminal, rest)
    return terminal
