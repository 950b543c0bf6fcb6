"""Tools that servers have, as far as they are known: kept from run to run, and found by words.

The rule: a definition counts as the user first accepted it, by using the server. If a server changes it later, the
model sees the accepted one, and the next call asks the user with the difference. Text of a server is a stranger's: it
is cleaned and cut before anybody reads it.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from panpan.capabilities.mcp.entries import ServerEntry
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_users_file
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_TEXT_BYTES = 2_000
"""Most bytes of a description, or of a server's instructions."""
MAX_SCHEMA_BYTES = 100_000
"""Most bytes of a tool's schema; a larger one leaves the tool out."""
MAX_TOOLS = 5_000
"""Most tools of one server."""
MAX_PROMPTS = 200
"""Most prompts of one server."""
_MAX_FILE_BYTES = 50_000_000
_MAX_NAME_CHARS = 128
_UNSAFE = compile_late(r"[^A-Za-z0-9_-]")
_WORD = compile_late(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")
_MAX_DEPTH = 8
"""Levels of a schema whose property names are found."""

_K1, _B = 1.2, 0.75
"""Parameters of Okapi BM25, as Robertson and Zaragoza (2009) recommend them."""
_NAME_WEIGHT = 3
"""Times that a word of a name counts."""


@dataclass(frozen=True)
class KnownTool:
    """A tool of a server."""

    server: str
    name: str
    """Its name on the server."""
    description: str
    schema: Mapping[str, Any]
    """JSON schema of its arguments."""
    hints: Mapping[str, Any]
    """Its effects, as the server says (`annotations`)."""
    meta: Mapping[str, Any]
    digest: str
    """Digest of what the model and the user are told of it."""

    @property
    def full_name(self) -> str:
        """Its name in rules, hooks and the log."""
        return full_name(self.server, self.name)

    @property
    def is_read_only(self) -> bool:
        """True if the server says that it changes nothing."""
        return self.hints.get("readOnlyHint") is True

    @property
    def needs_person(self) -> bool:
        """True if the server says that a person has to agree to each call."""
        return self.meta.get("anthropic/requiresUserInteraction") is True

    @property
    def is_always_loaded(self) -> bool:
        """True if the server wants the model to have it from the beginning."""
        return self.meta.get("anthropic/alwaysLoad") is True

    @cached_property
    def words(self) -> Counter[str]:
        """The words by which it is found."""
        names = _words(f"{self.server} {self.name}")
        return Counter([*names * _NAME_WEIGHT, *_words(self.description), *_words(" ".join(self.properties))])

    @property
    def properties(self) -> Sequence[str]:
        """Names of its arguments, inner ones included."""
        return list(dict.fromkeys(_properties(self.schema, self.schema, 0)))

    def as_text(self) -> str:
        """Return its definition for the model."""
        schema = json.dumps(self.schema, ensure_ascii=False, separators=(",", ":"))
        return f"{self.full_name}: {self.description or '(no description)'}\narguments: {schema}"


def full_name(server: str, tool: str) -> str:
    """Return the name of a tool in rules, hooks and the log."""
    return f"mcp__{server}__{_UNSAFE.sub('_', tool)}"


def cleaned(text: object) -> str:
    """Return text of a server as the model may read it: without control characters, and cut."""
    data = clean_for_terminal(text if isinstance(text, str) else "").strip().encode()
    if len(data) <= MAX_TEXT_BYTES:
        return data.decode()
    return f"{data[:MAX_TEXT_BYTES].decode(errors='ignore')}…"


def read_tool(server: str, written: Mapping[str, Any]) -> KnownTool:
    """Return a tool as its server defines it.

    Raises:
        ValueError: It cannot be used; the text says why.
    """
    name, schema = written.get("name"), written.get("inputSchema")
    if not isinstance(name, str) or not name.strip():
        raise ValueError("a tool has no name")
    if len(name) > _MAX_NAME_CHARS:
        raise ValueError(f"the name {clean_line(name)[:60]}… is longer than {_MAX_NAME_CHARS} characters")
    if not isinstance(schema, Mapping):
        raise ValueError(f"{clean_line(name)} has no schema of its arguments")
    if len(json.dumps(schema)) > MAX_SCHEMA_BYTES:
        raise ValueError(f"the schema of {clean_line(name)} has more than {MAX_SCHEMA_BYTES:,} bytes")
    hints, meta = written.get("annotations"), written.get("_meta")
    told = [name, written.get("description"), schema, hints]
    return KnownTool(
        server,
        name,
        cleaned(written.get("description")),
        schema,
        hints if isinstance(hints, Mapping) else {},
        meta if isinstance(meta, Mapping) else {},
        blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest(),
    )


def _properties(node: Any, root: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the names of properties in a schema; references are followed inside of it only."""
    if depth > _MAX_DEPTH or not isinstance(node, Mapping):
        return
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part) if isinstance(target, Mapping) else None
        yield from _properties(target, root, depth + 1)
    if isinstance(inner := node.get("properties"), Mapping):
        for name, schema in inner.items():
            yield str(name)
            yield from _properties(schema, root, depth + 1)
    yield from _properties(node.get("items"), root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        for schema in node[key] if isinstance(node.get(key), Sequence) else ():
            yield from _properties(schema, root, depth + 1)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's own account of itself."""

    tools: Sequence[Mapping[str, Any]] = ()
    """Definitions of its tools, as it sends them."""
    instructions: str = ""
    prompts: Sequence[Mapping[str, Any]] = ()
    """Definitions of its prompts, as it sends them."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Differences of a listing from what was known."""

    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    changed: Sequence[str] = ()
    """Tools whose definition is another one, which the user has not accepted yet."""
    problems: Sequence[str] = ()
    """Tools that cannot be used, each with the reason."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass(slots=True)
class ServerTools:
    """The knowledge about one server."""

    tools: Mapping[str, KnownTool]
    """Its tools as the user accepted them, by their full names."""
    pending: dict[str, KnownTool]
    """Changed definitions that the user has not accepted."""
    written: dict[str, Mapping[str, Any]]
    """Definitions as they were sent, by full names, for the file."""
    instructions: str
    prompts: Sequence[Mapping[str, Any]] = ()
    problems: Sequence[str] = ()


class Catalogue:
    """The tools of all servers of a session.

    Args:
        folder: Folder in which they are kept from run to run; None keeps nothing.
        is_on: True for the full name of a tool that the settings leave on.
    """

    def __init__(self, folder: Path | None, is_on: Callable[[str], bool] = lambda _: True) -> None:
        self._folder = folder
        self._is_on = is_on
        self.servers: dict[str, ServerTools] = {}
        self._index: _Index | None = None

    @property
    def tools(self) -> Mapping[str, KnownTool]:
        """All tools by their full names, sorted."""
        found = {name: tool for known in self.servers.values() for name, tool in known.tools.items()}
        return dict(sorted(found.items()))

    def find(self, name: str) -> KnownTool | None:
        """Return the tool of a full name; case makes no difference."""
        for known in self.servers.values():
            if (tool := known.tools.get(name)) is not None:
                return tool
        wanted = name.casefold()
        return next((tool for known, tool in self.tools.items() if known.casefold() == wanted), None)

    def pending(self, name: str) -> KnownTool | None:
        """Return the changed definition of a tool, if the user has not accepted it."""
        found = (known.pending.get(name) for known in self.servers.values())
        return next(filter(None, found), None)

    def recall(self, entry: ServerEntry) -> bool:
        """Take what an earlier run has learnt of a server; False if that is nothing."""
        if self._folder is None:
            return False
        try:
            kept = json.loads(read_users_file(str(self._file(entry)), max_bytes=_MAX_FILE_BYTES))
            listing = Listing(list(kept["tools"]), str(kept["instructions"]), list(kept["prompts"]))
        except (ToolError, ValueError, KeyError, TypeError, RecursionError):
            return False
        self._take(entry, listing)
        return True

    def learn(self, entry: ServerEntry, listing: Listing) -> Changes:
        """Take what a server says now, and keep it; definitions that have changed wait for the user."""
        before = self.servers.get(entry.name)
        now = self._take(entry, listing)
        if before is None:
            self._keep(entry)
            return Changes(problems=now.problems)
        changed: list[str] = []
        tools = dict(now.tools)
        for name in now.tools.keys() & before.tools.keys():
            if now.tools[name].digest != before.tools[name].digest:
                changed.append(name)
                now.pending[name], tools[name] = now.tools[name], before.tools[name]
                now.written[name] = before.written[name]
        now.tools = tools
        added, removed = sorted(now.tools.keys() - before.tools.keys()), sorted(before.tools.keys() - now.tools.keys())
        self._keep(entry)
        return Changes(added, removed, sorted(changed), now.problems)

    def accept(self, entry: ServerEntry, name: str, listing: Listing) -> None:
        """Let the present definition of a tool count, since the user has said yes to it."""
        known = self.servers[entry.name]
        if (tool := known.pending.pop(name, None)) is None:
            return
        known.tools = {**known.tools, name: tool}
        for written in listing.tools:
            if full_name(entry.name, str(written.get("name"))) == name:
                known.written[name] = written
        self._index = None
        self._keep(entry)

    def _take(self, entry: ServerEntry, listing: Listing) -> ServerTools:
        self._index = None
        tools: dict[str, KnownTool] = {}
        written: dict[str, Mapping[str, Any]] = {}
        problems: list[str] = []
        twins: set[str] = set()
        for one in listing.tools[:MAX_TOOLS]:
            try:
                tool = read_tool(entry.name, one)
            except (ValueError, AttributeError, RecursionError) as error:
                problems.append(str(error))
                continue
            if tool.full_name.casefold() in twins:
                problems.append(f"{clean_line(tool.name)} has the name of another tool")
                continue
            twins.add(tool.full_name.casefold())
            written[tool.full_name] = one
            if entry.settings.exposure != "hidden" and self._is_on(tool.full_name):
                tools[tool.full_name] = tool
        if len(listing.tools) > MAX_TOOLS:
            problems.append(f"it has {len(listing.tools):,} tools, of which {MAX_TOOLS:,} are known")
        prompts = [one for one in listing.prompts[:MAX_PROMPTS] if isinstance(one, Mapping)]
        known = ServerTools(tools, {}, written, cleaned(listing.instructions), prompts, problems)
        self.servers[entry.name] = known
        return known

    def _file(self, entry: ServerEntry) -> Path:
        assert self._folder is not None
        return self._folder / f"{entry.name}-{entry.digest}.json"

    def _keep(self, entry: ServerEntry) -> None:
        if self._folder is None:
            return
        known = self.servers[entry.name]
        kept = {"instructions": known.instructions, "tools": list(known.written.values()), "prompts": known.prompts}
        with suppress(ToolError, ConfigError, OSError):  # it is asked again next time
            make_private_folder(self._folder)
            write_atomic(self._file(entry), json.dumps(kept).encode(), mode=0o600)

    def search(self, query: str, most: int) -> Sequence[KnownTool]:
        """Return the tools that words may mean, the best first.

        Args:
            query: Words, or `select:` and full names with commas between them.
            most: Most tools to return; of names, all.
        """
        kind, _, names = query.partition(":")
        if kind.strip() == "select":
            found = (self.find(name.strip()) for name in names.split(","))
            return [tool for tool in found if tool is not None]
        if self._index is None:
            self._index = _Index(list(self.tools.values()))
        return self._index.best(_words(query), most)


class _Index:
    """An index of words, which ranks by Okapi BM25."""

    def __init__(self, tools: Sequence[KnownTool]) -> None:
        self._tools = tools
        self._places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = []
        for number, tool in enumerate(tools):
            lengths.append(tool.words.total())
            for word, count in tool.words.items():
                self._places[word].append((number, count))
        average = sum(lengths) / len(lengths) if lengths else 1.0
        self._norms = [_K1 * (1 - _B + _B * length / (average or 1.0)) for length in lengths]

    def best(self, words: Sequence[str], most: int) -> Sequence[KnownTool]:
        scores: dict[int, float] = defaultdict(float)
        for word in dict.fromkeys(words):
            for known in self._near(word):
                places = self._places[known]
                rarity = math.log(1 + (len(self._tools) - len(places) + 0.5) / (len(places) + 0.5))
                share = 1.0 if known == word else 0.5
                for number, count in places:
                    scores[number] += share * rarity * count * (_K1 + 1) / (count + self._norms[number])
        ranked = sorted(scores, key=lambda number: (-scores[number], self._tools[number].full_name))
        return [self._tools[number] for number in ranked[:most]]

    def _near(self, word: str) -> Sequence[str]:
        """Return the known words that a word may mean: itself, else those that begin with it, or it with them."""
        if word in self._places:
            return (word,)
        if len(word) < 4:
            return ()
        return [
            known for known in self._places if known.startswith(word) or (len(known) > 3 and word.startswith(known))
        ]
