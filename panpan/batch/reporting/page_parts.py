"""Parts that all reports share as HTML pages without scripts, which load nothing.

The rule: every text is escaped, and a page's own policy forbids the browser to run or load anything.
"""

from collections.abc import Iterable, Iterator
from html import escape

from panpan.system.text.terminal_text import clean_line

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
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


def page(title: str, body: Iterator[str], style: str = "") -> str:
    """Return a whole page.

    Args:
        title: For the browser's tab; it is escaped here.
        body: Markup of the page.
        style: Further rules of CSS.
    """
    return "\n".join((*_head(title, style), *body, "</main>\n</body>\n</html>")) + "\n"


def _head(title: str, style: str) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="referrer" content="no-referrer">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{shown(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n<main>"


def shown(text: str) -> str:
    """Return text of others as markup that shows it, on one line."""
    return escape(clean_line(text))


def pair(name: str, text: str, around: str = "") -> str:
    """Return a name and its value for a list of them, within a tag if one is given."""
    markup = f"<dt>{shown(name)}</dt><dd>{shown(text)}</dd>"
    return f"<{around}>{markup}</{around}>" if around else markup


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the figures for the top of a page."""
    return f'<dl class="tiles">{"".join(pair(*one, "div") for one in pairs)}</dl>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names with their values."""
    return f'<dl class="facts">{"".join(pair(*one) for one in pairs)}</dl>'
