"""The report of a campaign as one HTML page without scripts, that loads nothing.

The rule: every text is escaped, and the page's own policy forbids the browser to run or load anything.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from panpan.batch.reporting.figures import LETTERS, MISSING, WAITING, rate_of, rates_by_axis, spread_of, total_spent
from panpan.batch.reporting.page_parts import facts, page, shown, tiles
from panpan.batch.reporting.report import LEGEND, MAX_TASKS, NOTE, REJECTED, CampaignReport
from panpan.batch.reporting.report_plots import histogram, rate_plot
from panpan.batch.store.folder import AttemptFolder
from panpan.batch.store.records import Result, Task
from panpan.batch.store.wording import count, duration, money, shortened, value_text

_STATUS_BY_LETTER = {letter: status for status, letter in LETTERS.items()} | {WAITING: "waiting", MISSING: "missing"}
_NUMBER = ' class="number"'
_LINKS = "An underlined letter links to the patch, and the number of the best attempt to its files, if they are kept."


def html_page(report: CampaignReport) -> str:
    """Return the whole page."""
    return page(f"{report.name}: report", _body(report))


def _body(report: CampaignReport) -> Iterator[str]:
    yield f"<h1>{shown(report.name)}</h1>"
    yield tiles(report.totals())
    yield from _lists(report)
    yield from _rates(report)
    yield from _spreads(report)
    yield from _matrix(report)
    yield from _list(REJECTED, [f"{shown(label)}: {shown(text)}" for label, text in report.rejections])
    yield f"<h2>The campaign</h2>\n{facts(report.facts())}"


def _lists(report: CampaignReport) -> Iterator[str]:
    """Yield lists of what a person has to look at."""
    waiting = [f"{shown(one.label)} ({one.needs.kind}): {shown(shortened(one.needs.text))}" for one in report.waiting]
    errors = [f"{shown(one.label)}: {shown(shortened(one.message) or 'no message')}" for one in report.errors]
    ties = [f"{shown(task.label)}, {_links(report, task, best)}" for task, best in report.ties]
    for title, entries in (("Waiting for a person", waiting), ("Errors", errors), ("Ties of the best attempts", ties)):
        yield from _list(title, entries)


def _list(title: str, entries: Sequence[str]) -> Iterator[str]:
    if entries:
        more = [f"and {len(entries) - MAX_TASKS:,} more"] if len(entries) > MAX_TASKS else []
        items = "".join(f"<li>{entry}</li>" for entry in [*entries[:MAX_TASKS], *more])
        yield f'<h2>{title}</h2>\n<ul class="list">{items}</ul>'


def _rates(report: CampaignReport) -> Iterator[str]:
    by_axis = {axis: rates for axis, rates in rates_by_axis(report.results).items() if len(rates) > 1}
    if not by_axis:
        return
    yield f'<h2>Pass rates</h2>\n<p class="note">{NOTE}</p>\n<div class="plots">'
    for axis, rates in by_axis.items():
        yield f"<figure><h3>by {shown(axis)}</h3>{rate_plot(axis, rates)}</figure>"
    yield "</div>"


def _spreads(report: CampaignReport) -> Iterator[str]:
    spent = [result.spent for result in report.results if result.tries]
    found = (
        ("Cost of an attempt", spread_of(one.usd for one in spent), money),
        ("Time of an attempt", spread_of(one.seconds for one in spent), duration),
        ("Tokens of an attempt", spread_of(one.tokens for one in spent), count),
    )
    if not spent:
        return
    yield '<h2>Cost and time</h2>\n<div class="plots">'
    for name, spread, written in found:
        if spread is not None and spread.values[-1] > 0:
            yield f"<figure><h3>{name}</h3>{histogram(name, spread, written)}</figure>"
    yield "</div>"


def _matrix(report: CampaignReport) -> Iterator[str]:
    tasks = report.tasks[:MAX_TASKS]
    rest = (
        f" The first {len(tasks):,} of {len(report.tasks):,}; results.csv has all."
        if len(tasks) < len(report.tasks)
        else ""
    )
    yield f'<h2>Tasks</h2>\n<p class="note">{shown(LEGEND)} {_LINKS}{rest}</p>'
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Tasks and their attempts">'
    yield "<table><caption>Attempts at each task</caption>"
    heads = [f'<th scope="col">{shown(name)}</th>' for name in ("task", *report.axes)]
    numbers = [f'<th scope="col" class="cell">{number}</th>' for number in range(1, report.attempts + 1)]
    ends = [
        f'<th scope="col"{kind}>{name}</th>'
        for name, kind in (("passed", ""), ("best", ""), ("cost", _NUMBER), ("time", _NUMBER))
    ]
    yield f"<thead><tr>{''.join([*heads, *numbers, *ends])}</tr></thead>"
    for name, found in groupby(tasks, key=lambda task: task.name):
        rows = list(found)
        yield "<tbody>"
        for at, task in enumerate(rows):
            head = f'<th scope="rowgroup" rowspan="{len(rows)}">{shown(name)}</th>' if at == 0 else ""
            yield f"<tr>{head}{''.join(_cells(report, task))}</tr>"
        yield "</tbody>"
    yield "</table></div>"


def _cells(report: CampaignReport, task: Task) -> Iterator[str]:
    for axis in report.axes:
        yield f'<td class="axis">{shown(value_text(task.axes.get(axis, "")))}</td>'
    found = report.by_task.get(task.id, {})
    for number, letter in enumerate(report.letters(task), 1):
        yield f'<td class="cell">{_mark(report, task, number, letter, found.get(number))}</td>'
    results = report.results_of(task)
    spent, rate = total_spent(results), rate_of(results)
    yield f"<td>{f'{rate.passed} of {rate.judged}' if rate.judged else ''}</td>"
    yield f"<td>{_links(report, task, report.best(task))}</td>"
    yield f'<td class="number">{money(spent.usd) if results else ""}</td>'
    yield f'<td class="number">{duration(spent.seconds) if results else ""}</td>'


def _mark(report: CampaignReport, task: Task, number: int, letter: str, result: Result | None) -> str:
    status = _STATUS_BY_LETTER[letter]
    has_patch = result is not None and result.changes is not None and bool(result.changes.files)
    words = (
        f"attempt {number}: {'no result yet' if status == 'missing' else status}{', its patch' if has_patch else ''}"
    )
    inner = f'<span aria-hidden="true">{letter}</span><span class="unseen">{words}</span>'
    if not has_patch:
        return f'<span class="mark {status}">{inner}</span>'
    return (
        f'<a class="mark {status}" href="{_address(report, report.folder.attempt(task.id, number).patch)}">{inner}</a>'
    )


def _links(report: CampaignReport, task: Task, best: Sequence[Result]) -> str:
    """Return the best attempts, each with a link to its files if they are still there."""
    words = ", ".join(_link(report, report.folder.attempt(task.id, one.attempt)) for one in best)
    return f"tie: {words}" if len(best) > 1 else words


def _link(report: CampaignReport, attempt: AttemptFolder) -> str:
    if not attempt.workspace.is_dir():
        return str(attempt.number)
    address = _address(report, attempt.workspace)
    return f'<a href="{address}/" aria-label="files of attempt {attempt.number}">{attempt.number}</a>'


def _address(report: CampaignReport, path: Path) -> str:
    """Return the address of a file relative to the page."""
    return escape(quote(path.relative_to(report.folder.path).as_posix()))
