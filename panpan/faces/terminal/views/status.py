"""Status line below the input: the built-in one, or the output of the user's command."""

import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.config.locations import Locations
from panpan.errors import ToolError
from panpan.faces.terminal.rendering.cells import RESET, cut, fitting
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import cost_in_short
from panpan.session.budget.spending import SessionCosts
from panpan.session.context_usage import used_tokens
from panpan.session.session import Session
from panpan.shell_analysis.working_directory import find_shell
from panpan.system.environment import user_environment
from panpan.system.git.git_places import git_branch
from panpan.system.processes.process import Captured, capture
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.content import TextDisplay
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.permission import PermissionMode
from panpan.types.role import Role
from panpan.version import __version__

# Parts of the built-in line: mode, vi mode, model, context usage, folder, cost, branch, items of features, a hint.
#
# The rule: it is never wider than the terminal. If there is little room, whole parts are left out, the least
# important first. Only the name of the model is cut, and the last part that is left. The mode is left out last, the
# model before it.

_SEPARATOR = " · "
_LEAST_MODEL = 12
"""Fewest cells in which the name of a model is recognizable."""
_NEARLY_FULL_PERCENT = 80
_FULL_PERCENT = 95

_MODES: Mapping[PermissionMode, tuple[str, Role]] = {
    "default": ("default", "dim"),
    "acceptEdits": ("accept edits", "accent"),
    "auto": ("auto", "accent"),
    "plan": ("plan mode", "plan"),
    "dontAsk": ("don't ask", "accent"),
    "bypassPermissions": ("bypass permissions", "bad"),
}


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The model and its context usage."""

    name: str = ""
    thinks: bool = False
    """True if thinking is on."""
    context_used_percent: float | None = None
    """From 0 to 100."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of the session."""

    usd: float
    is_estimated: bool = False
    """True if a part of it is an estimate."""


@dataclass(frozen=True, slots=True)
class StatusState:
    """Facts for the line; those that are empty or None are left out."""

    mode: PermissionMode = "default"
    vi_mode: str = ""
    """vi mode, such as "NORMAL"; empty if the vi keys are off."""
    model: ModelStatus = ModelStatus()
    cost: Cost | None = None
    folder: str = ""
    """Working directory of commands and completion; empty if it is the workspace itself."""
    branch: str = ""
    of_features: Sequence[TextDisplay] = ()
    """Items of features, such as the number of running tasks."""
    hint: str = ""
    """A few words about a key."""


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    role: Role
    rank: int
    """Order of removal: the part with the highest rank is left out first."""


def beside_mode(line: str, mode: PermissionMode, width: int, theme: Theme) -> str:
    """Return the user's own line, preceded by the mode unless it is the default."""
    if mode == "default":
        return cut(line, width)
    text, role = _MODES[mode]
    return cut(f"{theme.paint(role, text)}{theme.paint('dim', _SEPARATOR)}{line}", width)


def status_line(state: StatusState, width: int, theme: Theme) -> str:
    """Return the line, with SGR sequences, at most `width` cells wide."""
    parts = _parts(state, width)
    kept = fitting([(part.text, part.rank) for part in parts], width, _SEPARATOR)
    if not kept:
        first = min(parts, key=lambda part: part.rank)
        return theme.paint(first.role, cut(first.text, width))
    return theme.paint("dim", _SEPARATOR).join(theme.paint(parts[at].role, parts[at].text) for at in kept)


def _parts(state: StatusState, width: int) -> list[_Part]:
    mode, role = _MODES[state.mode]
    percent = state.model.context_used_percent
    context = "" if percent is None else f"{percent:.0f}% context"
    parts = [_Part(mode, role, 0)]
    if state.vi_mode:
        parts.append(_Part(state.vi_mode, "accent", 3))
    if state.model.name:
        parts.append(_Part(_short_model(clean_line(state.model.name), mode, context, width), "dim", 1))
    if state.model.thinks:
        parts.append(_Part("thinking", "dim", 5))
    if percent is not None:
        parts.append(_Part(context, _fullness(percent), 2))
    if state.folder:
        parts.append(_Part(f"in {clean_line(state.folder)}", "accent", 3))
    if state.cost is not None:
        shown = cost_in_short(state.cost.usd, is_estimated=state.cost.is_estimated, decimals=2)
        parts.append(_Part(shown, "dim", 6))
    if state.branch:
        parts.append(_Part(clean_line(state.branch), "dim", 7))
    parts += [
        _Part(words, item.spans[0].role or "dim", 4) for item in state.of_features if (words := clean_line(item.text))
    ]
    if state.hint:
        parts.append(_Part(clean_line(state.hint), "dim", 8))
    return parts


def _short_model(model: str, mode: str, context: str, width: int) -> str:
    """Return the name of the model, cut to fit beside the mode, and beside the context if that leaves enough room."""
    room = width - cell_width(mode) - len(_SEPARATOR)
    beside_context = room - cell_width(context) - len(_SEPARATOR) if context else room
    return cut(model, beside_context if beside_context >= min(cell_width(model), _LEAST_MODEL) else max(room, 1))


def _fullness(percent: float) -> Role:
    if percent >= _FULL_PERCENT:
        return "bad"
    return "warn" if percent >= _NEARLY_FULL_PERCENT else "dim"


# Status line from a command of the user: it gets JSON on standard input, and its first line of output is shown.
#
# The rule: nothing waits for it. It runs at most every 0.3 s and for a second at most, one at a time. Colours are the
# only sequences that it may use. While it fails, the built-in line is shown.

PAUSE_S = 0.3
TIMEOUT_S = 1.0
_MAX_OUTPUT_BYTES = 100_000
_MAX_LINE_CHARS = 2_000
# A program of ours has empty input (`system/processes/process.py`), so the shell opens the file with the JSON itself.
_SCRIPT = 'exec <"$1" && eval "$2"'
_SGR = compile_late(r"(\x1b\[[0-9]{0,3}(?:[;:][0-9]{0,3}){0,15}m)")


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """Facts for the command that the built-in line does not show."""

    session_id: str
    transcript_path: str
    cwd: str
    project_dir: str
    costs: SessionCosts
    output_style: str = "default"
    context_window: int | None = None
    """Size in tokens."""
    context_tokens: int | None = None
    """Used tokens of it."""


def status_json(state: StatusState, facts: SessionFacts) -> str:
    """Return the command's input, in the same shape as other agents use."""
    told: dict[str, object] = {
        "hook_event_name": "Status",
        "session_id": facts.session_id,
        "transcript_path": facts.transcript_path,
        "cwd": facts.cwd,
        "model": {"id": state.model.name, "display_name": state.model.name},
        "workspace": {"current_dir": facts.cwd, "project_dir": facts.project_dir},
        "version": __version__,
        "output_style": {"name": facts.output_style},
        "permission_mode": state.mode,
        "cost": {
            "total_cost_usd": state.cost.usd if state.cost is not None else None,
            "total_duration_ms": round(facts.costs.duration_s * 1000),
            "total_api_duration_ms": round(facts.costs.api_duration_s * 1000),
            "total_lines_added": facts.costs.lines_added,
            "total_lines_removed": facts.costs.lines_removed,
        },
        "context_window": {
            "context_window_size": facts.context_window,
            "used_tokens": facts.context_tokens,
            "used_percentage": state.model.context_used_percent,
        },
    }
    if state.vi_mode:
        told["vim"] = {"mode": state.vi_mode}
    return json.dumps(told)


class UserStatusLine:
    """Runs the command after changes. `run` it in a task.

    Args:
        command: The user's command; never one from a file of the project.
        cwd: Folder to run in.
        env: The user's environment; keys are left out of the command's.
        changed: Called when there is a new line.
        warn: Gets the reason why the command's line is not shown, once.
        timeout_s: Seconds after which the command is stopped.
        clock: Monotonic clock in seconds.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        command: str,
        cwd: Path,
        env: Mapping[str, str],
        *,
        changed: Callable[[], None],
        warn: Callable[[str], None],
        timeout_s: float = TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._command = command
        self._cwd = cwd
        self._env = _environment(env)
        self._changed = changed
        self._warn = warn
        self._timeout_s = timeout_s
        self._clock = clock
        self._sleep = sleep
        self._line: str | None = None
        self._told = ""
        self._has_news = anyio.Event()
        self._has_warned = False

    def line(self, width: int) -> str | None:
        """Return the newest line, at most `width` cells wide; None if there is none and the built-in line is shown."""
        return None if self._line is None else cut(self._line, width)

    def tell(self, told: str) -> None:
        """Set the command's input (`status_json`); run the command again if it has changed."""
        if told != self._told:
            self._told = told
            self._has_news.set()

    async def run(self) -> None:
        """Run the command after each change, until cancelled."""
        try:
            file = await to_thread.run_sync(_new_file)
        except OSError as exc:
            self._note(f"cannot be given anything to read ({exc.strerror})")
            return
        try:
            while True:
                await self._has_news.wait()
                self._has_news = anyio.Event()
                began_s = self._clock()
                line = await self._next_line(file)
                if line != self._line:
                    self._line = line
                    self._changed()
                await self._sleep(max(0.0, PAUSE_S - (self._clock() - began_s)))
        finally:
            with suppress(OSError):
                file.unlink()

    async def _next_line(self, file: Path) -> str | None:
        try:
            await anyio.Path(file).write_text(self._told, encoding="utf-8")
            captured = await capture(
                [find_shell(), "-c", _SCRIPT, "panpan-status-line", str(file), self._command],
                cwd=self._cwd,
                env=self._env,
                timeout_s=self._timeout_s,
                max_bytes=_MAX_OUTPUT_BYTES,
            )
        except (ToolError, OSError) as exc:
            self._note(f"cannot be run ({exc})")
            return None
        if problem := self._problem(captured):
            self._note(problem)
            return None
        return coloured_line(captured.stdout.decode(errors="replace"))

    def _problem(self, captured: Captured) -> str:
        if captured.timed_out:
            return f"took more than {self._timeout_s:g} s"
        if captured.is_truncated:
            return f"printed more than {_MAX_OUTPUT_BYTES:,} bytes"
        if captured.exit_code:
            said = clean_for_terminal(captured.stderr.decode(errors="replace")).strip().split("\n")[-1][:200]
            return f"ended with exit code {captured.exit_code}{f' ({said})' if said else ''}"
        return ""

    def _note(self, reason: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"the command of ui.status_line {reason}; panpan's own status line is shown")


def _new_file() -> Path:
    fd, name = tempfile.mkstemp(".json", "panpan-status-")
    os.close(fd)
    return Path(name)


def coloured_line(output: str) -> str:
    """Return the first line of a command's output, without escape sequences other than colours."""
    first = output.split("\n", 1)[0][:_MAX_LINE_CHARS]
    pieces = _SGR.split(first)
    # the pieces at odd indexes are colours; the others hold no whole sequence, and lose their control characters
    line = "".join(
        piece if index % 2 else clean_for_terminal(piece).replace("\n", " ").replace("\t", " ")
        for index, piece in enumerate(pieces)
    )
    return f"{line}{RESET}" if len(pieces) > 1 else line


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the command's environment: without API keys, but with the variables that describe the terminal."""
    kept = user_environment(env)
    kept.pop("NO_COLOR", None)
    return kept | {name: env[name] for name in ("TERM", "NO_COLOR", "COLORTERM") if name in env}


class StatusView:
    """Shows the facts of a session; `warn` gets the reason if the user's own line is not shown."""

    def __init__(
        self,
        session: Session,
        env: Mapping[str, str],
        vi_mode: Callable[[], str],
        changed: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self._session = session
        self._env = env
        self._vi_mode = vi_mode
        self._costs = SessionCosts()
        self._counted = 0
        self._compactions = 0
        self._tokens = 0
        self._branch = ""
        command = session.settings.ui.status_line
        self._own = UserStatusLine(command, session.info.cwd, env, changed=changed, warn=warn) if command else None
        self._look()

    async def run(self) -> None:
        if self._own is not None:
            await self._own.run()

    def turn_ended(self) -> None:
        """Update the facts that a turn may have changed, such as the branch."""
        self._look()

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        state = self._state()
        if self._own is not None:
            self._own.tell(status_json(state, self._facts()))
            if (line := self._own.line(width)) is not None:
                return [beside_mode(line, state.mode, width, theme)]
        return [status_line(state, width, theme)]

    def _look(self) -> None:
        self._branch = git_branch(self._session.agent.context.paths.root)

    def _folder(self) -> str:
        """Return the working directory of commands for display; empty if it is the workspace."""
        paths = self._session.agent.context.paths
        if paths.cwd == paths.root:
            return ""
        if paths.cwd.is_relative_to(paths.root):
            return f"./{paths.cwd.relative_to(paths.root)}"
        return Locations.find(paths.root, self._env).shown(paths.cwd)

    def _state(self) -> StatusState:
        conversation = self._session.conversation
        messages = conversation.messages
        if len(conversation.compactions) != self._compactions:
            self._compactions = len(conversation.compactions)
            self._tokens = used_tokens(conversation)
        if len(messages) != self._counted:
            for message in messages[self._counted :]:
                self._costs.add(message)
            self._counted = len(messages)
            self._tokens = used_tokens(self._session.conversation)
        window, budget = self._session.context_window, self._session.budget
        return StatusState(
            mode=self._session.permission_mode,
            vi_mode=self._vi_mode(),
            model=ModelStatus(
                self._session.model,
                self._session.thinks,
                100 * self._tokens / window if window and messages else None,
            ),
            cost=Cost(budget.known_usd, budget.is_estimated) if budget.known_usd else None,
            folder=self._folder(),
            branch=self._branch,
            of_features=[item for item in self._session.capabilities.status() if isinstance(item, TextDisplay)],
            hint="shift+tab mode · ? shortcuts" if not messages else "",
        )

    def _facts(self) -> SessionFacts:
        session = self._session
        return SessionFacts(
            session_id=session.info.id,
            transcript_path=str(session.log_path),
            cwd=str(session.agent.context.paths.cwd),
            project_dir=str(session.info.cwd),
            output_style=str(session.capabilities.described().get("output_style", lambda: "default")()),
            costs=replace(self._costs, api_duration_s=session.budget.spent.api_duration_s),
            context_window=session.context_window,
            context_tokens=self._tokens,
        )
