"""Definitions of OpenCode and Gemini CLI, in panpan's keys."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from panpan.capabilities.subagents.definitions.read_definition import tool_names
from panpan.system.text.front_matter import Entry, Value

_OPENCODE_TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "read": ("Read",),
        "list": ("LS",),
        "glob": ("Glob",),
        "grep": ("Grep",),
        "edit": ("Edit", "MultiEdit", "Write", "Patch", "Rename", "NotebookEdit", "LSP"),
        "write": ("Write",),
        "patch": ("Patch",),
        "bash": ("Bash",),
        "webfetch": ("WebFetch",),
        "websearch": ("WebSearch",),
        "task": ("Task",),
        "todowrite": ("TodoWrite",),
        "skill": ("Skill",),
    }
)
"""OpenCode's names for tools; `edit` is all that changes files there, too."""
_OFF = frozenset({"false", "no", "off", "deny"})


def from_opencode(head: Mapping[str, Entry], stem: str) -> Mapping[str, Entry] | None:
    """Return the head in panpan's keys; None: it defines no subagent. `stem` is the file's name."""
    if _text(head, "mode") == "primary" or _text(head, "disable") == "true":
        return None
    ours = {key: head[key] for key in ("description", "model", "temperature", "top_p") if key in head}
    ours["name"] = head.get("name", Entry(stem, 1))
    for key in ("steps", "maxSteps"):
        if key in head:
            ours["maxTurns"] = head[key]
    switches = [head[key] for key in ("tools", "permission") if key in head]
    off = [name for entry in switches for name in _switched_off(entry.value)]
    if off:
        ours["disallowedTools"] = Entry(tuple(off), switches[0].line)
    on = _switched_on(head["tools"].value) if "tools" in head else None
    if "*" in off and on is not None:
        ours["disallowedTools"] = Entry(tuple(name for name in off if name != "*"), switches[0].line)
        ours["tools"] = Entry(on, switches[0].line)
    return ours


def _text(head: Mapping[str, Entry], key: str) -> str:
    value = head[key].value if key in head else ""
    return value.strip().lower() if isinstance(value, str) else ""


def _switched_off(value: Value) -> list[str]:
    """Return the tools that are off, wholly or for some calls; the gate asks about the rest."""
    if isinstance(value, str):
        return ["*"] if value.strip().lower() in _OFF else []
    if not isinstance(value, Mapping):
        return []
    return [name for key, entry in value.items() if _is_off(entry.value) for name in _OPENCODE_TOOLS.get(key, (key,))]


def _is_off(value: Value) -> bool:
    if isinstance(value, Mapping):
        return any(_is_off(entry.value) for entry in value.values())
    return isinstance(value, str) and value.strip().lower() in _OFF


def _switched_on(value: Value) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        return ()
    return tuple(
        name for key, entry in value.items() if not _is_off(entry.value) for name in _OPENCODE_TOOLS.get(key, (key,))
    )


_GEMINI_TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "read_file": ("Read",),
        "read_many_files": ("Read",),
        "list_directory": ("LS",),
        "glob": ("Glob",),
        "grep_search": ("Grep",),
        "search_file_content": ("Grep",),
        "write_file": ("Write",),
        "replace": ("Edit", "MultiEdit"),
        "run_shell_command": ("Bash",),
        "web_fetch": ("WebFetch",),
        "google_web_search": ("WebSearch",),
        "write_todos": ("TodoWrite",),
    }
)


def from_gemini(head: Mapping[str, Entry], stem: str) -> Mapping[str, Entry] | None:
    """Return the head in panpan's keys; None: it defines no agent that runs here. `stem` is the file's name."""
    if "kind" in head and head["kind"].value == "remote":
        return None
    ours = {key: head[key] for key in ("name", "description", "model") if key in head}
    if "max_turns" in head:
        ours["maxTurns"] = head["max_turns"]
    if "timeout_mins" in head:
        ours["maxSeconds"] = _in_seconds(head["timeout_mins"])
    if "tools" in head:
        ours["tools"] = replace(head["tools"], value=_in_our_names(head["tools"].value))
    return ours


def _in_our_names(value: Value) -> Value:
    if isinstance(value, Mapping):
        return value  # it names no tools, which is reported
    return tuple(ours for name in tool_names(value) for ours in _GEMINI_TOOLS.get(name, (name,)))


def _in_seconds(minutes: Entry) -> Entry:
    try:
        return Entry(str(float(str(minutes.value)) * 60), minutes.line)
    except ValueError:
        return minutes  # it is not a number of seconds either, which is reported
