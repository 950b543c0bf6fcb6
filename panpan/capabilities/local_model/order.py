"""What the server of the embedded model is told: one line, from the process that starts it to the one that serves.

It goes through the child's input, since it holds the key: the arguments of a process are shown to everybody.
"""

import json
from dataclasses import asdict, field
from typing import Any, Self

from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What the server reads before it is ready."""

    request: dict[str, Any]
    """A chat completion."""
    key: str
    """What tells its beginning from others, for the file in which it is kept."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to serve, and how."""

    weights: str
    """Path of the GGUF file."""
    name: str
    """What the server calls the model."""
    template: str
    """Its chat template."""
    context_tokens: int
    port: int
    """0: any free one."""
    api_key: str = field(repr=False)
    """What clients have to send."""
    warm_up: WarmUp | None = None

    def line(self) -> bytes:
        """Return the order as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def of_line(cls, line: str) -> Self:
        """Return the order that `line` made."""
        told = json.loads(line)
        warm_up = told.pop("warm_up")
        return cls(**told, warm_up=None if warm_up is None else WarmUp(**warm_up))
