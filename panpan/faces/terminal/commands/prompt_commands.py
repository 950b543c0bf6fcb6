"""Commands that are prompts of our own: the model does the work."""

from collections.abc import Sequence
from pathlib import Path

from panpan.core.command import Command, Terminal

_FOLDER = Path(__file__).parent


async def _init(terminal: Terminal, rest: str) -> None:
    terminal.submit(_prompt("init", rest))


async def _review(terminal: Terminal, rest: str) -> None:
    terminal.submit(_prompt("review", rest))


def _prompt(name: str, wish: str) -> str:
    """Return one of our prompts, with what the user wants besides."""
    prompt = (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
    return f"{prompt}\n\nThe user adds: {wish}" if wish else prompt


PROMPT_COMMANDS: Sequence[Command] = (
    Command(
        "init", "Let the model look around and write AGENTS.md", _init, arguments="[what matters]", is_immediate=True
    ),
    Command(
        "review", "Let the model review what is not committed", _review, arguments="[what matters]", is_immediate=True
    ),
)
