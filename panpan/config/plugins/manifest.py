"""Reader of plug-ins: three layouts of their folders, read into one model.

The layouts are those of Agent Plugins 1.0.0 (https://agent-plugins.org/specification), of Claude Code
(https://code.claude.com/docs/en/plugins-reference) and of Codex (https://developers.openai.com/codex/plugins/build).

The rule: a plug-in names files below its own root, and no others. A part that is wrong is told and left out. A manifest
that is wrong costs the whole plug-in, since nobody knows what it was meant to be.
"""

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal, TypeAlias

from panpan.errors import ToolError
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

Format: TypeAlias = Literal["agent-plugins", "claude", "codex"]
PartKind: TypeAlias = Literal["skills", "commands", "agents", "hooks", "output-styles", "programs"]

MANIFESTS: Mapping[Format, str] = {
    "claude": ".claude-plugin/plugin.json",
    "agent-plugins": "plugin.json",
    "codex": ".codex-plugin/plugin.json",
}
"""Manifest of each format, in the order in which they count; the first one has the most parts."""
TITLES: Mapping[Format, str] = {"claude": "Claude Code", "agent-plugins": "Agent Plugins", "codex": "Codex"}
SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
MCP_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
MAX_NAME = 64

_STRICT_NAME = compile_late(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_NAME = compile_late(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_CWD = compile_late(r"(?:\./|\$\{PLUGIN_(?:ROOT|DATA)\}(?:/|$)).*")
_HEADER = compile_late(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_VARIABLES = frozenset({"PLUGIN_ROOT", "PLUGIN_DATA"})
_TEXTS = ("version", "description", "homepage", "repository", "license")
_META = frozenset({
    "name", "version", "description", "author", "homepage", "repository", "license", "keywords", "$schema",
    "displayName", "interface",
})  # fmt: skip
_ALL_KINDS: Mapping[PartKind, str] = {
    "skills": "skills", "commands": "commands", "agents": "agents", "hooks": "hooks", "output-styles": "outputStyles",
}  # fmt: skip
"""Key in the manifest for each kind of part."""
_KINDS: Mapping[Format, Sequence[PartKind]] = {
    "claude": ("skills", "commands", "agents", "hooks", "output-styles", "programs"),
    "agent-plugins": ("skills",),
    "codex": ("skills", "hooks"),
}
_REPLACES = frozenset({"commands", "agents", "output-styles"})
"""Kinds whose key in the manifest takes the place of the usual folder; others add to it."""
_NOT_USED: Mapping[str, str] = {
    "userConfig": "panpan asks for no values of plug-ins", "dependencies": "add those plug-ins yourself",
    "defaultEnabled": "you say by `panpan plugin enable` when it runs", "monitors": "", "themes": "", "workflows": "",
    "settings": "", "channels": "", "apps": "", "experimental": "",
}  # fmt: skip
"""Keys that other programs know, each with what a user can do about it."""
_UNUSED_PLACES = ("monitors/", "themes/", "workflows/", "settings.json", ".app.json")


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The files of a plug-in."""

    names: Sequence[str]
    """Their paths from the root, with slashes, sorted."""
    read: Callable[[str], bytes]
    """Gives the content of one; raises `ToolError`."""

    def below(self, folder: str) -> Sequence[str]:
        """Return the files in a folder and its folders; those of the root for an empty name."""
        return [name for name in self.names if name.startswith(f"{folder}/")] if folder else self.names


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a plug-in that panpan uses."""

    kind: PartKind
    path: str
    """Its file, from the root."""
    name: str = ""
    """Its name where the file's own does not say it."""
    content: bytes | None = None
    """Its content if that stands in the manifest; None: that of its file."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that a plug-in brings along."""

    kind: Literal["mcp", "language"]
    name: str
    settings: Mapping[str, Any]
    """Its settings, in the keys of the plug-in's format."""
    place: str

    @property
    def title(self) -> str:
        """Command line that is started, or address that is spoken to."""
        words = [self.settings.get("command", ""), *self.settings.get("args", ()), self.settings.get("url", "")]
        return " ".join(str(word) for word in words if word)


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plug-in, whatever its format."""

    name: str
    format: Format
    version: str = ""
    description: str = ""
    parts: Sequence[Part] = ()
    servers: Sequence[Server] = ()
    problems: Sequence[str] = ()
    """Parts and keys that have no effect, each with its file."""

    def of_kind(self, kind: PartKind) -> Sequence[Part]:
        """Return the parts of one kind."""
        return [part for part in self.parts if part.kind == kind]


class PluginError(ValueError):
    """The folder holds no plug-in that can be used; says why."""


def line_place(name: str, text: str, key: str) -> str:
    """Return the name of a JSON file, with the first line that has `key` in quotes."""
    at = text.find(json.dumps(key, ensure_ascii=False)) if key else -1
    return f"{name}:{text.count(chr(10), 0, at) + 1}" if at >= 0 else name


def read_plugin(content: FolderContent, folder_name: str) -> Plugin:
    """Return the plug-in in a folder.

    Args:
        content: The files.
        folder_name: Name of the folder, which is that of a plug-in without a manifest.

    Raises:
        PluginError: There is none that can be used.
    """
    for format_, manifest in MANIFESTS.items():
        if manifest in content.names:
            return _Reader(content, format_, manifest).plugin(folder_name)
    reader = _Reader(content, "claude", "")
    found = reader.plugin(folder_name)
    if not (found.parts or found.servers):
        raise PluginError("it is no plug-in: it has neither a manifest nor any part; see docs/plugins.md")
    return found


class _Reader:
    """Reads one plug-in, and notes what of it has no effect."""

    def __init__(self, content: FolderContent, format_: Format, manifest: str) -> None:
        self._content = content
        self._format = format_
        self._manifest = manifest
        self._problems: list[str] = []

    @cached_property
    def _text(self) -> str:
        return self._decoded(self._manifest) if self._manifest else "{}"

    def _decoded(self, name: str) -> str:
        try:
            return self._content.read(name).decode()
        except UnicodeDecodeError:
            raise PluginError(f"{name} is not UTF-8 text") from None
        except ToolError as error:
            raise PluginError(f"{name} cannot be read: {error}") from error

    def _tell(self, key: str, problem: str) -> None:
        self._problems.append(f"{line_place(self._manifest, self._text, key)}: {problem}")

    def _refused(self, key: str, problem: str) -> PluginError:
        return PluginError(f"{line_place(self._manifest, self._text, key)}: {problem}")

    def plugin(self, folder_name: str) -> Plugin:
        head = self._object(self._manifest, self._text)
        if self._format == "agent-plugins":
            head = self._checked(head)
        name = head.get("name", folder_name if self._format == "claude" else None)
        self._require_name(name)
        texts = {key: head.get(key, "") for key in ("version", "description")}
        for key, text in texts.items():
            if not isinstance(text, str):
                self._tell(key, f"{key} is no text and is not used")
                texts[key] = ""
        parts = list(dict.fromkeys(part for kind in _KINDS[self._format] for part in self._parts(kind, head)))
        servers = [*self._servers("mcp", head), *self._servers("language", head)]
        self._tell_rest(head)
        return Plugin(
            name.casefold(),
            self._format,
            " ".join(texts["version"].split()),
            " ".join(texts["description"].split()),
            parts,
            servers,
            self._problems,
        )

    def _object(self, name: str, text: str) -> Mapping[str, Any]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PluginError(f"{name} is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise PluginError(f"{name} holds no JSON object")
        return found

    def _require_name(self, name: Any) -> None:
        pattern = _STRICT_NAME if self._format == "agent-plugins" else _NAME
        if not isinstance(name, str) or not name:
            raise self._refused("name", "the plug-in has no name")
        if len(name) > MAX_NAME or not pattern.fullmatch(name):
            odd = next((letter for letter in name if not letter.isascii()), "")
            if odd:
                which = unicodedata.name(odd, "a letter without a name").capitalize()
                raise self._refused("name", f"the name {name!r} has {odd!r} ({which}), which may look like another")
            raise self._refused("name", f"{name[:80]!r} can be no name; use up to 64 of a-z, 0-9, - and .")

    # Agent Plugins 1.0.0, section 5: unknown keys are told, and any other violation is fatal.

    def _checked(self, head: Mapping[str, Any]) -> Mapping[str, Any]:
        if head.get("$schema") != SCHEMA:
            raise self._refused("$schema", f"its $schema is not {SCHEMA}, the version that panpan knows")
        known = {"$schema", "name", "author", "keywords", "extensions", *_TEXTS}
        for key in sorted(head.keys() - known):
            self._tell(key, f"the key {json.dumps(key)[:60]} is not known and not used")
        for key in _TEXTS:
            if not isinstance(head.get(key, ""), str):
                raise self._refused(key, f"{key} is no text")
        author, keywords = head.get("author", {}), head.get("keywords", [])
        if not _is_texts(author) or author.keys() - {"name", "email", "url"}:
            raise self._refused("author", "author is no object of name, email and url")
        if not isinstance(keywords, list) or not all(isinstance(one, str) for one in keywords):
            raise self._refused("keywords", "keywords is no list of texts")
        if not isinstance(head.get("extensions", {}), dict):
            self._tell("extensions", "extensions is no object and is not used")
        return {key: value for key, value in head.items() if key in known - {"extensions"}}

    # Parts

    def _parts(self, kind: PartKind, head: Mapping[str, Any]) -> Iterator[Part]:
        if kind == "programs":
            yield from (Part(kind, name) for name in self._content.below("bin"))
            return
        key = _ALL_KINDS[kind]
        given = None if self._format == "agent-plugins" else head.get(key)
        if given is None or kind not in _REPLACES:
            yield from self._at(kind, "hooks/hooks.json" if kind == "hooks" else kind, is_usual=True)
        for one in given if isinstance(given, list) else [] if given is None else [given]:
            if isinstance(one, str):
                path = self._path(key, one)
                yield from () if path is None else self._at(kind, path, is_usual=False)
            elif isinstance(one, dict) and kind == "hooks":
                events = one.get("hooks", one)
                yield Part(kind, self._manifest, content=json.dumps({"hooks": events}, indent=1).encode())
            elif isinstance(one, dict) and kind == "commands":
                yield from self._named_commands(one)
            else:
                self._tell(key, f"an entry of {key} is no path and is not used")

    def _named_commands(self, given: Mapping[str, Any]) -> Iterator[Part]:
        for name, one in given.items():
            match one:
                case {"source": str(source)}:
                    path = self._path(name, source)
                    if path is not None and path not in self._content.names:
                        self._tell(name, f"{source} is not there")
                    elif path is not None:
                        yield Part("commands", path, name)
                case {"content": str(text)}:
                    yield Part("commands", self._manifest, name, text.encode(errors="replace"))
                case _:
                    self._tell(name, f"the command {name[:60]} has neither source nor content")

    def _at(self, kind: PartKind, path: str, *, is_usual: bool) -> Iterator[Part]:
        """Yield the parts at a path, which is a file or a folder."""
        names, below = self._content.names, self._content.below(path)
        if kind == "skills":
            skill = f"{path}/SKILL.md" if path else "SKILL.md"
            pattern = f"{path}/*/SKILL.md" if path else "*/SKILL.md"
            depth = pattern.count("/")
            found = [skill] if skill in names and not is_usual else []
            found = found or [name for name in below if name.count("/") == depth and fnmatchcase(name, pattern)]
            if is_usual and not found and self._format == "claude" and "SKILL.md" in names:
                yield Part(kind, "SKILL.md")
        elif path in names:
            found = [path]
        elif kind == "hooks":
            found = []
        else:
            found = [name for name in below if name.endswith(".md")]
        if not (found or below or is_usual):
            self._tell(path, f"{path or '.'} has no {kind}")
        for name in found:
            yield Part(kind, name, self._name_of(kind, name, path))

    def _name_of(self, kind: PartKind, file: str, place: str) -> str:
        """Return the name of a command in a folder of folders, such as `docs:check` for `docs/check.md`."""
        if kind != "commands" or file == place:
            return ""
        return file.removeprefix(f"{place}/").removesuffix(".md").replace("/", ":")

    def _path(self, key: str, written: str) -> str | None:
        """Return a path from the root as the names have it; None for one that leads out."""
        parts = [part for part in written.replace("\\", "/").split("/") if part not in ("", ".")]
        if written.startswith(("/", "~")) or ".." in parts:
            self._tell(key, f"{written[:100]} leads out of the plug-in and is not used")
            return None
        return "/".join(parts)

    # Servers

    def _servers(self, kind: Literal["mcp", "language"], head: Mapping[str, Any]) -> Iterator[Server]:
        if self._format == "agent-plugins":
            if kind == "mcp" and "mcp.json" in self._content.names:
                yield from self._strict_servers()
            return
        if kind == "language" and self._format == "codex":
            return
        file, key = (".mcp.json", "mcpServers") if kind == "mcp" else (".lsp.json", "lspServers")
        if file in self._content.names:
            yield from self._servers_in(kind, key, file)
        given = head.get(key)
        for one in given if isinstance(given, list) else [] if given is None else [given]:
            if isinstance(one, str):
                path = self._path(key, one)
                if path is None or path == file:
                    continue
                if path in self._content.names:
                    yield from self._servers_in(kind, key, path)
                else:
                    self._tell(key, f"{one[:100]} is not there")
            elif isinstance(one, dict):
                yield from self._listed(kind, one.get(key, one), self._manifest, self._text)
            else:
                self._tell(key, f"an entry of {key} is neither path nor object and is not used")

    def _servers_in(self, kind: Literal["mcp", "language"], key: str, file: str) -> Iterator[Server]:
        try:
            text = self._decoded(file)
            found = self._object(file, text)
        except PluginError as error:
            self._problems.append(f"{error}; none of its servers counts")
            return
        yield from self._listed(kind, found.get(key, found), file, text)

    def _listed(self, kind: Literal["mcp", "language"], given: Any, file: str, text: str) -> Iterator[Server]:
        if not isinstance(given, dict):
            self._problems.append(f"{file}: its servers are no object and do not count")
            return
        for name, settings in given.items():
            place = line_place(file, text, name)
            if (fault := _fault_of(kind, settings)) is not None:
                self._problems.append(f"{place}: the server {name[:60]} does not count: {fault}")
            else:
                yield Server(kind, name, settings, place)

    def _strict_servers(self) -> Iterator[Server]:
        """Yield the servers of `mcp.json` (Agent Plugins 1.0.0, section 7.2)."""
        try:
            text = self._decoded("mcp.json")
            found = self._object("mcp.json", text)
        except PluginError as error:
            self._problems.append(f"{error}; none of its servers counts")
            return
        servers = found.get("mcpServers")
        fault = "its $schema is not that of the plug-in" if found.get("$schema") != MCP_SCHEMA else ""
        fault = fault or ("mcpServers is no object" if not isinstance(servers, dict) else "")
        for key in sorted(found.keys() - {"$schema", "mcpServers"}):
            fault = fault or f"the key {json.dumps(key)[:60]} is not known"
        if fault or not isinstance(servers, dict):
            self._problems.append(f"mcp.json: {fault}; none of its servers counts")
            return
        for name, settings in servers.items():
            place = line_place("mcp.json", text, name)
            if (wrong := strict_fault(settings)) is not None:
                self._problems.append(f"{place}: the server {name[:60]} does not count: {wrong}")
            else:
                yield Server("mcp", name, settings, place)

    def _tell_rest(self, head: Mapping[str, Any]) -> None:
        known = _META | set(_ALL_KINDS.values()) | {"mcpServers", "lspServers"}
        for key in sorted(head.keys() - known):
            advice = _NOT_USED.get(key)
            why = "is not known and not used" if advice is None else "has no effect in panpan"
            self._tell(key, f"the key {json.dumps(key)[:60]} {why}{f'; {advice}' if advice else ''}")
        if self._format == "agent-plugins":
            return
        names = self._content.names
        unused = [one for one in _UNUSED_PLACES if any(name.startswith(one) for name in names)]
        self._problems += [f"{one}: it has no effect in panpan" for one in unused]
        others = set(_KINDS["claude"]) - set(_KINDS[self._format])
        self._problems += [
            f"{kind}/: a {TITLES[self._format]} plug-in has none, so it is not used"
            for kind in sorted(others)
            if self._content.below("bin" if kind == "programs" else kind)
        ]


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _fault_of(kind: str, settings: Any) -> str | None:
    """Return what is wrong with the settings of a server; None if they can be used."""
    if not isinstance(settings, dict):
        return "it is no object"
    command, url, arguments = settings.get("command"), settings.get("url"), settings.get("args", [])
    if kind == "language" and not (isinstance(command, str) and _is_texts(settings.get("extensionToLanguage"))):
        return "it needs command, and extensionToLanguage with the languages of suffixes"
    if not any(isinstance(one, str) and one.strip() for one in (command, url)):
        return "it has neither command nor url"
    if not isinstance(arguments, list) or not all(isinstance(one, str) for one in arguments):
        return "its args are no list of texts"
    if command and url:
        return "it has both command and url"
    return None if _is_texts(settings.get("env", {})) else "its env is no object of texts"


_STDIO = frozenset({"type", "command", "args", "env", "cwd"})
_STDIO_DEFAULTS: Mapping[str, Any] = {"command": "", "args": [], "env": {}, "cwd": "./"}
_REMOTE = frozenset({"type", "url", "headers"})


def strict_fault(settings: Any) -> str | None:
    """Return what Agent Plugins 1.0.0 forbids in a server of `mcp.json`; None if it is as specified."""
    if not isinstance(settings, dict):
        return "it is no object"
    kind = settings.get("type")
    if kind not in ("stdio", "streamable-http", "sse"):
        return "its type is not stdio, streamable-http or sse"
    for key in sorted(settings.keys() - (_STDIO if kind == "stdio" else _REMOTE)):
        return f"it has the key {json.dumps(key)[:60]}, which {kind} does not have"
    return _stdio_fault(settings) if kind == "stdio" else _remote_fault(settings)


def _stdio_fault(settings: Mapping[str, Any]) -> str | None:
    command, arguments, env, cwd = (settings.get(key, default) for key, default in _STDIO_DEFAULTS.items())
    if not isinstance(command, str) or not command:
        return "it has no command"
    if ("/" in command or "\\" in command) and not (command.startswith("./") and _stays_inside(command)):
        return "its command is neither a bare name nor a path that begins with ./ and stays in the plug-in"
    if not isinstance(arguments, list) or not all(isinstance(one, str) for one in arguments):
        return "its args are no list of texts"
    if not _is_texts(env) or _OWN_VARIABLES & env.keys():
        return "its env is no object of texts, or sets PLUGIN_ROOT or PLUGIN_DATA"
    if not (isinstance(cwd, str) and _CWD.fullmatch(cwd) and _stays_inside(cwd)):
        return "its cwd does not begin with ./, ${PLUGIN_ROOT} or ${PLUGIN_DATA}, or leads out of them"
    return None


def _stays_inside(path: str) -> bool:
    return ".." not in path.replace("\\", "/").split("/")


def _remote_fault(settings: Mapping[str, Any]) -> str | None:
    from urllib.parse import urlsplit

    url, headers = settings.get("url"), settings.get("headers", {})
    if not isinstance(url, str) or not url:
        return "it has no url"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "its url is none"
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or "#" in url:
        return "its url is no plain http or https address"
    if parts.scheme == "http" and host != "localhost" and not _is_loopback(host):
        return "its url is not https"
    if not _is_texts(headers):
        return "its headers are no object of texts"
    lower = [name.lower() for name in headers]
    is_header = all(_HEADER.fullmatch(name) for name in headers) and len(set(lower)) == len(lower)
    is_header = is_header and not any("\n" in value or "\r" in value or "\0" in value for value in headers.values())
    return None if is_header else "its headers are no HTTP headers, or one is there twice"


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
