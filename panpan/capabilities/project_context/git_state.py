"""The git part of the project context: branch, changes and newest commits, bounded, and never waited for long."""

from collections.abc import Sequence
from pathlib import Path

import anyio

from panpan.errors import ToolError
from panpan.system.git.git import run_git
from panpan.system.processes.process import Captured
from panpan.system.text.terminal_text import printable

_TIMEOUT_S = 2.0
_MOST_CHANGES = 30
_MOST_COMMITS = 5
_LONGEST_LINE = 160


async def git_state(cwd: Path) -> str:
    """Return what git says about `cwd`, which lies in a repository, as lines of text."""
    answers: dict[str, str] = {}

    async def ask(name: str, *args: str) -> None:
        answers[name] = await _answer(name, args, cwd)

    async with anyio.create_task_group() as task_group:
        task_group.start_soon(ask, "status", "--porcelain=v1", "--branch", "--untracked-files=normal", "-z")
        task_group.start_soon(ask, "log", f"--max-count={_MOST_COMMITS}", "--format=%h %s")
    return "\n".join(part for part in (answers["status"], answers["log"]) if part)


async def _answer(name: str, args: Sequence[str], cwd: Path) -> str:
    try:
        captured = await run_git([name, *args], cwd=cwd, timeout_s=_TIMEOUT_S)
    except ToolError as exc:
        return str(exc) if name == "status" else ""
    if captured.timed_out:
        return f"git {name} took longer than {_TIMEOUT_S:.0f} s and was not waited for."
    return _status(captured) if name == "status" else _commits(captured)


def _status(captured: Captured) -> str:
    if captured.exit_code != 0 and not captured.is_truncated:
        return f"git status failed: {_line(captured.stderr.decode(errors='replace').strip())}"
    branch, *changes = _status_entries(captured.stdout.decode(errors="replace"))
    lines = [f"Branch: {_line(branch.removeprefix('## '))}"]
    if not changes:
        return f"{lines[0]}\nNo uncommitted changes."
    more = "at least " if captured.is_truncated else ""
    lines.append(f"Uncommitted changes ({more}{len(changes):,}):")
    lines += [_line(change) for change in changes[:_MOST_CHANGES]]
    if len(changes) > _MOST_CHANGES:
        lines.append(f"… {len(changes) - _MOST_CHANGES:,} more")
    return "\n".join(lines)


def _status_entries(output: str) -> list[str]:
    """Return the branch line and one entry for each change; a rename has its old name in a field of its own."""
    fields = iter(output.rstrip("\0").split("\0"))
    entries = [next(fields)]
    for field in fields:
        if field[:1] in ("R", "C") or field[1:2] in ("R", "C"):
            entries.append(f"{field} (from {next(fields, '')})")
        else:
            entries.append(field)
    return entries


def _commits(captured: Captured) -> str:
    if captured.exit_code != 0:
        return ""  # no commits yet, as the branch line says
    lines = captured.stdout.decode(errors="replace").splitlines()
    return "\n".join(["Newest commits:", *map(_line, lines)]) if lines else ""


def _line(text: str) -> str:
    line = printable(text)
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
