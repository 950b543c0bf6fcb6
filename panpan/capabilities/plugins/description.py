"""Descriptions of plug-ins for people: what one brings, what would run, and what an update changes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any

from panpan.config.plugins.manifest import TITLES, FolderContent, Part, PartKind, Plugin, line_place
from panpan.errors import ToolError
from panpan.system.text.front_matter import FrontMatterError, parts_of_file
from panpan.system.text.terminal_text import clean_line, escape_invisible
from panpan.types.pattern import compile_late

_NAMES: Mapping[PartKind, str] = {
    "skills": "skills", "commands": "commands", "agents": "agents", "output-styles": "output styles",
}  # fmt: skip
_RUNS = compile_late(r"(?<!\S)!`[^`\n]*`|^[ \t]*```!.*$")
_MAX_SHOWN = 60
"""Most names, or lines that run something, that are shown of one kind."""
_MAX_LINES = 200
"""Most lines of one file's difference."""
_MAX_TEXT = 200_000


def name_of(part: Part, plugin: Plugin, content: FolderContent) -> str:
    """Return the name by which a part is called, with that of its plug-in."""
    folder, _, file = part.path.rpartition("/")
    own = part.name or (folder.rpartition("/")[2] if part.kind == "skills" else file.removesuffix(".md"))
    if part.kind in ("agents", "output-styles") or (part.kind == "skills" and not part.name):
        try:
            entry = parts_of_file(content.read(part.path)).head.get("name")
        except (FrontMatterError, ToolError):
            entry = None
        if entry is not None and isinstance(entry.value, str) and entry.value.strip():
            own = entry.value.strip()
    return f"{plugin.name}:{own or plugin.name}"


def lines_of(plugin: Plugin, content: FolderContent) -> Iterator[str]:
    """Yield what a plug-in is, what it brings, what would run, and what of it has no effect."""
    version = f" {plugin.version}" if plugin.version else ""
    yield clean_line(f"{plugin.name}{version}: {plugin.description or 'it does not say what it is for'}")
    yield f"  a plug-in in the format of {TITLES[plugin.format]}"
    for kind, title in _NAMES.items():
        names = [name_of(part, plugin, content) for part in plugin.of_kind(kind)]
        if names:
            more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
            yield "  " + clean_line(f"{title}: {', '.join(names[:_MAX_SHOWN])}{more}")
    running = list(running_lines(plugin, content))
    yield "  what runs when it is on:" if running else "  nothing of it runs by itself"
    yield from (f"    {clean_line(line)}" for line in running[:_MAX_SHOWN])
    if len(running) > _MAX_SHOWN:
        yield f"    … and {len(running) - _MAX_SHOWN} more"
    yield from (f"  note: {clean_line(problem)}" for problem in plugin.problems)


def running_lines(plugin: Plugin, content: FolderContent) -> Iterator[str]:
    """Yield everything in a plug-in that would run: hooks, servers, programs, and commands of skills."""
    for part in plugin.of_kind("hooks"):
        yield from _hooks(part, content)
    for server in plugin.servers:
        kind = "MCP server" if server.kind == "mcp" else "language server"
        later = " (panpan starts none yet)" if server.kind == "mcp" else ""
        yield f"{kind} {server.name}{later}: {server.title} ({server.place})"
    for part in plugin.of_kind("programs"):
        yield f"program for commands: {part.path}"
    for part in plugin.parts:
        if part.kind in ("skills", "commands"):
            text = (part.content or _read(part.path, content)).decode(errors="replace")
            for number, line in enumerate(text.split("\n"), 1):
                for found in _RUNS.finditer(line):
                    yield f"command of {name_of(part, plugin, content)}: {found[0].strip()} ({part.path}:{number})"


def _read(path: str, content: FolderContent) -> bytes:
    try:
        return content.read(path)
    except ToolError as error:
        return f"({error})".encode()


def _hooks(part: Part, content: FolderContent) -> Iterator[str]:
    text = (part.content or _read(part.path, content)).decode(errors="replace")
    try:
        events = json.loads(text)["hooks"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        yield f"hooks in {part.path}, which cannot be read"
        return
    for event, groups in events:
        for matcher, hook in _handlers(groups):
            words = [hook.get(key) for key in ("command", "url", "prompt", "tool")]
            arguments = hook.get("args", []) if isinstance(hook.get("args"), list) else []
            said = next((word for word in words if isinstance(word, str)), json.dumps(hook))
            place = line_place(part.path, text, said)
            about = f" {matcher}" if matcher else ""
            yield f"hook at {event}{about}: {' '.join([said, *map(str, arguments)])} ({place})"


def _handlers(groups: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for group in groups if isinstance(groups, list) else []:
        hooks = group.get("hooks") if isinstance(group, dict) else None
        for hook in hooks if isinstance(hooks, list) else []:
            if isinstance(hook, dict):
                yield str(group.get("matcher") or ""), hook


def differences(old: FolderContent, new: FolderContent) -> Iterator[str]:
    """Yield what an update changes, file by file, with the lines of texts."""
    for name in sorted({*old.names, *new.names}):
        before = _read(name, old) if name in old.names else None
        after = _read(name, new) if name in new.names else None
        if before == after:
            continue
        kind = "new" if before is None else "gone" if after is None else "changed"
        yield f"{kind}: {escape_invisible(name)}"
        lines = list(_lines(before or b"", after or b""))
        yield from (f"  {line}" for line in lines[:_MAX_LINES])
        if len(lines) > _MAX_LINES:
            yield f"  … and {len(lines) - _MAX_LINES:,} more lines"


def _lines(before: bytes, after: bytes) -> Iterator[str]:
    try:
        texts: Sequence[str] = [data.decode() for data in (before, after)]
    except UnicodeDecodeError:
        texts = ()
    if not texts or max(map(len, texts)) > _MAX_TEXT:
        yield f"({len(before):,} and {len(after):,} bytes, too many or no text)"
        return
    found = unified_diff(texts[0].split("\n"), texts[1].split("\n"), n=2, lineterm="")
    for number, line in enumerate(found):
        if number > 1:  # the first two name the files
            yield escape_invisible(line)
