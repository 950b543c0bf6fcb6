"""Commands that only show something of this session or of the project."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from anyio import to_thread

from panpan.capabilities.project_context.collect import ContextPlaces, take_project_context
from panpan.capabilities.project_context.rules_told import ToldRules, rules_told
from panpan.config.locations import Locations
from panpan.core.command import Command, Terminal
from panpan.faces.terminal.commands.context_view import context_note, context_rows, used_line
from panpan.faces.terminal.commands.costs_view import budget_pairs, cost_pairs, together
from panpan.faces.terminal.commands.layout import say_pairs
from panpan.faces.terminal.screen.canvas import say
from panpan.session.context_usage import context_usage
from panpan.session.git_branch import git_branch
from panpan.session.session import Session
from panpan.session.session_costs import SessionCosts, session_costs
from panpan.system.files.home import user_home
from panpan.system.text.terminal_text import clean_line
from panpan.version import __version__


async def _context(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    usage = await session.context_usage()
    terminal.show(*context_rows(usage, terminal.width, terminal.theme))
    say(terminal, context_note(usage, is_kept_short=session.settings.compaction.enabled), "dim")


async def _cost(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    costs = _costs(session)
    if not costs.by_model:
        say(terminal, "no model has answered in this session yet, so it cost nothing")
        return
    say_pairs(terminal, [*cost_pairs(costs, terminal.waited_s), *budget_pairs(session.budget)])


def _costs(session: Session) -> SessionCosts:
    """Return what the session has cost, what was taken back and what its subagents did included."""
    costs, spent = session_costs(session.conversation.messages), session.budget.spent
    return replace(costs, by_model=spent.by_model, api_duration_s=spent.api_duration_s)


async def _status(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    info = session.info
    costs = _costs(session)
    usage = context_usage(session.conversation, session.context_window)
    places = Locations.find(info.cwd, terminal.env)
    branch = await to_thread.run_sync(git_branch, places.project_root)
    pairs = [
        ("Session", f"{info.id} {session.title or ''}".rstrip()),
        ("Folder", str(info.cwd)),
        ("Git branch", branch or "none"),
        ("Model", info.choice),
        ("Effort", session.effort or "what the model does by itself"),
        ("Key", info.key_source),
        ("Mode", session.permission_mode),
        ("Context", used_line(usage)),
        ("Cost", together(costs)),
        ("Log", str(session.log_path)),
        ("panpan", __version__),
    ]
    say_pairs(terminal, [(name, clean_line(text)) for name, text in pairs])


async def _memory(terminal: Terminal, rest: str) -> None:
    told = rules_told(terminal.session.conversation.messages)
    if told:
        say(terminal, "The model was told of these files, later ones win:", "strong")
    else:
        told = await _rules_to_come(terminal)
        if not told:
            say(terminal, "there is no AGENTS.md or CLAUDE.md for this folder; /init lets the model write one")
            return
        say(terminal, "The model is told of these files with the first message, later ones win:", "strong")
    say_pairs(terminal, [(rules.path, _of_rules(rules)) for rules in told])
    say(terminal, "Files of deeper folders follow when the model first touches something there.", "dim")


async def _rules_to_come(terminal: Terminal) -> Sequence[ToldRules]:
    """Return the files that a session which begins now would tell the model of."""
    cwd = terminal.session.info.cwd
    locations = Locations.find(cwd, terminal.env)
    withholds = partial(terminal.session.gate.keeps_from_context, root=cwd)
    places = ContextPlaces(cwd, locations.project_root, locations.home, user_home(), withholds=withholds)
    context = await take_project_context(places)
    for warning in context.warnings:
        say(terminal, warning, "warn")
    return rules_told([context.reminder])


def _of_rules(rules: ToldRules) -> str:
    origin = f", imported by {rules.imported_by}" if rules.imported_by else ""
    return f"{rules.chars:,} characters{origin}"


SHOW_COMMANDS: Sequence[Command] = (
    Command("context", "Show what fills the context window", _context, is_immediate=True),
    Command("cost", "Show tokens, money and time", _cost, aliases=("usage",), is_immediate=True),
    Command("status", "Show session, model, mode and version", _status, is_immediate=True),
    Command("memory", "Show which AGENTS.md and CLAUDE.md are in force", _memory, is_immediate=True),
)
