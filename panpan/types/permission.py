"""Who may do what: decisions about a tool call, and the question to the user where only he can decide.

Deny is stronger than ask, ask stronger than allow, whatever order they come in.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, get_args

from panpan.types.display import DiffDisplay

PermissionMode: TypeAlias = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
"""How the gate treats what no rule decides."""


def is_permission_mode(text: str) -> TypeGuard[PermissionMode]:
    """Return whether there is a mode of this name."""
    return text in get_args(PermissionMode)


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """What the user is asked before a call runs."""

    tool_use_id: str
    tool_name: str
    input: Mapping[str, Any]
    """The exact arguments; the answer holds for these and no others."""
    title: str
    """The argument that matters, on one line."""
    reason: str
    """Why it asks."""
    rule: str | None = None
    """The rule that "always" would save, such as `Bash(npm run *)`; None where it cannot be remembered."""
    is_protected: bool = False
    """Whether it touches what no flag may open; only a person may say yes."""
    preview: DiffDisplay | None = None
    """What it would change in files; None where that is not known before it runs."""


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """What the user said."""

    is_allowed: bool
    is_remembered: bool = False
    """Whether `rule` should be saved, so that the like is not asked again."""
    feedback: str = ""
    """What the model is told beside a no."""


class Asker(Protocol):
    """Puts a question to whoever can answer it; a face supplies it. Cancelling the call withdraws the question."""

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        """Return the answer."""
        ...


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""

    reason: str
    approved_paths: frozenset[Path] = frozenset()
    """Canonical paths outside the workspace, or protected ones, that this call may touch."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Only the user can decide."""

    reason: str
    """Why, in words for the user."""
    rule: str | None = None
    """The rule that "always" would save."""
    is_protected: bool = False
    approved_paths: frozenset[Path] = frozenset()
    """What a yes opens for this call."""
    remember: Callable[[], Awaitable[None]] | None = None
    """Saves `rule`; called when the user answers "always"."""
    advice_for_model: str = ""
    """What the model is told besides, where the answer is no."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run; the reason reaches the model."""

    reason: str


Decision: TypeAlias = Allow | Ask | Deny
"""What a before-tool hook may decide."""
