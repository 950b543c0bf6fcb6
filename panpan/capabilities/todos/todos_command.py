"""/todos: what the model has set out to do."""

from collections.abc import Sequence

from panpan.capabilities.todos.todos import Todos
from panpan.errors import ConfigError
from panpan.session.command import Command, Terminal, say
from panpan.system.text.terminal_text import clean_line
from panpan.types.display import ChecklistDisplay, checklist_counts


async def _todos(terminal: Terminal, rest: str) -> None:
    if rest and rest.lower() != "clear":
        raise ConfigError(f"/todos shows the list, and /todos clear empties it; {clean_line(rest)[:40]} is neither")
    kept = terminal.session[Todos]
    todos = await kept.current()
    if not todos:
        say(terminal, "the model has no todos in this session")
        return
    if rest:
        await kept.clear()
        say(terminal, "the list of todos is empty; the model is told with its next request")
        return
    say(terminal, f"{checklist_counts(todos)}:", "strong")
    terminal.display(ChecklistDisplay(todos=tuple(todos)))


TODOS_COMMANDS: Sequence[Command] = (
    Command(
        "todos",
        "Show what the model has set out to do, or clear that",
        _todos,
        arguments="[clear]",
        is_immediate=True,
        offers=lambda session: ("clear",),
    ),
)
