"""What came of a replay."""

from dataclasses import field
from typing import Any

from panpan.capabilities.cassettes.difference import Divergence
from panpan.types.dataclass import dataclass


@dataclass(slots=True)
class ReplayReport:
    """What came of a replay."""

    mode: str
    turns: int = 0
    requests: int = 0
    tool_calls: int = 0
    transcript: str = ""
    """Hash of the conversation; the same for the same messages."""
    divergence: Divergence | None = None
    error: str = ""
    """Why the replay ended, where nothing differs and it still is not whole."""
    other_texts: list[Divergence] = field(default_factory=list)
    """With real tools: results that say something else than they did."""

    @property
    def is_same(self) -> bool:
        """Whether all was as it was recorded."""
        return self.divergence is None and not self.error

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "mode": self.mode,
            "same": self.is_same,
            "turns": self.turns,
            "requests": self.requests,
            "tool_calls": self.tool_calls,
            "transcript_sha256": self.transcript,
            "divergence": None if self.divergence is None else self.divergence.as_json(),
            "error": self.error or None,
            "other_texts": [other.as_json() for other in self.other_texts],
        }
