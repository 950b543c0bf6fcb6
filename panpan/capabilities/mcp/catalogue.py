"""Tools that servers have, as far as they are known: kept from run to run, and found by words.

The rule: a definition counts as the user first accepted it, by using the server. If a server changes it later, the
model sees the accepted one, and the next call asks the user with the difference. What was kept is a file, which may be
damaged or another's: its definitions are checked before anybody reads them, at their first use, so that a start does
not pay for them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from panpan.capabilities.mcp.entries import ServerEntry
from panpan.errors import ConfigError, ToolError
from panpan.permissions.rules.rules import SERVER_PREFIX
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_users_file
from panpan.system.text.untrusted import clean_untrusted
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.capabilities.mcp.definitions import Changes, Index, KnownTool, Listing, ServerTools

MAX_PROMPTS = 200
"""Most prompts of one server."""
_MAX_INSTRUCTIONS_BYTES = 2_000
_MAX_FILE_BYTES = 100_000_000
_LOCK_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Outline:
    """Part of the knowledge about a server that a session needs from its beginning."""

    tools: int
    """Number of tools that it has and that the settings leave on."""
    instructions: str
    prompts: Sequence[Mapping[str, Any]]


class Catalogue:
    """The tools of all servers of a session.

    Args:
        folder: Folder in which they are kept from run to run; None keeps nothing.
        is_on: True for the full name of a tool that the settings leave on.
        project: Root of the project, whose servers are known for it alone.
    """

    def __init__(
        self, folder: Path | None, is_on: Callable[[str], bool] = lambda _: True, project: Path = Path("/")
    ) -> None:
        self._folder = folder
        self._is_on = is_on
        self._project = project
        self.outlines: dict[str, Outline] = {}
        """The servers of which something is known."""
        self._servers: dict[str, ServerTools] = {}
        self._unread: dict[str, tuple[ServerEntry, bytes]] = {}
        """Kept files of servers whose definitions nobody has needed yet."""
        self._reading = Lock()
        self._version = 0
        """Number of changes of what is known."""
        self._index: tuple[int, Index] | None = None

    def server(self, name: str) -> "ServerTools | None":
        """Return the definitions of a server's tools, which may take long once; None if nothing is known of it."""
        if name in self._unread:
            with self._reading:
                self._read(name)
        return self._servers.get(name)

    def _read(self, name: str) -> None:
        """Check the definitions that were kept of a server; of a damaged file nothing is known."""
        if name not in self._unread:  # another thread has done it
            return
        known = self._checked(*self._unread[name])
        if known.is_damaged:
            del self.outlines[name]
        else:
            self._servers[name] = known
            self.outlines[name] = replace(self.outlines[name], tools=len(known.tools))
        del self._unread[name]
        self._version += 1

    @property
    def is_unread(self) -> bool:
        """True if there are definitions that `load` has to check."""
        return bool(self._unread)

    def load(self) -> None:
        """Check all definitions that were kept."""
        for name in list(self._unread):
            self.server(name)

    def tools_of(self, server: str) -> "Mapping[str, KnownTool]":
        """Return the tools of a server by their full names."""
        known = self.server(server)
        return known.tools if known is not None else {}

    @property
    def tools(self) -> "Mapping[str, KnownTool]":
        """All tools by their full names, sorted."""
        found = {name: tool for server in list(self.outlines) for name, tool in self.tools_of(server).items()}
        return dict(sorted(found.items()))

    def find(self, name: str) -> "KnownTool | None":
        """Return the tool of a full name; case makes no difference."""
        wanted = name.casefold()
        for server in list(self.outlines):
            if wanted.startswith(f"{SERVER_PREFIX}{server}__".casefold()):
                tools = self.tools_of(server)
                return tools.get(name) or next((one for full, one in tools.items() if full.casefold() == wanted), None)
        return None

    def pending(self, name: str) -> "KnownTool | None":
        """Return the present definition of a tool, if it is another one than the accepted one."""
        accepted = self.find(name)
        known = None if accepted is None else self.server(accepted.server)
        if accepted is None or known is None:
            return None
        wanted = name.casefold()
        present = next((one for full, one in known.present.items() if full.casefold() == wanted), None)
        return present if present is not None and present.digest != accepted.digest else None

    def recall(self, entry: ServerEntry) -> bool:
        """Take what an earlier run has learnt of a server; False if that is nothing."""
        if (data := self._kept(entry)) is None:
            return False
        try:
            head = json.loads(data.partition(b"\n")[0])
            tools = self._left_on(entry, [name for name in head["present"] if isinstance(name, str)])
            outline = _outline(len(tools), head["instructions"], head["prompts"])
        except (ValueError, KeyError, TypeError, RecursionError):  # it is damaged
            return False
        self._unread[entry.name] = entry, data
        self.outlines[entry.name] = outline
        self._version += 1
        return True

    def forget(self, name: str) -> None:
        """Know nothing of a server any more in this session; what was kept of it stays."""
        with self._reading:
            for known in (self.outlines, self._servers, self._unread):
                known.pop(name, None)
            self._version += 1

    def learn(self, entry: ServerEntry, listing: "Listing") -> "Changes":
        """Take what a server says now, and keep it; definitions that have changed wait for the user."""
        from panpan.capabilities.mcp.definitions import Changes, ServerTools, read_tools, unaccepted

        present, wrong = read_tools(entry.name, listing.tools)
        problems = [*listing.left_out, *wrong]
        with self._locked():
            before, accepted = self._before(entry)
            changed = []
            for name, tool in present.items():
                is_lost = before is not None and before.is_damaged
                known = accepted.setdefault(name.casefold(), unaccepted(entry.name, tool.name) if is_lost else tool)
                if known.digest != tool.digest:
                    changed.append(name)
            tools = {name: accepted[name.casefold()] for name in self._left_on(entry, present)}
            outline = _outline(len(tools), listing.instructions, listing.prompts)
            self._take(entry, ServerTools(accepted, present, tools, problems), outline)
        return Changes(sorted(changed), problems)

    def accept(self, entry: ServerEntry, tool: "KnownTool") -> None:
        """Let a definition of a tool count, since the user has seen it and said yes to it."""
        with self._locked():
            known, (_, accepted) = self.server(entry.name), self._before(entry)
            assert known is not None
            accepted[tool.full_name.casefold()] = tool
            tools = {name: accepted[name.casefold()] for name in known.tools}
            self._take(entry, replace(known, accepted=accepted, tools=tools), self.outlines[entry.name])

    def _before(self, entry: ServerEntry) -> "tuple[ServerTools | None, dict[str, KnownTool]]":
        """Return what was known of a server, and its accepted definitions; another session may have accepted more."""
        data = self._kept(entry)
        here, kept = self.server(entry.name), None if data is None else self._checked(entry, data)
        accepted = {**(here.accepted if here is not None else {}), **(kept.accepted if kept is not None else {})}
        return here or kept, accepted

    def _left_on(self, entry: ServerEntry, names: Iterable[str]) -> Sequence[str]:
        """Return the full names of tools that the model may find or has in its list."""
        return [] if entry.settings.exposure == "hidden" else [name for name in names if self._is_on(name)]

    def _take(self, entry: ServerEntry, known: "ServerTools", outline: Outline) -> None:
        """Let this be known of a server, and keep it."""
        self._servers[entry.name] = known
        self.outlines[entry.name] = outline
        self._version += 1
        if self._folder is None:
            return
        accepted = [tool for tool in known.accepted.values() if tool.digest]
        names = {tool.full_name for tool in accepted}
        head = {
            "instructions": outline.instructions,
            "prompts": outline.prompts,
            "present": [name for name in known.present if name in names],
            "unaccepted": [tool.name for tool in known.accepted.values() if not tool.digest],
        }
        lines = json.dumps(head), json.dumps({"accepted": [tool.written for tool in accepted]})
        with suppress(ToolError, OSError):  # it is asked again next time
            write_atomic(self._file(entry), "\n".join(lines).encode(), mode=0o600)

    def _file(self, entry: ServerEntry) -> Path:
        assert self._folder is not None
        return self._folder / f"{entry.name}-{entry.digest}{entry.mark_of(self._project)}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other sessions from writing what they have learnt meanwhile."""
        with ExitStack() as stack:
            if self._folder is not None:
                with suppress(LockUnsupportedError, LockHeldError, ConfigError, OSError):
                    make_private_folder(self._folder)
                    stack.enter_context(hold_lock(self._folder / "lock", wait_s=_LOCK_WAIT_S))
            yield

    def _kept(self, entry: ServerEntry) -> bytes | None:
        """Return the file of a server: a line with its outline, and one with the definitions; None without one."""
        if self._folder is None or not self._file(entry).exists():
            return None
        try:
            return read_users_file(str(self._file(entry)), max_bytes=_MAX_FILE_BYTES)
        except ToolError:
            return b""

    def _checked(self, entry: ServerEntry, data: bytes) -> "ServerTools":
        """Return what the file of a server says; in a damaged one, nothing was accepted."""
        from panpan.capabilities.mcp.definitions import ServerTools, full_name, read_tools, unaccepted

        try:
            kept = {key: value for line in data.split(b"\n") for key, value in json.loads(line).items()}
            read, _ = read_tools(entry.name, kept["accepted"])
            present = {name: read[name] for name in kept["present"] if name in read}
            accepted = {name.casefold(): tool for name, tool in read.items()}
            for name in kept["unaccepted"]:
                accepted.setdefault(full_name(entry.name, name).casefold(), unaccepted(entry.name, name))
            tools = {name: present[name] for name in self._left_on(entry, present)}
            return ServerTools(accepted, present, tools)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return ServerTools({}, {}, {}, is_damaged=True)

    def search(self, query: str, most: int) -> "Sequence[KnownTool]":
        """Return the tools that words may mean, the best first.

        Args:
            query: Words, or `select:` and full names with commas between them.
            most: Most tools to return; of names, all.
        """
        kind, _, names = query.partition(":")
        if kind.strip() == "select":
            found = (self.find(name.strip()) for name in names.split(","))
            return [tool for tool in found if tool is not None]
        from panpan.capabilities.mcp.definitions import Index, words_in

        self.load()
        version, kept = self._version, self._index
        if kept is None or kept[0] != version:
            kept = self._index = version, Index(list(self.tools.values()))
        return kept[1].best(words_in(query), most)


def _outline(tools: int, instructions: object, prompts: Sequence[Any]) -> Outline:
    found = [one for one in prompts[:MAX_PROMPTS] if isinstance(one, Mapping)]
    return Outline(tools, clean_untrusted(instructions, _MAX_INSTRUCTIONS_BYTES), found)
