"""The report of a campaign as one HTML page without scripts, that loads nothing.

The rule: every text is escaped, and the page's own policy forbids the browser to run or load anything.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from panpan.batch.reporting.figures import LETTERS, MISSING, WAITING, rate_of, rates_by_axis, spread_of, total_spent
from panpan.batch.reporting.report import LEGEND, MAX_TASKS, NOTE, REJECTED, CampaignReport
from panpan.batch.reporting.report_plots import histogram, rate_plot
from panpan.batch.store.folder import AttemptFolder
from panpan.batch.store.records import Result, Task
from panpan.batch.store.wording import count, duration, money, shortened, value_text
from panpan.system.text.terminal_text import clean_line

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STATUS_BY_LETTER = {letter: status for status, letter in LETTERS.items()} | {WAITING: "waiting", MISSING: "missing"}
_NUMBER = ' class="number"'
_LINKS = "An underlined letter links to the patch, and the number of the best attempt to its files, if they are kept."
_STYLE = """
:root {
  color-scheme: light dark;
  --page: #fff; --text: #1c2128; --soft: #57606a; --line: #d0d7de; --card: #f6f8fa; --accent: #0a5fb4;
  --passed: #0b6e4f; --failed: #b3261e; --done: #0a5fb4; --error: #6e3fa3; --cancelled: #57606a; --waiting: #f2c14e;
  --on-colour: #fff; --on-waiting: #2b2000;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181d; --text: #e3e8ee; --soft: #a5b0bc; --line: #3a434e; --card: #1c222a; --accent: #7cb8f5;
    --passed: #6fd3a8; --failed: #ff9d92; --done: #7cb8f5; --error: #cba6f7; --cancelled: #a5b0bc; --waiting: #f2c14e;
    --on-colour: #101418; --on-waiting: #2b2000;
  }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 0 auto;
  max-width: 76rem; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .75rem; }
h3 { font-size: .95rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
p { max-width: 48rem; margin: .5rem 0; }
a { color: var(--accent); }
a:focus-visible, .scroll:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.tiles, .plots { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 8.5rem), 1fr)); }
.plots { grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); align-items: start; }
.tiles { margin: 0; }
.tiles div, .plots figure { background: var(--card); border: 1px solid var(--line); border-radius: 6px; margin: 0;
  padding: .6rem .8rem; min-width: 0; }
.tiles dt { color: var(--soft); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.05rem; font-weight: 600; overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem 1rem; font-size: .9rem; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.note { color: var(--soft); font-size: .85rem; }
.list li { overflow-wrap: anywhere; margin: .25rem 0; }
svg { display: block; width: 100%; max-width: 30rem; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--text); }
svg .value { font-weight: 600; }
svg .tick { fill: var(--soft); font-size: 11px; }
svg .grid { stroke: var(--line); stroke-dasharray: 2 3; }
svg .axis { stroke: var(--soft); }
svg .interval { stroke: var(--accent); stroke-width: 3; stroke-linecap: round; opacity: .55; }
svg .point, svg .bar { fill: var(--accent); }
svg .median { stroke: var(--text); stroke-dasharray: 4 3; }
.scroll { position: relative; overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); font-size: .85rem; padding: .5rem .6rem; }
th, td { border-top: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top;
  white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; border-top: 0; }
tbody th { font-weight: 600; white-space: normal; min-width: 9rem; max-width: 24rem; overflow-wrap: anywhere; }
tbody + tbody { border-top: 2px solid var(--line); }
td.axis { white-space: normal; overflow-wrap: break-word; max-width: 16rem; }
td.number, th.number { text-align: right; }
td.cell, th.cell { padding: 2px; width: 2rem; text-align: center; }
.mark { display: block; min-width: 28px; line-height: 26px; border-radius: 4px; text-align: center; font-weight: 700;
  color: var(--on-colour); text-decoration: none; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
a.mark { text-decoration: underline; text-underline-offset: 3px; }
.mark.passed { background: var(--passed); } .mark.failed { background: var(--failed); }
.mark.done { background: var(--done); } .mark.error { background: var(--error); }
.mark.cancelled { background: var(--cancelled); }
.mark.waiting { background: var(--waiting); color: var(--on-waiting); }
.mark.missing { color: var(--soft); }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (max-width: 40rem) { .facts { grid-template-columns: minmax(0, 1fr); } .facts dd { margin-bottom: .4rem; } }
@media print {
  :root { --page: #fff; --text: #000; --soft: #444; --line: #bbb; --card: #fff; --accent: #0a5fb4; --passed: #0b6e4f;
    --failed: #b3261e; --done: #0a5fb4; --error: #6e3fa3; --cancelled: #57606a; --on-colour: #fff; }
  body { max-width: none; padding: 0; font-size: 11pt; }
  .scroll { overflow: visible; border: 0; }
  th, td { white-space: normal; }
  tr, figure, .tiles div { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""


def html_page(report: CampaignReport) -> str:
    """Return the whole page."""
    return "\n".join(_page(report)) + "\n"


def _page(report: CampaignReport) -> Iterator[str]:
    name = _shown(report.name)
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="referrer" content="no-referrer">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{name}: report</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>"
    yield f"<h1>{name}</h1>"
    yield f'<dl class="tiles">{"".join(_pair(*one, "div") for one in report.totals())}</dl>'
    yield from _lists(report)
    yield from _rates(report)
    yield from _spreads(report)
    yield from _matrix(report)
    yield from _list(REJECTED, [f"{_shown(label)}: {_shown(text)}" for label, text in report.rejections])
    yield f'<h2>The campaign</h2>\n<dl class="facts">{"".join(_pair(*one) for one in report.facts())}</dl>'
    yield "</main>\n</body>\n</html>"


def _shown(text: str) -> str:
    return escape(clean_line(text))


def _pair(name: str, text: str, around: str = "") -> str:
    pair = f"<dt>{_shown(name)}</dt><dd>{_shown(text)}</dd>"
    return f"<{around}>{pair}</{around}>" if around else pair


def _lists(report: CampaignReport) -> Iterator[str]:
    """Yield lists of what a person has to look at."""
    waiting = [f"{_shown(one.label)} ({one.needs.kind}): {_shown(shortened(one.needs.text))}" for one in report.waiting]
    errors = [f"{_shown(one.label)}: {_shown(shortened(one.message) or 'no message')}" for one in report.errors]
    ties = [f"{_shown(task.label)}, {_links(report, task, best)}" for task, best in report.ties]
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
        yield f"<figure><h3>by {_shown(axis)}</h3>{rate_plot(axis, rates)}</figure>"
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
    yield f'<h2>Tasks</h2>\n<p class="note">{_shown(LEGEND)} {_LINKS}{rest}</p>'
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Tasks and their attempts">'
    yield "<table><caption>Attempts at each task</caption>"
    heads = [f'<th scope="col">{_shown(name)}</th>' for name in ("task", *report.axes)]
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
            head = f'<th scope="rowgroup" rowspan="{len(rows)}">{_shown(name)}</th>' if at == 0 else ""
            yield f"<tr>{head}{''.join(_cells(report, task))}</tr>"
        yield "</tbody>"
    yield "</table></div>"


def _cells(report: CampaignReport, task: Task) -> Iterator[str]:
    for axis in report.axes:
        yield f'<td class="axis">{_shown(value_text(task.axes.get(axis, "")))}</td>'
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
