"""Permissions: the gate of each agent, questions about the sandbox, and files that become protected."""

import secrets
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import get_args

from anyio import to_thread

from panpan.core.hooks import Hook
from panpan.errors import ConfigError
from panpan.permissions.new_protected_places import NewProtectedPlaces
from panpan.permissions.sandbox_questions import SandboxQuestions
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command, Terminal, say
from panpan.session.context import SessionContext
from panpan.session.session import Session
from panpan.session.user_hooks import HooksOfUser
from panpan.system.text.terminal_text import clean_line
from panpan.types.permission import Opening, PermissionMode


class Permissions(Capability):
    """Lets no call run that the user did not allow."""

    name = "permissions"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        gate, outside = session.gate, session.settings.sandbox.outside
        for warning in gate.warnings:
            session.warn(warning)
        self._sandbox_questions = SandboxQuestions(outside, session.warn, can_ask=self._can_ask, keep=self._keep)
        aside = session.setup.locations.home / "put-aside" / secrets.token_hex(8)
        self._new_places = NewProtectedPlaces(aside, session.frontend.askers.user, session.warn)

    def _can_ask(self) -> bool:
        is_there = self.session.frontend.askers.permission is not None
        return is_there and self.session.gate.mode not in ("plan", "dontAsk")

    async def _keep(self, opening: Opening) -> None:
        """Keep what commands get from now on in the user's settings for this project."""
        gate = self.session.gate
        if opening.rule:
            await gate.remember(opening.rule)
        if gate.store is not None:
            key, texts = ("outside", opening.patterns) if opening.use == "off" else ("domains", opening.hosts)
            await to_thread.run_sync(gate.store.add, "sandbox", key, texts)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return agent.gate, self._sandbox_questions, self._new_places.for_agent()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        gate, sandbox = self.session.gate, self.session.tool_context.sandbox
        if gate.mode == "auto" and (trouble := await sandbox.find_trouble()):
            gate.mode = "default"
            self.session.warn(f"auto mode needs the sandbox: {trouble}; the session is in default mode")
        yield

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return PERMISSION_COMMANDS


MODES: Sequence[PermissionMode] = get_args(PermissionMode)


async def _permissions(terminal: Terminal, wanted: str) -> None:
    verb, _, rule = wanted.partition(" ")
    if verb == "remove":
        await _remove(terminal, rule.strip())
        return
    if wanted:
        mode = next((mode for mode in MODES if mode.lower() == wanted.lower()), None)
        if mode is None:
            raise ConfigError(f"unknown mode {clean_line(wanted)}; choose {', '.join(MODES)}")
        if mode == "auto":
            await terminal.session.agent.context.sandbox.find_trouble()
        _set_mode(terminal, mode)
        return
    say(terminal, f"Mode: {terminal.session.permission_mode}", "strong")
    rules = list(terminal.session.gate.rule_lines())
    for rule in rules or ["there are no rules; `always` in a question makes one, and so do the settings"]:
        say(terminal, f"  {rule}")
    say(terminal, f"/permissions MODE changes the mode: {', '.join(MODES)}", "dim")
    if terminal.session.gate.removable_rules():
        say(terminal, "/permissions remove RULE takes back what `always` allowed", "dim")


async def _remove(terminal: Terminal, rule: str) -> None:
    """Remove a rule; for those that cannot be removed here, say where they are set."""
    removal = await terminal.session.gate.remove_rule(rule)
    if removal.places:
        say(terminal, f"{rule} is removed from {' and '.join(removal.places)}")
    for place in removal.staying:
        say(terminal, f"{rule} stays ({place}): only what `always` allowed is removed here; change it there", "warn")
    if removal.places or removal.staying:
        return
    say(terminal, f"there is no rule {rule}" if rule else "/permissions remove RULE takes back what `always` allowed")
    rules = terminal.session.gate.removable_rules()
    say(terminal, "These can be removed:" if rules else "There is none that can be removed.", "strong")
    for removable in rules:
        say(terminal, f"  {removable}")


def _offered(session: Session) -> Sequence[str]:
    return [*MODES, *(f"remove {rule}" for rule in session.gate.removable_rules())]


async def _plan(terminal: Terminal, rest: str) -> None:
    _set_mode(terminal, "default" if terminal.session.permission_mode == "plan" else "plan")


def _set_mode(terminal: Terminal, mode: PermissionMode) -> None:
    terminal.session.set_permission_mode(mode)
    say(terminal, f"permission mode: {mode}{_MEANING[mode]}", "plan" if mode == "plan" else None)


_MEANING = {
    "default": "; what changes something is asked",
    "acceptEdits": "; edits in the workspace run without asking",
    "auto": "; edits and sandboxed commands run without asking",
    "plan": "; panpan looks and plans, and changes nothing",
    "dontAsk": "; what would be asked is refused",
    "bypassPermissions": "; nearly everything runs without asking",
}


async def _add_dir(terminal: Terminal, path: str) -> None:
    if not path:
        say(terminal, "/add-dir PATH adds a folder that tools may work in")
        return
    folder = terminal.session.folders.add(path)
    say(terminal, f"tools may work in {clean_line(str(folder))} until the session ends")
    if (hooks := terminal.session.find(HooksOfUser)) is not None:
        await hooks.tell("DirectoryAdded", "", {"directory": str(folder)})


PERMISSION_COMMANDS: Sequence[Command] = (
    Command(
        "permissions",
        "Show rules and mode, set the mode, or remove a rule",
        _permissions,
        arguments="[mode | remove rule]",
        completions=_offered,
        is_immediate=True,
    ),
    Command("plan", "Switch plan mode on or off", _plan, is_immediate=True),
    Command(
        "add-dir",
        "Let tools work in another folder, too",
        _add_dir,
        arguments="path",
        needs_arguments=True,
        is_immediate=True,
        needs_terminal=True,
    ),
)
