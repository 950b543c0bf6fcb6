"""Definitions of tools, as servers send them: read, checked, and found by words.

Text of a server is a stranger's: it is cleaned and cut before anybody reads it.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.system.text.untrusted import clean_untrusted, without_tags
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_TEXT_BYTES = 2_000
"""Most bytes of a description."""
MAX_SCHEMA_BYTES = 100_000
"""Most bytes of a tool's schema; a larger one leaves the tool out."""
MAX_TOOLS = 5_000
"""Most tools of one server."""
MAX_DIRECT_BYTES = 100_000
"""Most bytes of definitions that go along with each request."""
MAX_LIST_BYTES = 20_000_000
"""Most bytes of a server's definitions together."""
_MAX_NAME_CHARS = 128
_UNSAFE = compile_late(r"[^A-Za-z0-9_-]")
_WORD = compile_late(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")
_META_THAT_COUNTS = ("anthropic/requiresUserInteraction", "anthropic/maxResultSizeChars")
_MOST_PROPERTIES = 500
"""Most names of properties by which a tool is found."""
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
    """Digest of what the model and the user are told of it; empty for one of which nothing was accepted."""
    written: Mapping[str, Any]
    """Its definition, as the server sent it."""

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

    @cached_property
    def words(self) -> Counter[str]:
        """The words by which it is found."""
        names = words_in(f"{self.server} {self.name}")
        return Counter([*names * _NAME_WEIGHT, *words_in(self.description), *words_in(" ".join(self.properties))])

    @property
    def properties(self) -> Sequence[str]:
        """Names of its arguments, inner ones included."""
        return list(_properties(self.schema))

    def as_text(self) -> str:
        """Return its definition for the model."""
        schema = json.dumps(self.schema, ensure_ascii=False, separators=(",", ":"))
        return f"{self.full_name}: {self.description or '(no description)'}\narguments: {schema}"


def full_name(server: str, tool: str) -> str:
    """Return the name of a tool in rules, hooks and the log."""
    return f"mcp__{server}__{_UNSAFE.sub('_', tool)}"


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
    about, arguments = clean_untrusted(written.get("description"), MAX_TEXT_BYTES), _cleaned_schema(schema)
    rights = [meta.get(key) for key in _META_THAT_COUNTS] if isinstance(meta, Mapping) else []
    told = [name, about, arguments, hints, rights]
    return KnownTool(
        server,
        name,
        about,
        arguments,
        hints if isinstance(hints, Mapping) else {},
        meta if isinstance(meta, Mapping) else {},
        blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest(),
        written,
    )


def _cleaned_schema(node: Any) -> Any:
    """Return a schema without control characters and tags of panpan's own in its texts."""
    if isinstance(node, str):
        return without_tags(clean_for_terminal(node))
    if isinstance(node, Mapping):
        return {_cleaned_schema(key): _cleaned_schema(value) for key, value in node.items()}
    return [_cleaned_schema(item) for item in node] if isinstance(node, list) else node


def _properties(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of properties in a schema, each once; references are followed inside of it only."""
    nodes: list[Any] = [schema]
    seen: set[int] = set()
    names: set[str] = set()
    while nodes and len(names) < _MOST_PROPERTIES:
        node = nodes.pop(0)
        if not isinstance(node, Mapping) or id(node) in seen:
            continue
        seen.add(id(node))
        inner = node.get("properties")
        for name, one in inner.items() if isinstance(inner, Mapping) else ():
            if name not in names:
                names.add(name)
                yield str(name)
            nodes.append(one)
        nodes += [node.get("items"), _referred(node.get("$ref"), schema)]
        for key in ("anyOf", "oneOf", "allOf"):
            nodes += node[key] if isinstance(node.get(key), list) else ()


def _referred(reference: Any, root: Mapping[str, Any]) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for part in reference[2:].split("/"):
        target = target.get(part) if isinstance(target, Mapping) else None
    return target


def words_in(text: str) -> list[str]:
    """Return the words of a text, or of a name in camel case, in small letters."""
    return [word.casefold() for word in _WORD.findall(text)]


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's own account of itself."""

    tools: Sequence[Mapping[str, Any]] = ()
    """Definitions of its tools, as it sends them."""
    instructions: str = ""
    prompts: Sequence[Mapping[str, Any]] = ()
    """Definitions of its prompts, as it sends them."""
    left_out: Sequence[str] = ()
    """Tools that are not as the protocol says, each with the reason."""


def read_tools(server: str, listed: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, KnownTool], Sequence[str]]:
    """Return the tools that a server lists by their full names, and what is wrong with others."""
    tools: dict[str, KnownTool] = {}
    problems: list[str] = []
    twins: set[str] = set()
    left = MAX_LIST_BYTES
    for one in listed[:MAX_TOOLS]:
        try:
            tool = read_tool(server, one)
            left -= len(json.dumps(one))
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            problems.append(str(error))
            continue
        if left < 0:
            problems.append(f"its definitions have more than {MAX_LIST_BYTES:,} bytes, and the others are not known")
            break
        if tool.full_name.casefold() in twins:
            problems.append(f"{clean_line(tool.name)} has the name of another tool")
            continue
        twins.add(tool.full_name.casefold())
        tools[tool.full_name] = tool
    if len(listed) > MAX_TOOLS:
        problems.append(f"it has {len(listed):,} tools, of which {MAX_TOOLS:,} are known")
    return tools, problems


def for_list(tools: Sequence[KnownTool]) -> Sequence[KnownTool]:
    """Return the tools that providers take into the list of a request, which has room for so many bytes of them."""
    found, left = [], MAX_DIRECT_BYTES
    for tool in tools:
        left -= len(tool.as_text().encode())
        if left >= 0 and tool.digest and _is_for_providers(tool.schema):
            found.append(tool)
    return found


def _is_for_providers(schema: Mapping[str, Any]) -> bool:
    """Return True if a schema is one of an object, and has nothing at its root that providers refuse."""
    if schema.get("type") != "object" or not {"anyOf", "oneOf", "allOf", "not", "$ref"}.isdisjoint(schema):
        return False
    try:
        from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]
    except ImportError:  # it comes with the library that speaks the protocol
        return False
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError):
        return False
    return True


def unaccepted(server: str, name: str) -> KnownTool:
    """Return what stands for a tool of which nothing was accepted."""
    return KnownTool(server, name, "", {}, {}, {}, "", {})


@dataclass(frozen=True, slots=True)
class Changes:
    """Differences of a listing from what was known."""

    changed: Sequence[str] = ()
    """Tools whose definition is another one, which the user has not accepted yet."""
    problems: Sequence[str] = ()
    """Tools that cannot be used, each with the reason."""


@dataclass(frozen=True, slots=True)
class ServerTools:
    """The knowledge about one server."""

    accepted: Mapping[str, KnownTool]
    """Accepted definitions, also of tools that it has no more, by their full names in small letters."""
    present: Mapping[str, KnownTool]
    """Definitions as it sends them, by full names."""
    tools: Mapping[str, KnownTool]
    """Tools that it has and that the settings leave on, as they were accepted, by full names."""
    problems: Sequence[str] = ()
    is_damaged: bool = False
    """True if nobody can tell what was accepted, so that all that the server has is asked about."""

    @property
    def pending(self) -> Mapping[str, KnownTool]:
        """Tools whose present definition is another one than the accepted one."""
        return {name: one for name, one in self.present.items() if self.tools.get(name, one).digest != one.digest}


class Index:
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
