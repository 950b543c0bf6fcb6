"""The report of a reproduction as one HTML page without scripts, that loads nothing."""

from collections.abc import Iterator, Sequence
from html import escape

from panpan.batch.reporting.page_parts import facts, page, shown, tiles
from panpan.batch.store.wording import shortened
from panpan.repro.checking.check_table import claimed_text, measured_text
from panpan.repro.checking.results import Judgement
from panpan.repro.journey.report import (
    CLAIM_HEADS,
    COMMAND_HEADS,
    DATA_HEADS,
    MODEL_NOTE,
    VERDICTS,
    ReproductionReport,
    label_of,
    model_words,
    why_of,
)
from panpan.system.text.terminal_text import clean_for_terminal

_CLASSES = {
    "reproduced": "passed",
    "within spread": "done",
    "deviates": "failed",
    "not reproducible": "error",
    "not run": "cancelled",
}
_STYLE = """
.conclusion { font-size: 1.1rem; }
.claims td.measured, .claims td.claimed { white-space: normal; min-width: 6rem; }
.claims td.why, .plain td.wide { white-space: normal; overflow-wrap: anywhere; min-width: 15rem; }
.claims .mark { padding: 0 .6rem; white-space: nowrap; font-size: .85rem; }
.why ul { margin: .25rem 0 0; padding-left: 1.1rem; color: var(--soft); }
.words { background: var(--card); border: 1px dashed var(--soft); border-radius: 6px; padding: .6rem .8rem;
  overflow-wrap: anywhere; }
.words p { white-space: pre-wrap; }
code { font: .85rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
@media print { .mark { border: 1px solid; } .words { break-inside: auto; } }
"""


def html_page(report: ReproductionReport) -> str:
    """Return the whole page."""
    return page(f"{report.title}: reproduction", _body(report), _STYLE)


def _body(report: ReproductionReport) -> Iterator[str]:
    yield f"<h1>{shown(report.title)}</h1>"
    yield f'<p class="conclusion">{shown(report.conclusion)}</p>'
    yield tiles(report.counts())
    yield "<h2>Claims</h2>"
    yield from _table("Claims of the paper", "claims", CLAIM_HEADS, map(_row, report.check.judgements))
    for title, text in model_words(report.told):
        yield f'<h2>{title}</h2>\n<aside class="words" aria-label="{title}"><p class="note">{MODEL_NOTE}</p>'
        yield f"<p>{escape(clean_for_terminal(text))}</p></aside>"
    if files := report.written_here():
        items = "".join(f"<li>{shown(shortened(one))}</li>" for one in files)
        yield f'<h2>Changed files of the repository</h2>\n<ul class="list">{items}</ul>'
    if commands := list(report.commands()):
        yield "<h2>Commands</h2>"
        yield from _table("Commands and their runs", "plain", COMMAND_HEADS, map(_command_row, commands))
    if data := list(report.data()):
        yield "<h2>Data</h2>"
        yield from _table("Data that the commands read", "plain", DATA_HEADS, map(_data_row, data))
    yield f"<h2>The check</h2>\n{facts(report.facts())}"
    yield f"<h2>Verdicts</h2>\n{facts(VERDICTS.items())}"


def _table(name: str, kind: str, heads: Sequence[str], rows: Iterator[str]) -> Iterator[str]:
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
    yield f'<table class="{kind}"><caption>{name}</caption>'
    columns = "".join(f'<th scope="col">{shown(head)}</th>' for head in heads)
    yield f"<thead><tr>{columns}</tr></thead>\n<tbody>"
    yield from rows
    yield "</tbody></table></div>"


def _row(one: Judgement) -> str:
    reason, *hints = why_of(one) or [""]
    more = f"<ul>{''.join(f'<li>{shown(hint)}</li>' for hint in hints)}</ul>" if hints else ""
    label, claimed, measured = map(shown, (label_of(one.claim), claimed_text(one.claim), measured_text(one)))
    return (
        f'<tr><th scope="row">{label}</th><td><span class="mark {_CLASSES[one.verdict]}">{one.verdict}</span></td>'
        f'<td class="claimed">{claimed}</td><td class="measured">{measured}</td>'
        f'<td class="why">{shown(reason)}{more}</td></tr>'
    )


def _command_row(row: Sequence[str]) -> str:
    line, *others = row
    cells = "".join(f"<td>{shown(cell)}</td>" for cell in others)
    return f'<tr><td class="wide"><code>{shown(line)}</code></td>{cells}</tr>'


def _data_row(row: Sequence[str]) -> str:
    path, size, checksum, compared = map(shown, row)
    return f'<tr><th scope="row">{path}</th><td>{size}</td><td>{checksum}</td><td class="wide">{compared}</td></tr>'
