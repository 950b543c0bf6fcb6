"""A session as Markdown, for notes, issues and reviews.

The rule: no text of a message gets out of the place that it is given. Prose is in a quotation, whose end ends all
that was opened in it, and only if a parser finds no HTML, pictures, link definitions or odd links in it; everything
else is in a fence that is longer than any run of backticks inside.
"""

import html
import json
import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

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

_SPECIAL = compile_late(r"([\\`*_\[\]#!|<>~&])")
_BACKTICKS = compile_late(r"`+")
_NOT_TAME = frozenset({"html_block", "html_inline", "image"})
_HARMLESS_LINK = compile_late(r"(?:https?://|mailto:|#|[\w./-]+$)", re.IGNORECASE)


def markdown_text(transcript: Transcript) -> str:
    """Return the whole file."""
    return "\n\n".join(_Writer(transcript).blocks()) + "\n"


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._results = results_by_call(transcript.messages)
        self._parser = _EveryLink("commonmark")

    def blocks(self) -> Iterator[str]:
        yield f"# {_escaped(title_of(self._transcript))}"
        yield _escaped(INTRODUCTION)
        yield "\n".join(f"- {name}: {_escaped(text)}" for name, text in facts_of(self._transcript))
        for message in self._transcript.parts:
            match message:
                case UserMessage(content=content):
                    yield "## User"
                    yield from (self._shown(block) for block in content)
                case AssistantMessage():
                    yield from self._reply(message)
                case SystemReminder(text=text):
                    yield from _folded(f"panpan told the model ({message.cause or 'a notice'})", fence_code(text))
                case Compaction():
                    title, details = compaction_told(message)
                    texts = filter(None, (details, *(reminder.text for reminder in message.added)))
                    yield from _folded(title, *map(fence_code, texts))
                case ToolResultMessage():
                    pass  # shown with its call

    def _reply(self, reply: AssistantMessage) -> Iterator[str]:
        yield f"## Assistant{' (interrupted)' if reply.stop_reason == 'interrupted' else ''}"
        for block in reply.content:
            match block:
                case TextBlock():
                    yield self._shown(block)
                case ThinkingBlock(thinking=thinking):
                    yield from _folded("Thinking", fence_code(thinking))
                case RedactedThinkingBlock():
                    yield "*(thinking that the provider keeps to itself)*"
                case ToolUseBlock():
                    yield from self._call(block)

    def _call(self, use: ToolUseBlock) -> Iterator[str]:
        result = self._results.get(use.id)
        arguments = fence_code(json.dumps(use.input, ensure_ascii=False, indent=2), "json")
        yield from _folded(f"{call_title(use)} — {outcome_of(result).mark}", arguments, *_result(result))

    def _shown(self, block: TextBlock | ImageBlock | DocumentBlock) -> str:
        if not isinstance(block, TextBlock):
            return _escaped(attachment(block))
        text = clean_for_terminal(block.text).strip("\n")
        return quote_markdown(text) if self._is_tame(text) else fence_code(text)

    def _is_tame(self, text: str) -> bool:
        env: dict[str, object] = {}
        blocks = self._parser.parse(quote_markdown(text), env)
        tokens = [token for block in blocks for token in (block, *(block.children or ()))]
        links = [str(token.attrs["href"]) for token in tokens if token.type == "link_open"]
        return (
            not env.get("references")
            and _NOT_TAME.isdisjoint(token.type for token in tokens)
            and all(map(_HARMLESS_LINK.match, links))
        )


class _EveryLink(MarkdownIt):
    """Finds also the links that markdown-it itself would not make, since other readers may make them."""

    def validateLink(self, url: str) -> bool:  # noqa: N802, the name is markdown-it's
        return True


def quote_markdown(text: str) -> str:
    """Return text as a quotation."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def fence_code(text: str, language: str = "text") -> str:
    """Return text as a block of code that nothing in it can end."""
    text = clean_for_terminal(text).strip("\n")
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _result(result: ToolResultMessage | None) -> Iterator[str]:
    if result is None:
        return
    if isinstance(result.display, DiffDisplay):
        yield from (fence_code(file.diff, "diff") for file in result.display.files if file.diff)
    for block in result.result.content:
        yield fence_code(block.text) if isinstance(block, TextBlock) else _escaped(attachment(block))


def _folded(title: str, *blocks: str) -> Iterator[str]:
    """Yield blocks that are shown when the reader asks for them."""
    line = " ".join(clean_for_terminal(title).split())
    yield f"<details>\n<summary>{html.escape(line)}</summary>"
    yield from blocks
    yield "</details>"


def _escaped(line: str) -> str:
    return _SPECIAL.sub(r"\\\1", line)
