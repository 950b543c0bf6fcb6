"""/memory: which rules files are in force."""

from collections.abc import Sequence
from functools import partial

from panpan.capabilities.project_context.collect import ContextPlaces, take_project_context
from panpan.capabilities.project_context.nested_memory import ToldRules, rules_told
from panpan.config.locations import Locations
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.system.files.canonical import user_home


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


MEMORY_COMMANDS: Sequence[Command] = (
    Command("memory", "Show which AGENTS.md and CLAUDE.md are in force", _memory, is_immediate=True),
)
