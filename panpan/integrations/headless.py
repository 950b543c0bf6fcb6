"""A headless run as harnesses start it: its command line, and what its output says.

The rule: a harness knows panpan by its command line alone, so that it can run in a container where nothing else of
panpan is at hand.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from panpan.errors import AnswerNeededError, BudgetError, ToolError, TurnLimitError
from panpan.types.dataclass import dataclass

MAX_TURNS = 500
"""Rounds of a run. The default of a headless run is for questions, not for tasks of hours."""

IN_CONTAINER = ("--yes", "--sandbox", "off")
"""Flags for a container that is thrown away, which is the boundary then."""

ENDED_EARLY = (TurnLimitError.exit_code, BudgetError.exit_code, AnswerNeededError.exit_code)
"""Exit codes of runs that ended at a limit or at a question: what they did until then counts."""


def headless_command(
    prompt: str,
    *,
    command: Sequence[str] = ("panpan",),
    model: str | None = None,
    session_id: str | None = None,
    system_prompt: str = "",
    max_turns: int = MAX_TURNS,
    flags: Sequence[str] = (),
) -> list[str]:
    """Return the command line of a run that prints one JSON object a line.

    Args:
        prompt: The task.
        command: The program.
        model: The model as panpan names it, such as `anthropic/claude-sonnet-5-5`; None: as in the settings.
        session_id: Id of the session, a UUID; None: a new one.
        system_prompt: Text for the end of the system prompt.
        max_turns: Most rounds.
        flags: Further flags, such as `--yes`.
    """
    chosen = (("--model", model), ("--session-id", session_id), ("--append-system-prompt", system_prompt))
    given = [word for flag, value in chosen if value for word in (flag, value)]
    options = ["-f", "stream-json", "--max-turns", str(max_turns), *given, *flags]
    return [*command, *options, "-p", "--", prompt]  # behind the dashes, since a task may begin with one


@dataclass(frozen=True, slots=True)
class AskedFor:
    """The question at which a run stopped, as with `--when-asked stop`."""

    kind: str
    """One of "permission", "question", "plan" and "unfinished"."""
    text: str
    choices: Sequence[str] = ()
    """Answers that are offered; of an unfinished call, the values of `--unfinished`."""
    allowed_with: Sequence[str] = ()
    """Words of a command line that allow what was asked."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run, as its last line tells it."""

    text: str
    session_id: str
    is_error: bool
    cost_usd: float | None
    """US dollars; None if a price is not known."""
    usage: Mapping[str, int]
    """Tokens, by the names of the Messages API."""
    error: str = ""
    """The error in words; empty without one."""
    error_name: str = ""
    """Class of the error in `panpan.errors`; empty without one."""
    may_pass: bool = False
    """True if the same run may succeed later, as after a rate limit or once another panpan has left the session."""
    retry_after_s: float | None = None
    """Seconds that the provider asked to wait; None if it did not."""
    asked: AskedFor | None = None


def lines_of(output: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of the output, and pass over what is none, as after a kill in the middle of a line."""
    for line in output.split("\n"):  # texts may hold what else ends a line
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def result_of(output: str) -> RunResult | None:
    """Return the result of a run from its output; None if it did not come that far."""
    last = None
    for line in lines_of(output):
        if line.get("type") == "result":
            last = line
    return None if last is None else result_in(last)


def result_in(line: Mapping[str, Any]) -> RunResult:
    """Return the result that a line of the type `result` tells."""
    cost, usage, wait = line.get("total_cost_usd"), line.get("usage"), line.get("retry_after_s")
    errors = line.get("errors")
    return RunResult(
        text=str(line.get("result") or ""),
        session_id=str(line.get("session_id") or ""),
        is_error=bool(line.get("is_error")),
        cost_usd=cost if isinstance(cost, int | float) else None,
        usage={name: n for name, n in usage.items() if isinstance(n, int)} if isinstance(usage, dict) else {},
        error=str(errors[0]) if isinstance(errors, list) and errors else "",
        error_name=str(line.get("error_name") or ""),
        may_pass=line.get("may_pass") is True,
        retry_after_s=wait if isinstance(wait, int | float) else None,
        asked=_asked_in(line.get("asked")),
    )


def _asked_in(asked: object) -> AskedFor | None:
    if not isinstance(asked, dict):
        return None
    words = {key: [str(word) for word in asked.get(key) or ()] for key in ("choices", "allowed_with")}
    return AskedFor(str(asked.get("kind") or "question"), str(asked.get("text") or ""), **words)


def require_result(stdout: str, stderr: str, exit_code: int) -> RunResult:
    """Return the result of a run that was made, also of one that a limit or a question ended.

    Raises:
        ToolError: It failed, or did not begin, as without a model.
    """
    result = result_of(stdout)
    if result is not None and (not result.is_error or exit_code in ENDED_EARLY):
        return result
    said = stderr.strip().splitlines()[-1:] or [result.text if result and result.text else f"exit code {exit_code}"]
    raise ToolError(f"panpan failed: {said[0]}")
