"""/compact: what the model is sent of the conversation becomes shorter, or what it was before."""

from collections.abc import Sequence

from anyio import get_cancelled_exc_class

from panpan.capabilities.compaction.capability import CompactionCapability
from panpan.errors import NothingToCompactError
from panpan.session.command import Command, Terminal, say
from panpan.session.in_words import compaction_lines
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import Compaction

UNDO = "undo"


async def _compact(terminal: Terminal, rest: str) -> None:
    compacting = terminal.session[CompactionCapability]
    if rest.lower() == UNDO:
        _show(terminal, compacting.undo())
        return
    say(terminal, "making the conversation shorter; this takes a moment and can be interrupted", "dim")
    compaction: Compaction | None = None
    try:
        compaction = await compacting.compact(rest)
    except get_cancelled_exc_class():
        _say_interrupted(terminal)
        raise
    except NothingToCompactError as error:
        say(terminal, str(error))
        return
    if compaction is None:
        _say_interrupted(terminal)
    else:
        _show(terminal, compaction)


def _say_interrupted(terminal: Terminal) -> None:
    say(terminal, "[Interrupted] the conversation is as it was", "warn")


def _show(terminal: Terminal, compaction: Compaction) -> None:
    first, *others = compaction_lines(compaction)
    say(terminal, clean_line(first))
    for line in others:
        say(terminal, f"  {clean_line(line)}", "dim")


COMPACT_COMMANDS: Sequence[Command] = (
    Command(
        "compact",
        "Make what the model is sent of the conversation shorter; undo takes it back",
        _compact,
        arguments="[what the summary shall heed | undo]",
    ),
)
