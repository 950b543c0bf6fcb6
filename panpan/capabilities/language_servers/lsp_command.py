"""/lsp: which language servers are there, and what each of them does at the moment."""

from collections.abc import Sequence

from anyio import to_thread

from panpan.capabilities.language_servers.language_servers import LanguageServers, ServerState
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.system.text.terminal_text import clean_line


async def _lsp(terminal: Terminal, rest: str) -> None:
    servers = terminal.session[LanguageServers]
    states = await to_thread.run_sync(lambda: servers.states)
    there = [state for state in states if state.program]
    missing = [state.name for state in states if not state.program]
    if there:
        say_pairs(terminal, [(clean_line(state.name), _told(state)) for state in there])
    else:
        say(terminal, "no language server is installed that panpan knows, or they are switched off")
    if any("not trusted" in state.state for state in there):
        say(terminal, "`panpan trust add`, in a shell, trusts the project, and lets them start.", "dim")
    if missing:
        say(terminal, f"Not installed: {clean_line(', '.join(missing))}", "dim")


def _told(state: ServerState) -> str:
    where = f"{state.program}, for {state.root}" if state.root is not None else state.program
    return f"{clean_line(state.state)}\n{clean_line(where)}"


LSP_COMMANDS: Sequence[Command] = (Command("lsp", "Show the language servers", _lsp, is_immediate=True),)
"""The commands of language servers."""
