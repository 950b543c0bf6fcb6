"""/config and /doctor: what panpan says of its settings and of the machine, and what is otherwise in this session.

Both run panpan beside the session, as the shell would, so that there is one answer to a question. What the session
knows better (its model, its mode, the terminal it is shown in) it tells itself.
"""

import json
import sys
from collections.abc import Mapping, Sequence

from anyio import to_thread

from panpan.config.keys import dotted, flatten
from panpan.config.locations import Locations
from panpan.config.settings import Settings
from panpan.config.sources import load_settings
from panpan.core.command import Command, Terminal
from panpan.errors import ConfigError, PanpanError
from panpan.faces.terminal.commands.layout import say_pairs
from panpan.faces.terminal.screen.canvas import say
from panpan.session.session import Session
from panpan.system.processes.process import capture
from panpan.system.text.terminal_text import clean_line

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
