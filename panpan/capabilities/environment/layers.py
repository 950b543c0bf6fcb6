"""The layers of an environment: what was found in each, what does not hold, how it is mended, and the report."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from pydantic import computed_field

from panpan.system.text.terminal_text import printable
from panpan.types.content import Frozen
from panpan.types.dataclass import dataclass

# The layers of an environment as data: their facts, their requirements, and which of these fail.
#
# A layer builds on the ones below it, and most failures show above the broken layer. So layers are counted from the
# bottom: fix the lowest broken one first, and those above may work again. The wrong environment (another Python or
# other packages than the project needs) counts as lower than binaries and libraries, since they change with it.

Layer: TypeAlias = Literal["python", "binary", "toolkit", "driver", "hardware"]

LAYERS: Mapping[Layer, str] = {
    "python": "Python and packages",
    "binary": "binaries and their ABI",
    "toolkit": "GPU runtime and libraries",
    "driver": "operating system and driver",
    "hardware": "hardware",
}
"""The layers from the top to the bottom, each with its title."""

State: TypeAlias = Literal["holds", "risk", "broken", "unknown"]
"""State of a constraint. A risk may go well; an unknown one cannot be judged from files."""

_SEVERITY: Mapping[State, int] = {"broken": 0, "risk": 1, "unknown": 2, "holds": 3}
_DEPTH: Mapping[Layer, float] = {layer: depth for depth, layer in enumerate(LAYERS)}
_OF_THE_WRONG_ENVIRONMENT = ("environment", "interpreter", "project-python", "project-package")
_DEPTH_OF_ENVIRONMENT = _DEPTH["driver"] - 0.5


class Finding(Frozen):
    """One thing of one layer."""

    layer: Layer
    name: str
    value: str
    role: Literal["found", "required"] = "found"
    """`found` if it is installed, `required` if a layer above asks for it."""
    source: str = ""
    """The file that says so; empty where it is put together from several."""


class Constraint(Frozen):
    """A need of one layer, of itself or of one below, and whether it is met."""

    rule: str
    """Names the kind of constraint, as in `ADVICE`."""
    layer: Layer
    """Layer in which it is mended if it is broken."""
    needs: str
    has: str
    state: State
    advice: str = ""
    source: str = ""
    """The file of the project that asks for it, with the line where that is known: `requirements.txt:3`."""
    command: str = ""
    """The command that does it, for the project's folder; empty where none is known that would."""


class EnvReport(Frozen):
    """All that is known of one environment on one machine."""

    environment: str
    """Path of the environment; empty if there is none."""
    project: str = ""
    """The folder whose manifests were read; empty: no manifest says anything."""
    chosen: str
    findings: tuple[Finding, ...]
    constraints: tuple[Constraint, ...]
    """Broken constraints first, from the lowest layer up; then risks, unknown ones, and those that hold."""
    unread: tuple[str, ...] = ()

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
        """Advice that mends the lowest broken layer; empty if none is broken."""
        return self.first_broken.advice if self.first_broken else ""


def in_order(constraints: list[Constraint]) -> tuple[Constraint, ...]:
    """Return them as a report has them: the gravest first, from the lowest layer up."""
    return tuple(sorted(constraints, key=lambda one: (_SEVERITY[one.state], -_depth(one))))


def _depth(constraint: Constraint) -> float:
    return _DEPTH_OF_ENVIRONMENT if constraint.rule in _OF_THE_WRONG_ENVIRONMENT else _DEPTH[constraint.layer]


class Advice(NamedTuple):
    """The layer in which a broken constraint is mended, and what to do there."""

    layer: Layer
    text: str


ADVICE: Mapping[str, Advice] = {
    "environment": Advice(
        "python", "name one (`panpan env doctor PATH`), or make one for the project and install what it asks for"
    ),
    "project-python": Advice("python", "make the environment with a Python in the range that the project asks for"),
    "project-package": Advice("python", "install what the project asks for"),
    "project-unclear": Advice("python", "look at it yourself; from files alone it cannot be judged"),
    "interpreter": Advice("python", "make the environment again; the Python that it was made from is gone"),
    "requires-python": Advice("python", "make the environment with a Python in that range, or take another version"),
    "dependency": Advice("python", "install a version in that range, or one of the package that asks for less"),
    "damaged-package": Advice("python", "install this version of it again by force, without its dependencies"),
    "leftover": Advice("python", "delete the folder; it is what an installation that was cut off left behind"),
    "two-versions": Advice("python", "uninstall the package until nothing of it is left, then install one version"),
    "conda-and-pip": Advice("python", "install the package with one of both; what conda recorded of it is not true"),
    "python-abi": Advice("binary", "install or build it again for this Python, or make the environment with the other"),
    "architecture": Advice("binary", "install it again on this machine; environments cannot be carried between kinds"),
    "c-library": Advice("binary", "take a wheel for this C library, or a system with the other, such as an image"),
    "glibc": Advice("binary", "take an older version that asks for less, build it here, or use a newer system"),
    "symbol-version": Advice("binary", "install a newer version of that library, or a build that asks for less"),
    "library": Advice("binary", "install the package of the system or of the environment that has this library"),
    "damaged-binary": Advice("binary", "install the package of this file again by force"),
    "torch-abi": Advice("binary", "take the wheel with the other cxx11abi, or build it against this PyTorch"),
    "built-for-torch": Advice("binary", "take the wheel for this PyTorch and CUDA, or the PyTorch it was built for"),
    "numpy-abi": Advice("binary", "install numpy below 2, or a version of the package that was built with NumPy 2"),
    "gpu-library": Advice("toolkit", "install the library in the version that is asked for, such as its nvidia wheel"),
    "gpu-dependency": Advice("toolkit", "install the package in that version; it holds libraries of the GPU's runtime"),
    "gpu-vendor": Advice("toolkit", "install the build for this kind of GPU"),
    "gpu-generation": Advice("toolkit", "install a build for a CUDA that has code for this GPU"),
    "toolkit-version": Advice("toolkit", "to compile extensions, set CUDA_HOME to a toolkit of the same major version"),
    "driver-missing": Advice("driver", "install NVIDIA's driver on the machine, or load its module"),
    "libcuda-missing": Advice("driver", "give the container the GPUs, such as with `--gpus all`, or install libcuda"),
    "driver-match": Advice("driver", "restart the machine; the driver was updated while the old module was loaded"),
    "driver-version": Advice("driver", "update the driver, or install a build for an older CUDA"),
    "amd-driver": Advice("driver", "load the kernel's module amdgpu, or give the container /dev/kfd and /dev/dri"),
    "no-gpu": Advice("hardware", "nothing, if it is meant to compute on the processor; else use a machine with a GPU"),
    "processor": Advice("hardware", "use a machine whose processor has them, or build the package without them"),
}
"""Advice by the name of the rule.

A driver that is too old is mended in its own layer; a build that does not fit what lies below it, in the build's.
"""


def make_constraint(
    rule: str, state: State, needs: str, has: str, *, source: str = "", command: str = "", first: str = ""
) -> Constraint:
    """Return a constraint of the kind `rule`, with the layer and the advice that belong to it.

    `first`: what has to be done before, as the advice says it; empty: nothing.
    """
    layer, text = ADVICE[rule]
    advice = "" if state == "holds" else f"{first}, then {text}" if first else text
    return Constraint(
        rule=rule, layer=layer, needs=needs, has=has, state=state, advice=advice, source=source, command=command
    )


# Names and versions come from untrusted files, so each line passes `printable`.

MAX_DETAILS = 400
_MAX_LINE_CHARS = 300
_MAX_COMMAND_CHARS = 2_000
"""A command that is cut off is of no use."""
_HEADLINES: Mapping[Layer, Sequence[str]] = {
    "python": ("python", "ABI tag", "packages"),
    "binary": ("binaries",),
    "toolkit": ("CUDA", "ROCm", "no GPU", "CUDA toolkit", "cuDNN", "NCCL"),
    "driver": ("system", "C library", "NVIDIA driver", "AMD driver"),
    "hardware": ("GPU", "processor", "memory", "disk"),
}
"""Names of the findings that tell of a layer on one line."""
_PER_NAME = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    state: State
    text: str


def layer_rows(report: EnvReport) -> list[Row]:
    """Return a row for each layer, from the top to the bottom."""
    width = max(map(len, LAYERS.values()))
    rows = []
    for layer, title in LAYERS.items():
        headline = _headline(layer, report)
        is_unseen = not (headline or report.environment)
        state = "unknown" if is_unseen and layer != "python" else _state_of(layer, report)
        said = headline or ("nothing found" if report.environment else "nothing to look at without an environment")
        rows.append(Row(state, _line(f"{title:{width}}  {said}")))
    return rows


def constraint_rows(report: EnvReport) -> list[Row]:
    """Return a row for each constraint, the gravest first."""
    return [Row(one.state, _line(f"{_needs(one)} ({one.rule})")) for one in report.constraints]


def verdict_lines(report: EnvReport) -> list[str]:
    """Return the lowest broken layer, the reason, and what to do."""
    broken = report.first_broken
    if broken is None:
        risks = sum(one.state == "risk" for one in report.constraints)
        also = f"; {risks} may matter" if risks else ""
        return [f"no layer is broken{also}", *_not_compared(report)]
    return [
        _line(f"first broken layer, from below: {LAYERS[broken.layer]} ({broken.layer})"),
        _line(f"why: {_needs(broken)}"),
        _line(f"what to do: {broken.advice}{f': {broken.command}' if broken.command else ''}", _MAX_COMMAND_CHARS),
    ]


def heading(report: EnvReport) -> str:
    """Return the environment, and the reason why it was chosen."""
    if report.environment:
        return _line(f"{report.environment}: {report.chosen}")
    return _line(f"no environment in {report.project}" if report.project else "no environment")


def detail_lines(report: EnvReport, layer: Layer) -> list[str]:
    """Return all findings of one layer, as far as there is room."""
    found = [one for one in report.findings if one.layer == layer]
    lines = [_line(_detail(one)) for one in found[:MAX_DETAILS]]
    return [*lines, f"… and {len(found) - MAX_DETAILS:,} more"] if len(found) > MAX_DETAILS else lines


def unread_lines(report: EnvReport) -> list[str]:
    """Return a line for each file that could not be read."""
    return [_line(f"not read: {one}") for one in report.unread]


def _not_compared(report: EnvReport) -> list[str]:
    """Return a warning if no manifest was found, since layers that hold may still not be what the project needs."""
    return [] if report.project else ["no manifest was found that says what a project asks for"]


def _state_of(layer: Layer, report: EnvReport) -> State:
    """The constraints are in the order of their gravity."""
    return next((one.state for one in report.constraints if one.layer == layer), "holds")


def _headline(layer: Layer, report: EnvReport) -> str:
    parts = []
    for name in _HEADLINES[layer]:
        found = (one for one in report.findings if one.layer == layer and one.role == "found")
        values = [one.value for one in found if one.name == name]
        if values:
            more = f" and {len(values) - _PER_NAME} more" if len(values) > _PER_NAME else ""
            parts.append(f"{name} {', '.join(values[:_PER_NAME])}{more}")
    return "; ".join(parts)


def _needs(constraint: Constraint) -> str:
    return f"{constraint.needs}: {constraint.has}"


def _detail(finding: Finding) -> str:
    asked = "needs " if finding.role == "required" else ""
    return f"{asked}{finding.name}: {finding.value}" + (f" [{finding.source}]" if finding.source else "")


def _line(text: str, most: int = _MAX_LINE_CHARS) -> str:
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[:most]}…"
