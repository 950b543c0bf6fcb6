"""A session as one HTML page that needs nothing else: no script, no network, styles and pictures inside.

The rule: every text is escaped, or rendered by a Markdown parser that knows no HTML and no pictures; and the page's own
policy forbids the browser to run or load anything.
"""

import json
from collections.abc import Iterator
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from panpan.session.export.transcript import (
    INTRODUCTION,
    Transcript,
    attachment,
    call_title,
    compaction_told,
    facts_of,
    outcome_of,
    results_by_call,
    title_of,
)
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import (
    DiffDisplay,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from panpan.types.messages import AssistantMessage, Compaction, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = compile_late(r"[A-Za-z0-9+/]*={0,2}")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; font-size: .85rem; }
dd { margin: 0; overflow-wrap: anywhere; }
article { border-top: 1px solid var(--line); padding: .5rem 0; overflow-wrap: anywhere; }
article > h2 { font-size: .85rem; margin: 0; opacity: .7; }
article.user > .text { border-left: 3px solid #48f; padding-left: .75rem; }
pre { background: var(--soft); padding: .5rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; }
pre.prose { background: none; padding: 0; font: inherit; }
code { font-family: ui-monospace, monospace; }
details { border: 1px solid var(--line); border-radius: 4px; padding: .25rem .5rem; margin: .5rem 0; }
summary { cursor: pointer; font-size: .9rem; }
.failed { color: #c22; }
.added { color: #070; background: #0a02; }
.removed { color: #a00; background: #f002; }
.hunk { color: #46a; }
img { max-width: 100%; }
table { border-collapse: collapse; }
td, th { border: 1px solid var(--line); padding: .1rem .5rem; }
@media (prefers-color-scheme: dark) {
  .failed, .removed { color: #f88; }
  .added { color: #8d8; }
  .hunk { color: #9bf; }
}
"""


def html_text(transcript: Transcript) -> str:
    """Return the whole page."""
    return "\n".join(_Writer(transcript).page()) + "\n"


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._results = results_by_call(transcript.messages)

    @cached_property
    def _markdown(self) -> "MarkdownIt":
        from markdown_it import MarkdownIt

        return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")

    def page(self) -> Iterator[str]:
        title = escape(title_of(self._transcript))
        yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
        yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        yield '<meta name="referrer" content="no-referrer">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>"
        yield f"<h1>{title}</h1>\n<p>{escape(INTRODUCTION)}</p>\n<dl>"
        for name, text in facts_of(self._transcript):
            yield f"<dt>{name}</dt><dd>{escape(text)}</dd>"
        yield "</dl>\n<main>"
        for message in self._transcript.parts:
            match message:
                case UserMessage(content=content):
                    yield '<article class="user"><h2>User</h2>'
                    yield from (f'<div class="text">{_shown(block)}</div>' for block in content)
                    yield "</article>"
                case AssistantMessage():
                    yield from self._reply(message)
                case SystemReminder(text=text):
                    yield from _folded(f"panpan told the model ({message.cause or 'a notice'})", _code(text))
                case Compaction():
                    title, details = compaction_told(message)
                    texts = filter(None, (details, *(reminder.text for reminder in message.added)))
                    yield from _folded(title, *map(_code, texts))
                case ToolResultMessage():
                    pass  # shown with its call
        yield "</main>\n</body>\n</html>"

    def _reply(self, reply: AssistantMessage) -> Iterator[str]:
        mark = " (interrupted)" if reply.stop_reason == "interrupted" else ""
        yield f'<article class="assistant"><h2>Assistant{mark}</h2>'
        for block in reply.content:
            match block:
                case TextBlock(text=text):
                    yield self._markdown.render(clean_for_terminal(text))
                case ThinkingBlock(thinking=thinking):
                    yield from _folded("Thinking", _prose(thinking))
                case RedactedThinkingBlock():
                    yield "<p><em>(thinking that the provider keeps to itself)</em></p>"
                case ToolUseBlock():
                    yield from self._call(block)
        yield "</article>"

    def _call(self, use: ToolUseBlock) -> Iterator[str]:
        result = self._results.get(use.id)
        outcome = outcome_of(result)
        arguments = _code(json.dumps(use.input, ensure_ascii=False, indent=2))
        title = f"{call_title(use)} — {outcome.mark}"
        yield from _folded(title, arguments, *_result(result), is_error=outcome.is_error)


def _result(result: ToolResultMessage | None) -> Iterator[str]:
    if result is None:
        return
    if isinstance(result.display, DiffDisplay):
        yield from (_coloured_diff(file.diff) for file in result.display.files if file.diff)
    for block in result.result.content:
        yield _code(block.text) if isinstance(block, TextBlock) else _shown(block)


def _shown(block: TextBlock | ImageBlock | DocumentBlock) -> str:
    match block:
        case TextBlock(text=text):
            return _prose(text)
        case ImageBlock(source=source) if source.media_type in _PICTURES and _BASE64.fullmatch(source.data):
            return f'<img alt="a picture" src="data:{source.media_type};base64,{source.data}">'
        case _:
            return f"<p>{escape(attachment(block))}</p>"


def _coloured_diff(diff: str) -> str:
    lines = clean_for_terminal(diff).strip("\n").split("\n")
    return f"<pre><code>{chr(10).join(map(_coloured_line, lines))}</code></pre>"


def _coloured_line(line: str) -> str:
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    kind = "hunk" if line.startswith(("+++ ", "--- ")) else kinds.get(line[:1])
    return f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line)


def _folded(title: str, *pieces: str, is_error: bool = False) -> Iterator[str]:
    """Yield pieces that are shown when the reader asks for them."""
    kind = ' class="failed"' if is_error else ""
    yield f"<details><summary{kind}>{escape(' '.join(clean_for_terminal(title).split()))}</summary>"
    yield from pieces
    yield "</details>"


def _prose(text: str) -> str:
    return f'<pre class="prose">{_harmless(text)}</pre>'


def _code(text: str) -> str:
    return f"<pre><code>{_harmless(text)}</code></pre>"


def _harmless(text: str) -> str:
    return escape(clean_for_terminal(text).strip("\n"))
