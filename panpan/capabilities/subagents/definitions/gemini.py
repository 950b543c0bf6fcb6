"""Definitions of Gemini CLI, in panpan's keys (https://geminicli.com/docs/core/subagents)."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from panpan.capabilities.subagents.definitions.tool_names import tool_names
from panpan.system.text.front_matter import Entry, Value

_TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
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
"""Its names for tools."""


def from_gemini(head: Mapping[str, Entry], stem: str) -> Mapping[str, Entry] | None:
    """Return the head in panpan's keys; None: it defines no agent that runs here.

    Args:
        head: As the file says it.
        stem: The file's name.
    """
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
        return value  # which names no tools, and is said so
    return tuple(ours for name in tool_names(value) for ours in _TOOLS.get(name, (name,)))


def _in_seconds(minutes: Entry) -> Entry:
    try:
        return Entry(str(float(str(minutes.value)) * 60), minutes.line)
    except ValueError:
        return minutes  # which is no number of seconds either, and said so
