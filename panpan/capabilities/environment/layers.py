"""The layers of an environment as data: what was found in each, what they ask of each other, and what does not hold.

A layer stands on the ones below it, and most failures show above the layer that is broken. So layers are counted from
the bottom: the first that is broken is the lowest one, and what lies above may be well once it is mended. An
environment that is not the one that the project asks for, in its Python or its packages, counts as lower than the
binaries and libraries in it, since they change with it.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import computed_field

from panpan.types.content import Frozen

Layer: TypeAlias = Literal["python", "binary", "toolkit", "driver", "hardware"]

LAYERS: Mapping[Layer, str] = {
    "python": "Python and packages",
    "binary": "binaries and their ABI",
    "toolkit": "GPU runtime and libraries",
    "driver": "operating system and driver",
    "hardware": "hardware",
}
"""From the top to the bottom, each with its title."""

State: TypeAlias = Literal["holds", "risk", "broken", "unknown"]
"""Whether a constraint holds; a risk may go well, and what is unknown could not be judged from files."""

_GRAVITY: Mapping[State, int] = {"broken": 0, "risk": 1, "unknown": 2, "holds": 3}
_DEPTH: Mapping[Layer, float] = {layer: depth for depth, layer in enumerate(LAYERS)}
_OF_THE_WRONG_ENVIRONMENT = ("environment", "interpreter", "project-python", "project-package")
_DEPTH_OF_ENVIRONMENT = _DEPTH["driver"] - 0.5


class Finding(Frozen):
    """One thing of one layer."""

    layer: Layer
    name: str
    value: str
    role: Literal["found", "required"] = "found"
    """Whether it is there, or something above asks for it."""
    source: str = ""
    """The file that says so; empty where it is put together from several."""


class Constraint(Frozen):
    """What one layer asks of itself or of one below, and whether it gets it."""

    rule: str
    """Names the kind of constraint, as in `ADVICE`."""
    layer: Layer
    """Where the mend lies if it is broken."""
    needs: str
    has: str
    state: State
    advice: str = ""
    """What to do, in one sentence; empty where nothing is."""
    source: str = ""
    """The file of the project that asks for it, with the line where that is known: `requirements.txt:3`."""
    command: str = ""
    """The command that does it, for the project's folder; empty where none is known that would."""


class EnvReport(Frozen):
    """All that is known of one environment on one machine."""

    environment: str
    """Where it lies; empty: there is none."""
    project: str = ""
    """The folder whose manifests were read; empty: no manifest says anything."""
    chosen: str
    """Why this one is looked at."""
    findings: tuple[Finding, ...]
    constraints: tuple[Constraint, ...]
    """What is broken first, from the lowest layer up; then risks, what is unknown, and what holds."""
    unread: tuple[str, ...] = ()
    """Files that could not be read, each with the reason."""

    @property
    def first_broken(self) -> Constraint | None:
        """The constraint that does not hold in the lowest layer."""
        return next((one for one in self.constraints if one.state == "broken"), None)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def first_broken_layer(self) -> Layer | None:
        """The lowest layer that is broken; None: none is."""
        return self.first_broken.layer if self.first_broken else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def what_to_do(self) -> str:
        """How to mend that layer; empty where none is broken."""
        return self.first_broken.advice if self.first_broken else ""


def in_order(constraints: list[Constraint]) -> tuple[Constraint, ...]:
    """Return them as a report has them: the gravest first, from the lowest layer up."""
    return tuple(sorted(constraints, key=lambda one: (_GRAVITY[one.state], -_depth(one))))


def _depth(constraint: Constraint) -> float:
    return _DEPTH_OF_ENVIRONMENT if constraint.rule in _OF_THE_WRONG_ENVIRONMENT else _DEPTH[constraint.layer]
