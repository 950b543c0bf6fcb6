"""The language servers of one session: which file gets which, when they are started, and when they are not again.

The rule: nothing is started in a project that is not trusted, nor before something is asked. A server that fails costs
what was asked of it and nothing else; it is started again when it is needed, later each time, and not for ever.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import create_task_group, to_thread
from anyio.abc import TaskGroup

from panpan.capabilities.language_servers.server_process import (
    TIMEOUTS,
    ServerKind,
    ServerTimeouts,
    find_program,
    server_kinds,
)
from panpan.capabilities.language_servers.settings import LanguageServersSettings
from panpan.errors import ToolError
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.system.files.canonical import is_below
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.capabilities.language_servers.language_server import LanguageServer


# Trust covers one project. A file outside of it, or in a nested repository, belongs to another project that nobody has
# trusted.


def root_for(path: Path, project: Path, markers: Sequence[str]) -> Path:
    """Return the outermost folder around a file that has one of the files in it that begin a project; else `project`.

    Raises:
        ToolError: The file does not belong to the project.
    """
    if not is_below(path, project) or path == project:
        raise ToolError(f"{path} is outside the project {project}, where no language server is started")
    around = [folder for folder in path.parents if is_below(folder, project)]
    nested = next((folder for folder in around if folder != project and (folder / ".git").exists()), None)
    if nested is not None:
        raise ToolError(
            f"{path} is in a repository of its own, {nested}, which is trusted by itself: no language server is "
            "started for it here"
        )
    return next((folder for folder in reversed(around) if any((folder / name).is_file() for name in markers)), project)


MAX_SERVERS = 6
"""Most servers that run at the same time; the least recently used one makes room."""
MAX_FAILURES = 5
"""Failures in a row after which a server is not started again in this session."""
_LONGEST_WAIT_S = 60.0
_STEADY_S = 60.0
"""A server that ran so long has not failed in a row."""
_SERVING_S = 5.0
_MOST_STARTS = 2
"""Most starts of a server for one question."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """One server, for people."""

    name: str
    program: str
    root: Path | None
    """The folder that it is for; None: it has not been needed."""
    state: str


@dataclass(slots=True)
class _ServerSlot:
    """The place of one server in one folder, whichever process has it."""

    kind: ServerKind
    root: Path
    server: "LanguageServer | None" = None
    failures: int = 0
    failure: str = ""
    not_before: float = 0.0
    asked_at: float = 0.0


class LanguageServers:
    """Starts servers as they are needed, while `serve` runs.

    `environment`: what servers get of the environment; no keys. `copies`: the canonical folder of the copies of the
    project in which subagents work, as trusted as it is.
    """

    def __init__(
        self,
        settings: LanguageServersSettings,
        project: Path,
        environment: Mapping[str, str],
        sandbox: CommandSandbox,
        *,
        copies: Path | None = None,
        is_trusted: bool,
        timeouts: ServerTimeouts = TIMEOUTS,
    ) -> None:
        self.is_trusted = is_trusted
        self.is_on = settings.enabled
        self.kinds = server_kinds(settings)
        self._project = project
        self._copies = copies
        self._environment = environment
        self._sandbox = sandbox
        self._timeouts = timeouts
        self._slots: dict[tuple[str, Path], _ServerSlot] = {}
        self._group: TaskGroup | None = None
        self._serving = anyio.Event()

    @cached_property
    def programs(self) -> Mapping[str, str]:
        """Paths of the programs of the installed servers, by the server's name."""
        found = ((kind.name, find_program(kind.command[0], self._environment, self._project)) for kind in self.kinds)
        return {name: program for name, program in found if program is not None}

    @property
    def can_be_used(self) -> bool:
        """True if there is a server that may be started."""
        return self.is_trusted and bool(self.programs)

    @property
    def states(self) -> Sequence[ServerState]:
        """All servers that are there, have run, or are only known."""
        lines = []
        for kind in self.kinds:
            program = self.programs.get(kind.name, "")
            slots = [slot for slot in self._slots.values() if slot.kind is kind]
            lines += [ServerState(kind.name, program, slot.root, _state_of(slot)) for slot in slots]
            if not slots:
                idle = "not needed yet" if self.is_trusted else "not started: the project is not trusted"
                lines.append(ServerState(kind.name, program, None, idle if program else "not installed"))
        return lines

    def kind_for(self, path: Path) -> ServerKind | None:
        """Return the server that is asked about a file; None where there is none, or none may be started."""
        if not self.is_trusted:
            return None
        ending = path.suffix.lower()
        return next((kind for kind in self.kinds if ending in kind.languages and kind.name in self.programs), None)

    async def serve(self) -> None:
        """Keep servers until it is cancelled; none of them is left then."""
        async with create_task_group() as self._group:
            self._serving.set()
            try:
                await anyio.sleep_forever()
            finally:
                self._group = None
                for slot in self._slots.values():
                    if slot.server is not None:
                        slot.server.stop()

    def start_soon(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let something run beside the session, as long as that lasts; it is not begun where the session is over."""
        if self._group is not None:
            self._group.start_soon(work)

    async def server_for(self, path: Path) -> "LanguageServer":
        """Return the server that knows a file, started if need be and ready to be asked.

        Raises:
            ToolError: There is none, none may be started, or it fails.
        """
        kind = self.kind_for(path)
        if kind is None:
            raise ToolError(self._why_none(path))
        root = root_for(path, self._project_of(path), kind.roots)
        slot = self._slots.setdefault((kind.name, root), _ServerSlot(kind, root))
        slot.asked_at = anyio.current_time()
        why = ""
        for _ in range(_MOST_STARTS):
            server = slot.server
            if server is None or server.is_over:
                server = await self._started(slot)
            await server.ready.wait()
            if not server.is_over:
                return server
            why = server.failure
            if why:
                break  # otherwise it was shut down properly just now
        raise ToolError(f"{why or f'{kind.name} was ended'}", advice="use Grep and Read in its place")

    def _project_of(self, path: Path) -> Path:
        """Return the project, or the copy of it that a file lies in."""
        if self._copies is None or path == self._copies or not is_below(path, self._copies):
            return self._project
        return self._copies / path.relative_to(self._copies).parts[0]

    def _why_none(self, path: Path) -> str:
        ending = path.suffix.lower()
        if not self.is_on:
            return "language servers are switched off (language_servers.enabled in the settings); use Grep and Read"
        if not self.is_trusted:
            return "language servers run in trusted projects only; the user can say `panpan trust add`"
        names = [kind.name for kind in self.kinds if ending in kind.languages]
        if names:
            return f"no language server for {ending} files is installed ({', '.join(names)}); use Grep and Read"
        return f"there is no language server for {path.name}; use Grep and Read"

    async def _started(self, slot: _ServerSlot) -> "LanguageServer":
        with anyio.move_on_after(_SERVING_S):
            await self._serving.wait()
        if slot.server is not None and slot.server.is_over:
            with anyio.move_on_after(_SERVING_S):
                await slot.server.ended.wait()
        if slot.server is not None and not slot.server.is_over:
            return slot.server  # another call has started it already
        self._require_cooldown(slot)
        if self._group is None:
            raise ToolError("no language server can be started, since the session is over")
        self._make_room()
        from panpan.capabilities.language_servers.language_server import LanguageServer  # most sessions start no server

        program = self.programs[slot.kind.name]
        slot.server = LanguageServer(slot.kind, program, slot.root, self._environment, self._sandbox, self._timeouts)
        self._group.start_soon(self._run, slot, slot.server)
        return slot.server

    def _require_cooldown(self, slot: _ServerSlot) -> None:
        if slot.failures >= MAX_FAILURES:
            raise ToolError(
                f"{slot.failure}; it failed {slot.failures} times and is not started again in this session",
                advice="use Grep and Read",
            )
        wait_s = slot.not_before - anyio.current_time()
        if wait_s > 0:
            raise ToolError(
                f"{slot.failure}; it is started again in {wait_s:.0f} s at the earliest", advice="use Grep and Read"
            )

    def _make_room(self) -> None:
        running = [slot for slot in self._slots.values() if slot.server is not None and not slot.server.is_over]
        if len(running) >= MAX_SERVERS:
            oldest = min(running, key=lambda slot: slot.asked_at)
            assert oldest.server is not None
            oldest.server.stop()

    async def _run(self, slot: _ServerSlot, server: "LanguageServer") -> None:
        await server.run()
        if not server.failure:
            return
        now = anyio.current_time()
        slot.failures = 1 if now - server.started_at > _STEADY_S else slot.failures + 1
        slot.failure = server.failure
        slot.not_before = now + min(self._timeouts.first_pause_s * 2 ** (slot.failures - 1), _LONGEST_WAIT_S)


def _state_of(slot: _ServerSlot) -> str:
    server = slot.server
    if server is not None and not server.is_over:
        return "runs" if server.ready.is_set() else "is starting"
    return f"failed: {slot.failure}" if slot.failure else "ended, as nobody asked anything"


async def _lsp(terminal: Terminal, rest: str) -> None:
    servers = terminal.session[LanguageServers]
    states = await to_thread.run_sync(lambda: servers.states)
    there = [state for state in states if state.program]
    missing = [state.name for state in states if not state.program]
    if there:
        say_pairs(terminal, [(clean_line(state.name), _told(state)) for state in there])
    else:
        say(terminal, "no language server is installed that panpan knows, or they are switched off")
    if any("not trusted" in state.state for state in there):
        say(terminal, "`panpan trust add`, in a shell, trusts the project, and lets them start.", "dim")
    if missing:
        say(terminal, f"Not installed: {clean_line(', '.join(missing))}", "dim")


def _told(state: ServerState) -> str:
    where = f"{state.program}, for {state.root}" if state.root is not None else state.program
    return f"{clean_line(state.state)}\n{clean_line(where)}"


LSP_COMMANDS: Sequence[Command] = (Command("lsp", "Show the language servers", _lsp, is_immediate=True),)
