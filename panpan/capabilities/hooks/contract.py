"""The contract of hooks: which events there are, what a hook is told, and what its answer means.

The names and shapes are those of Claude Code's hooks of November 2026, so that files written for it work here. An
answer that cannot be read counts as a failure, and what it says in the wrong place still counts and is told: a hook
that wants to say no must not be missed for the sake of a field.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias

from panpan.system.text.terminal_text import without_controls
from panpan.types.dataclass import dataclass

MAX_CHARS = 10_000
"""Most characters of a text of a hook that the model gets; a longer one is kept in a file."""
"""Most characters of one text of a hook."""
BLOCKED = 2
"""Exit code of a hook that says no."""

FIRED: Mapping[str, str] = {
    "PreToolUse": "before a tool runs; may deny it, have the user asked, allow it, or give it other arguments",
    "PermissionRequest": "before the user is asked about a call; may answer in the user's place",
    "PostToolUse": "after a tool has run; may tell the model something about it",
    "PostToolUseFailure": "after a tool has failed; may tell the model something about it",
    "UserPromptSubmit": "before a message of yours is sent; may refuse it, or add to it",
    "SessionStart": "when the first turn of a session begins; may tell the model something",
    "SessionEnd": "when a session ends",
    "Stop": "when the model has nothing more to do; may send it back to work",
    "SubagentStart": "when a subagent begins to work; may tell it something",
    "SubagentStop": "when a subagent has nothing more to do; may send it back to work",
    "PostToolBatch": "when all calls of a reply have their results; may tell the model something, or end the turn",
    "PreCompact": "before a conversation is compacted; may keep it as it is",
    "PostCompact": "when a conversation has been compacted",
    "Notification": "when the user is asked about a call",
    "CwdChanged": "when a command has changed the working directory",
    "UserPromptExpansion": "before a skill that you call by /NAME is sent; may refuse it",
    "PermissionDenied": "when a call was not allowed",
    "StopFailure": "when a turn ends with an error, such as of the provider",
    "PreModelSwitch": "before another model is asked from now on; may refuse it",
    "PostModelSwitch": "when another model is asked from now on",
    "InstructionsLoaded": "when the model is told a file of rules, such as AGENTS.md",
    "DirectoryAdded": "when tools may work in another folder",
    "ConfigChange": "before a command such as /config saves a setting of yours; may refuse it",
    "TaskCreated": "before the model writes a new todo; may refuse it",
    "TaskCompleted": "before the model marks a todo as completed; may refuse it",
    "Elicitation": "before a question of an MCP server is put to you; may decline it",
    "ElicitationResult": "before your answer goes to an MCP server; may keep it back",
}
"""The events that are fired, with what a hook of each can do."""

UNMATCHED = frozenset({
    "UserPromptSubmit", "Stop", "PostToolBatch", "CwdChanged", "StopFailure", "DirectoryAdded", "TaskCreated",
    "TaskCompleted",
})  # fmt: skip
"""Events that are about nothing which a matcher could be compared with."""

NEVER_FIRED = frozenset({
    "Setup", "TeammateIdle", "WorktreeCreate", "WorktreeRemove", "FileChanged", "MessageDisplay",
})  # fmt: skip
"""Further events of Claude Code, whose hooks do not run in panpan."""

_ADDS_ITS_OUTPUT = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events of which plain output is for the model."""

Verdict: TypeAlias = Literal["", "allow", "ask", "deny"]
_ANSWER_KEYS = frozenset(
    {"decision", "reason", "continue", "stopReason", "systemMessage", "suppressOutput", "hookSpecificOutput"}
)
"""Keys of an answer in JSON."""
STRICTNESS: Sequence[Verdict] = ("deny", "ask", "allow", "")
"""Verdicts, the one that counts first."""


@dataclass(frozen=True, slots=True)
class HookRun:
    """One run of a hook's command."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    failure: str = ""
    """Reason that it has no usable answer, such as a time-out; empty if it ended by itself."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one hook."""

    verdict: Verdict = ""
    """Its decision; empty where it has none."""
    reason: str = ""
    context: str = ""
    """Text for the model."""
    told: Sequence[str] = ()
    """Sentences for the user."""
    stops: str | None = None
    """Reason to end the turn; None to go on."""
    arguments: Mapping[str, Any] | None = None
    """Other arguments for the call; None to leave them."""
    failure: str = ""
    """Reason that the answer cannot be used; empty if it can."""


def read_answer(event: str, run: HookRun) -> Answer:
    """Return what a run says. A no or a question in JSON counts at every exit code, and exit code 2 is a no."""
    if run.failure:
        return Answer(failure=run.failure)
    said, failure = _json_of(run.stdout)
    answer = _Reader(event, said).answer() if said else Answer(failure=failure)
    if run.exit_code == BLOCKED:
        reason = answer.reason or without_controls(run.stderr.strip()) or "it gave no reason"
        return replace(answer, verdict="deny", reason=reason, arguments=None, failure="")
    if run.exit_code != 0 and answer.verdict not in ("deny", "ask"):
        failure = answer.failure or f"it ended with {run.exit_code}{_first_line_of(run.stderr)}"
        answer = replace(answer, failure=failure)
    if answer.failure:  # what is half broken says no more than a no
        return answer if answer.verdict in ("deny", "ask") else replace(answer, verdict="", reason="", arguments=None)
    if said:
        return answer
    if event in _ADDS_ITS_OUTPUT:
        return Answer(context=without_controls(run.stdout.strip()))
    return Answer()


def is_answer(output: str) -> bool:
    """Return True if an output is JSON with a field of a hook."""
    return not _ANSWER_KEYS.isdisjoint(_json_of(output)[0])


def _json_of(output: str) -> tuple[Mapping[str, Any], str]:
    """Return the object that an output holds, and why it holds none although it begins like one."""
    text = output.strip().removeprefix("\ufeff")
    if not text.startswith("{"):
        is_mixed = any(line.lstrip().startswith("{") for line in text.splitlines())
        return {}, "its output has JSON behind other text" if is_mixed else ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        return {}, f"its output begins with {{ and is no JSON ({error})"
    return found, ""


@dataclass(slots=True)
class _Reader:
    """Reads one answer in JSON."""

    event: str
    said: Mapping[str, Any]
    told: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def answer(self) -> Answer:
        special = self._object(self.said, "hookSpecificOutput")
        name = special.get("hookEventName")
        if special and name != self.event:
            self.told.append(f"hookEventName is {_shown(name)} and not {self.event}; its answer counts nevertheless")
        if "updatedToolOutput" in special:
            self.told.append("updatedToolOutput is not used: the model gets what the tool said")
        verdict, reason = self._verdict(special)
        if message := self._text(self.said, "systemMessage"):
            self.told.append(message)
        stops = None
        if self.said.get("continue", True) is False:
            stops = self._text(self.said, "stopReason") or reason or "it gave no reason"
        context = self._text(special, "additionalContext")
        arguments = self._object(special, "updatedInput") or None
        if "updatedInput" in self._object(special, "decision") or (
            arguments is not None and self.event != "PreToolUse"
        ):
            self.faults.append("updatedInput counts only in hooks of PreToolUse")
        return Answer(verdict, reason, context, tuple(self.told), stops, arguments, "; ".join(self.faults))

    def _verdict(self, special: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Return the strictest decision, wherever it stands, with its reason."""
        places = (
            (self.said.get("decision"), self._text(self.said, "reason")),
            *(
                (place.get("permissionDecision"), self._text(place, "permissionDecisionReason"))
                for place in (special, self.said)
            ),
            *self._of_request(special),
        )
        found: list[tuple[Verdict, str]] = []
        for word, reason in places:
            match word:
                case None | "defer":
                    pass
                case "block" | "deny":
                    found.append(("deny", reason or "it gave no reason"))
                case "ask":
                    found.append(("ask", reason or "it wants you to decide"))
                case "approve" | "allow":
                    found.append(("allow", reason))
                case _:
                    self.faults.append(f"its decision is {_shown(word)}, which is not known")
        return min(found, key=lambda one: STRICTNESS.index(one[0]), default=("", ""))

    def _of_request(self, special: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
        if decision := self._object(special, "decision"):
            yield decision.get("behavior"), self._text(decision, "message")

    def _object(self, holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = holder.get(key)
        if value is None or isinstance(value, Mapping):
            return value or {}
        self.faults.append(f"{key} is no object")
        return {}

    def _text(self, holder: Mapping[str, Any], key: str) -> str:
        value = holder.get(key)
        if value is None or isinstance(value, str):
            return without_controls(value or "")
        self.faults.append(f"{key} is no text")
        return ""


def _first_line_of(errors: str) -> str:
    line = errors.strip().partition("\n")[0][:200]
    return f": {line}" if line else ""


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:60] if value is not None else "missing"
