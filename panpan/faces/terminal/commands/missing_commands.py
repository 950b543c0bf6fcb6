"""Commands that people know from other agents and whose service is not there yet: each says so and does nothing."""

from collections.abc import Sequence

from panpan.core.command import Command, Terminal
from panpan.faces.terminal.screen.canvas import say


def _missing(name: str, help_: str, why: str) -> Command:
    async def tell(terminal: Terminal, rest: str) -> None:
        say(terminal, f"/{name} is not there yet: {why}")

    return Command(name, help_, tell, is_immediate=True, is_missing=True)


MISSING_COMMANDS: Sequence[Command] = (
    _missing("mcp", "Show the MCP servers", "panpan cannot talk to MCP servers"),
    _missing("hooks", "Show the hooks", "panpan runs no hooks of yours"),
)
