"""A decision of the gate with all that it rests on: as lines for people, and as one object for programs."""

import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from panpan.permissions.opening import FolderGate, Judged
from panpan.permissions.reach.located import LocatedUse
from panpan.permissions.reasons import is_unknown
from panpan.shell_analysis.facts import Effect
from panpan.system.files.paths import without_workspace
from panpan.types.permission import Ask, PermissionMode

_MOST_PATHS = 50
"""Of those that a pattern matches, shown to people."""
_LABELS = {"rule": "rule", "place": "stands in", "command": "part", "path": "path", "assumption": "assumed"}


def explained(judged: Judged, gate: FolderGate) -> Iterator[str]:
    """Yield the decision, what it rests on, and what each part of the call would do."""
    decision, subject = judged.decision, judged.subject
    reason = decision.reason
    yield f"{type(decision).__name__.lower()}: {reason.text}"
    for name, value in reason.as_json().items():
        if name in _LABELS:
            yield f"  {_LABELS[name] + ':':<10} {value}"
    if isinstance(decision, Ask):
        always = decision.rule or "cannot be saved for this call"
        yield f"  {'always:':<10} {'only a person may answer, each time' if decision.is_protected else always}"
        if decision.prefix_rule and not decision.is_protected:
            yield f"  {'the like:':<10} {decision.prefix_rule}"
        if decision.bounds:
            yield f"  {'bounds:':<10} {decision.bounds}"
    if subject is None:
        return
    uses = list(subject.all_uses)
    for use in uses[:_MOST_PATHS]:
        yield f"{'writes' if use.is_write else 'reads'} {use.path}: {_where(use)}"
    if (more := len(uses) - _MOST_PATHS) > 0:
        yield f"and {more:,} more paths"
    if subject.facts is None:
        return
    for number, effect in enumerate(subject.facts.effects, 1):
        yield f"{number}. {effect.command.source}"
        yield from (f"     {text}" for text in _effect_lines(effect, gate))
    if subject.facts.line.oddities:
        yield f"beside these there is {', '.join(subject.facts.line.oddities)}, so it does not count as only reading"


def as_json(
    judged: Judged, gate: FolderGate, tool: str, arguments: Mapping[str, Any], mode: PermissionMode | None
) -> dict[str, Any]:
    """Return the same for programs; null is unknown."""
    decision, subject = judged.decision, judged.subject
    facts = subject.facts if subject else None
    return {
        "tool": tool,
        "args": arguments,
        "mode": mode or gate.mode,
        "decision": type(decision).__name__.lower(),
        "reason": decision.reason.as_json(),
        "always": decision.rule if isinstance(decision, Ask) else None,
        "bounds": decision.bounds if isinstance(decision, Ask) else "",
        "is_protected": isinstance(decision, Ask) and decision.is_protected,
        "is_read_only": subject.is_read_only if subject else False,
        "paths": [
            {
                "path": str(use.path),
                "access": use.use.access,
                "is_inside": use.location.is_inside,
                "is_protected": use.needs_a_person,
            }
            for use in (subject.all_uses if subject else ())
        ],
        "commands": [_effect_json(effect, gate) for effect in facts.effects] if facts else None,
        "oddities": list(facts.line.oddities) if facts else None,
    }


def _effect_lines(effect: Effect, gate: FolderGate) -> Iterator[str]:
    program = effect.program or "unknown"
    file = _file(effect, gate)
    yield f"program: {program}{f', {file}' if file and file != program else ''}"
    if effect.command.directories != (".",):
        yield f"in: {' or '.join(effect.command.directories or ['a folder that is not known'])}"
    yield f"reads: {_paths(effect.placed_reads)}"
    yield f"writes: {_paths(effect.placed_writes)}"
    yield f"runs other code: {_answer(effect.runs_code)}"
    yield f"uses the network: {_answer(effect.uses_network)}"
    verdict = "only looks" if effect.is_read_only else "is not known to only look" if is_unknown(effect) else "acts"
    yield f"{verdict}: {effect.why}"


def _effect_json(effect: Effect, gate: FolderGate) -> dict[str, Any]:
    return {
        "command": effect.command.source,
        "program": effect.program,
        "file": _file(effect, gate),
        "words": effect.command.texts,
        "directories": effect.command.directories,
        "reads": effect.placed_reads,
        "writes": effect.placed_writes,
        "runs_code": effect.runs_code,
        "uses_network": effect.uses_network,
        "is_read_only": effect.is_read_only,
        "why": effect.why,
    }


def _file(effect: Effect, gate: FolderGate) -> str | None:
    """Return where the program lies that the shell would find, outside the workspace; None for the shell's own."""
    if effect.program is None:
        return None
    return shutil.which(effect.program, path=without_workspace(os.environ.get("PATH", ""), gate.paths))


def _where(use: LocatedUse) -> str:
    if use.needs_a_person:
        return f"protected, since it {use.location.protection or 'may hold secrets'}"
    return "in the workspace" if use.is_open else "outside the workspace"


def _paths(paths: tuple[str, ...] | None) -> str:
    return "unknown" if paths is None else ", ".join(paths) or "nothing"


def _answer(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"
