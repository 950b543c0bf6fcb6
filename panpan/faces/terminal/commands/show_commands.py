"""Commands that only show something: of this session, the project, the settings or the machine."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from anyio import to_thread

from panpan.capabilities.project_context.collect import ContextPlaces, take_project_context
from panpan.capabilities.project_context.rules_told import ToldRules, rules_told
from panpan.config.keys import dotted, flatten
from panpan.config.locations import Locations
from panpan.config.settings import Settings
from panpan.config.sources import load_settings
from panpan.errors import ConfigError, PanpanError
from panpan.faces.terminal.commands.usage_views import (
    budget_pairs,
    context_note,
    context_shapes,
    cost_pairs,
    together,
    used_line,
)
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.session.context_usage import context_usage
from panpan.session.git_branch import git_branch
from panpan.session.session import Session
from panpan.session.session_costs import SessionCosts, session_costs
from panpan.system.files.canonical import user_home
from panpan.system.processes.process import capture
from panpan.system.text.terminal_text import clean_line
from panpan.version import __version__


async def _context(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    usage = await session.context_usage()
    terminal.display(*context_shapes(usage, terminal.width))
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


# /config and /doctor: what panpan says of its settings and of the machine, and what is otherwise in this session.
#
# Both run panpan beside the session, as the shell would, so that there is one answer to a question. What the session
# knows better (its model, its mode, the terminal it is shown in) it tells itself.

CHILD_TIMEOUT_S = 60.0
MAX_CHILD_BYTES = 500_000


async def _config(terminal: Terminal, rest: str) -> None:
    say(terminal, "A new panpan here would have:", "strong")
    for text in await _panpan_says(terminal, "config", "show", "--show-origin"):
        if text:
            say(terminal, text)
    say(terminal, "\nThis session has:", "strong")
    pairs = await to_thread.run_sync(_of_session, terminal.session, terminal.env)
    say_pairs(terminal, [(name, clean_line(text)) for name, text in pairs])


def _of_session(session: Session, env: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Return what commands and keys change, and what else is not as it would be in a new session."""
    places = Locations.find(session.info.cwd, env)
    try:
        new = _texts(load_settings(places.project_root, env, {}, places).settings)
    except ConfigError:  # which was said above
        new = {}
    now = {
        **_texts(session.settings),
        "model": session.info.choice,
        "permission.mode": session.permission_mode,
        "permission.allow": ", ".join(dict.fromkeys(rule.text for rule in session.gate.rules.allow)) or "none",
        "effort": session.effort or "not set",
        "thinking": str(session.thinks).lower(),
    }
    always = ("model", "permission.mode", "permission.allow", "effort", "thinking")
    others = [key for key in now if key not in always and new and now[key] != new.get(key)]
    return [(key, now[key]) for key in (*always, *others)]


def _texts(settings: Settings) -> dict[str, str]:
    """Return each setting as a text; a secret is stars."""
    return {dotted(path): _text(value) for path, value in flatten(settings)}


def _text(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _doctor(terminal: Terminal, rest: str) -> None:
    say(terminal, "looking …", "dim")
    printed, failure = await _panpan_says(terminal, "doctor", "--json")
    try:
        found = json.loads(printed)
    except ValueError as error:
        raise PanpanError(f"`panpan doctor` failed: {failure or printed}") from error
    info = terminal.session.info
    better = {
        "terminal": f"{terminal.env.get('TERM') or 'TERM not set'}, {terminal.width} cells wide",
        "model": info.choice,
        "key": info.key_source,
    }
    checks = [
        {**check, "status": "ok", "found": better[check["name"]], "advice": ""} if check["name"] in better else check
        for check in found["checks"]
    ]
    say_pairs(terminal, [(check["name"], _line(check)) for check in checks])
    is_broken = any(check["status"] == "broken" for check in checks)
    say(
        terminal,
        f"\n{found['verdict'] if is_broken else f'panpan is ready; this session asks {info.choice}'}",
        "strong",
    )


def _line(check: Mapping[str, str]) -> str:
    status = "" if check["status"] == "ok" else check["status"]
    return clean_line(": ".join(filter(None, (status, check["found"], check["advice"]))))


async def _panpan_says(terminal: Terminal, *arguments: str) -> tuple[str, str]:
    """Run a command of panpan's own beside the session; return what it prints, and what it says of failures."""
    # -P: a module of that name in the folder must not be taken for one of ours. The environment is the user's own,
    # keys and all, or the answer would be that of another panpan.
    command = [sys.executable, "-P", "-m", "panpan", *arguments]
    env = {**terminal.env, "NO_COLOR": "1", "COLUMNS": str(terminal.width), "PYTHONUNBUFFERED": "1"}
    cwd = terminal.session.info.cwd
    ended = await capture(command, cwd=cwd, env=env, timeout_s=CHILD_TIMEOUT_S, max_bytes=MAX_CHILD_BYTES)
    if ended.timed_out:
        raise PanpanError(f"`panpan {' '.join(arguments)}` did not end within {CHILD_TIMEOUT_S:.0f} s and was stopped")
    return ended.stdout.decode(errors="replace").rstrip(), ended.stderr.decode(errors="replace").rstrip()


PANPAN_COMMANDS: Sequence[Command] = (
    Command("config", "Show the settings and where each comes from", _config, is_immediate=True),
    Command("doctor", "Show what panpan finds on this machine", _doctor, is_immediate=True),
)
