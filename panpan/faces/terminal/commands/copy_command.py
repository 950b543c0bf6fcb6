"""`/copy`: copies the last answer, or one of its code blocks, to the clipboard."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from panpan.errors import ConfigError
from panpan.faces.terminal.commands.choice_commands import look_of
from panpan.faces.terminal.input.clipboard import put_into_clipboard
from panpan.session.command import Command, Terminal, say
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.messages import AssistantMessage

MAX_SEQUENCE_BYTES = 100_000
"""Most bytes of the text in OSC 52; terminals drop longer ones."""


async def _copy(terminal: Terminal, wanted: str) -> None:
    messages = reversed(terminal.session.conversation.messages)
    answer = next((one.text for one in messages if isinstance(one, AssistantMessage) and one.text.strip()), None)
    if answer is None:
        raise ConfigError("there is nothing to copy: the model has not answered in this session yet")
    text, name = chosen_part(clean_for_terminal(answer), wanted)  # as shown, without control characters
    ways = [f"by {Path(program).name}" for program in await put_into_clipboard(text, terminal.env)]
    sequence = b64encode(text.encode(errors="replace"))
    if (look := look_of(terminal)) is not None and len(sequence) <= MAX_SEQUENCE_BYTES:
        look.send(b"\x1b]52;c;" + sequence + b"\x07")
        ways.append("by your terminal, if it allows that (OSC 52)")
    if not ways:
        raise ConfigError("nothing takes it: install wl-copy, xclip or xsel, or run panpan without --plain")
    lines = text.rstrip("\n").count("\n") + 1
    say(terminal, f"copied {name}, {lines:,} line{'s' * (lines != 1)}: {' and '.join(ways)}")
    if (blocks := len(code_blocks(answer))) and not wanted:
        say(terminal, f"/copy N copies one of its code blocks alone, 1 to {blocks}", "dim")


def chosen_part(answer: str, wanted: str) -> tuple[str, str]:
    """Return the wanted part of an answer, all of it or a code block by its number from 1, and a name for it.

    Raises:
        ConfigError: There is no such code block.
    """
    if not wanted:
        return answer, "the last answer"
    blocks = code_blocks(answer)
    if not (wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted) <= len(blocks)):
        there = f"{len(blocks) or 'no'} code block{'s' * (len(blocks) != 1)}"
        raise ConfigError(f"the last answer has {there}; /copy copies all of it, /copy N the N-th block")
    return blocks[int(wanted) - 1], f"code block {int(wanted)} of {len(blocks)}"


def code_blocks(markdown: str) -> Sequence[str]:
    """Return the contents of the fenced code blocks of a text."""
    from markdown_it import MarkdownIt  # the first screen does not need it

    return [token.content for token in MarkdownIt().parse(markdown) if token.type == "fence"]


COPY_COMMANDS: Sequence[Command] = (
    Command(
        "copy",
        "Copy the last answer, or its N-th code block, to the clipboard",
        _copy,
        arguments="[N]",
        is_immediate=True,
        needs_terminal=True,
    ),
)
