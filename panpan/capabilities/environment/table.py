"""A report as lines of text, for people and for models.

The rule: names and versions come from files of others, so each line passes `printable`.
"""

from collections.abc import Mapping, Sequence

from panpan.capabilities.environment.layers import LAYERS, Constraint, EnvReport, Finding, Layer, State
from panpan.system.text.terminal_text import printable
from panpan.types.dataclass import dataclass

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
    """Return which layer is the first that is broken, why, and what to do."""
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
    """Return which environment it is."""
    if report.environment:
        return _line(f"{report.environment}: {report.chosen}")
    return _line(f"no environment in {report.project}" if report.project else "no environment")


def detail_lines(report: EnvReport, layer: Layer) -> list[str]:
    """Return all findings of one layer, as far as there is room."""
    found = [one for one in report.findings if one.layer == layer]
    lines = [_line(_detail(one)) for one in found[:MAX_DETAILS]]
    return [*lines, f"… and {len(found) - MAX_DETAILS:,} more"] if len(found) > MAX_DETAILS else lines


def unread_lines(report: EnvReport) -> list[str]:
    """Return what could not be read."""
    return [_line(f"not read: {one}") for one in report.unread]


def _not_compared(report: EnvReport) -> list[str]:
    """Return that nobody says what the environment is for, lest its layers are taken for all that is wanted."""
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
