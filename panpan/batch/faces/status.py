"""`panpan batch status`: a campaign in a few lines, once or again and again."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from panpan.batch.faces.overview import STATUSES, AttemptNow, Looker, Overview
from panpan.batch.store.wording import batch_command, count, duration, money, percent
from panpan.system.text.terminal_text import clean_line

_MAX_LISTED = 10
_MAX_VALUES = 20
"""Most values of an axis that are listed."""
_LIVES = {
    "new": "has not begun",
    "running": "runs on {where}",
    "stopped": "does not run; `panpan batch run` goes on with it",
    "silent": "ran on {where}, which says nothing any more; `panpan batch run` takes it over",
    "done": "is done",
}


def status_lines(view: Overview) -> Iterator[str]:
    """Yield what `status` shows."""
    yield f"{clean_line(str(view.folder))} {_LIVES[view.life].format(where=clean_line(view.where))}"
    yield progress_line(view)
    yield spent_line(view)
    if view.note:
        yield clean_line(view.note)
    for axis, values in view.by_axis.items():
        yield ""
        yield from _axis(axis, values)
    yield from _attempts("errors", view.counts.errors)
    if more := view.counts.by_status["error"] - len(view.counts.errors):
        yield f"  and {more:,} more; {clean_line(str(view.folder / 'report.md'))} names them"
    yield from _attempts("waits for you", view.waiting)
    if view.waiting:
        yield f"  answer: {batch_command('answer', view.folder, view.waiting[0].word)}"
    yield from _attempts("runs", view.running)
    if view.hosts_out:
        yield ""
        yield "hosts that are out:"
        yield from (f"  {clean_line(name)}: {clean_line(problem)}" for name, problem in view.hosts_out.items())


def progress_line(view: Overview) -> str:
    """Return how far the campaign is."""
    share = f" ({percent(view.ended / view.total)})" if view.total else ""
    counts = [f"{view.counts.by_status[name]:,} {name}" for name in STATUSES if view.counts.by_status[name]]
    now = [(len(view.running), "running"), (len(view.waiting), "waiting"), (view.to_do, "to do")]
    parts = [*counts, *(f"{number:,} {word}" for number, word in now if number)]
    return f"{view.ended:,} of {view.total:,} attempts{share}: {', '.join(parts)}"


def spent_line(view: Overview) -> str:
    """Return what it has taken and will take."""
    spent, budget = view.counts.spent, view.budget
    parts = [
        money_line(view),
        f"{count(spent['tokens'])}{_of(budget, 'tokens', count)} tokens",
        f"{duration(spent['seconds'])} of attempts",
    ]
    if spent["gpu_seconds"] or "gpu_seconds" in budget:
        parts.append(f"{duration(spent['gpu_seconds'])}{_of(budget, 'gpu_seconds', duration)} of GPUs")
    if view.per_hour:
        parts.append(f"{view.per_hour:,.1f} attempts/h")
    if view.seconds_left:
        parts.append(f"about {duration(view.seconds_left)} left")
    return " · ".join(parts)


def money_line(view: Overview) -> str:
    """Return what attempts with a result have cost, and what the budget keeps for the others."""
    parts = [money(view.counts.spent["usd"])]
    if "usd" in view.budget:
        parts.append(f"of {money(view.budget['usd'])}")
    if view.reserved_usd:
        parts.append(f"({money(view.reserved_usd)} reserved)")
    return " ".join(parts)


def _of(budget: Mapping[str, float], name: str, written: Callable[[float], str]) -> str:
    return f" of {written(budget[name])}" if name in budget else ""


def _axis(axis: str, values: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    yield f"by {clean_line(axis)}:"
    width = max(len(clean_line(value)) for value in list(values)[:_MAX_VALUES])
    for value, counts in list(values.items())[:_MAX_VALUES]:
        judged = counts.get("passed", 0) + counts.get("failed", 0)
        rate = (
            f"{counts.get('passed', 0)} of {judged} passed ({percent(counts.get('passed', 0) / judged)})"
            if judged
            else ""
        )
        others = [f"{counts[name]} {name}" for name in ("done", "error", "cancelled") if counts.get(name)]
        yield f"  {clean_line(value):{width}}  {', '.join(filter(None, [rate, *others]))}"
    if len(values) > _MAX_VALUES:
        yield f"  and {len(values) - _MAX_VALUES} more values"


def _attempts(title: str, attempts: Sequence[AttemptNow]) -> Iterator[str]:
    if not attempts:
        return
    yield ""
    yield f"{title}:"
    yield from (f"  {one.label}  {one.text}" for one in attempts[:_MAX_LISTED])
    if len(attempts) > _MAX_LISTED:
        yield f"  and {len(attempts) - _MAX_LISTED} more"


def watch(folder: Path, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show a campaign until it has ended: drawn once a second on a terminal, else a line for each change.

    Raises:
        ConfigError: It has not begun, or cannot be read.
    """
    looker, out, is_terminal = Looker(folder), sys.stdout, sys.stdout.isatty()
    rows, last = 0, ""
    while True:
        view = looker.look()
        if is_terminal:
            size = shutil.get_terminal_size()
            lines = [line[: size.columns - 1] for line in status_lines(view)][: size.lines - 1]
            out.write(f"\x1b[{rows}A\r\x1b[J" * bool(rows) + "".join(f"{line}\n" for line in lines))
            rows = len(lines)
        elif (line := progress_line(view)) != last:
            out.write(f"{line}\n")
            last = line
        out.flush()
        if view.life not in ("new", "running", "silent"):
            return
        sleep(1.0)
