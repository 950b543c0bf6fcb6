"""Choices that an editor shows for a session: modes, model, effort, thinking, and slash commands."""

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    UnstructuredCommandInput,
)
from anyio import to_thread

from panpan.faces.acp.connection import invalid
from panpan.hub.choices import EFFORTS, NO_EFFORT, OfferedModel, models_for, usable_modes
from panpan.session.models import SessionModels
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_line
from panpan.types.llm import Effort
from panpan.types.permission import PermissionMode, is_permission_mode

if TYPE_CHECKING:
    from panpan.faces.session_commands import SessionCommands

ConfigOption: TypeAlias = SessionConfigOptionSelect | SessionConfigOptionBoolean

_MODE, _MODEL, _EFFORT, _THINKING = "mode", "model", "effort", "thinking"
_ON, _OFF = "on", "off"
_NAMES: dict[PermissionMode, tuple[str, str]] = {
    "default": ("Ask", "Ask before changes"),
    "acceptEdits": ("Accept edits", "Edit files of the workspace without asking"),
    "auto": ("Auto", "Edit files and run commands in the sandbox without asking"),
    "plan": ("Plan", "Look and plan; change nothing"),
    "dontAsk": ("Don't ask", "Refuse what would be asked"),
    "bypassPermissions": ("Bypass permissions", "Run nearly everything without asking"),
}


class SessionChoices:
    """Choices that the user has in a session.

    Args:
        session: The session.
        commands: Its slash commands.
        has_booleans: True if the editor shows options that are on or off.
    """

    def __init__(self, session: Session, commands: "SessionCommands", *, has_booleans: bool) -> None:
        self._session = session
        self._commands = commands
        self._has_booleans = has_booleans
        self._models: Sequence[OfferedModel] = ()

    async def load(self) -> None:
        """Find out which models there are, without a request to any."""
        session, of_session = self._session, self._session.find(SessionModels)
        await session.agent.context.sandbox.find_trouble()
        if of_session is not None:
            kinds, keys = of_session.setup.kinds, of_session.setup.loaded.keys
            find = partial(models_for, session.settings, os.environ, kinds, keys)
            self._models = await to_thread.run_sync(find)

    @property
    def modes(self) -> SessionModeState:
        now = self._session.permission_mode
        return SessionModeState(
            current_mode_id=now,
            available_modes=[
                SessionMode(id=mode, name=_NAMES[mode][0], description=_NAMES[mode][1]) for mode in self._modes
            ],
        )

    @property
    def _modes(self) -> Sequence[PermissionMode]:
        """Modes that the keys of a terminal switch to, and the present one; no editor gets to a looser one."""
        return list(dict.fromkeys([*usable_modes(self._session), self._session.permission_mode]))

    @property
    def options(self) -> Sequence[ConfigOption]:
        """All options with their present values."""
        session = self._session
        modes = self.modes
        return [
            _select(
                _MODE,
                "Mode",
                "mode",
                session.permission_mode,
                [_option(mode.id, mode.name, mode.description or "") for mode in modes.available_modes],
            ),
            _select(_MODEL, "Model", "model", self._model, self._model_options),
            _select(
                _EFFORT,
                "Effort",
                "thought_level",
                session.effort or NO_EFFORT,
                [_option(one, f"{one.capitalize()} effort", "") for one in EFFORTS],
            ),
            self._thinking,
        ]

    @property
    def _model(self) -> str:
        """The present model, as an option has it."""
        now, chosen = self._session.model, self._session.chosen_model
        names = {one.name for one in self._models}
        if chosen in names:
            return chosen or now
        return next((one.name for one in self._models if now in (one.model, one.name)), now)

    @property
    def _model_options(self) -> list[SessionConfigSelectOption]:
        found = [_option(one.name, clean_line(one.name), clean_line(one.detail)) for one in self._models]
        if all(one.value != self._model for one in found):
            found.insert(0, _option(self._model, clean_line(self._model), ""))
        return found

    @property
    def _thinking(self) -> ConfigOption:
        is_on, name = self._session.thinks, "Think first"
        if self._has_booleans:
            return SessionConfigOptionBoolean(
                id=_THINKING, name=name, category="thought_level", type="boolean", current_value=is_on
            )
        choices = [_option(_ON, "Thinking", ""), _option(_OFF, "No thinking", "")]  # some editors show no other words
        return _select(_THINKING, name, "thought_level", _ON if is_on else _OFF, choices)

    def set_mode(self, mode: str) -> None:
        """Change the mode.

        Raises:
            RequestError: It is none of those that are offered.
            ConfigError: It cannot be used here.
        """
        if not is_permission_mode(mode) or mode not in self._modes:
            raise invalid(f"there is no mode {clean_line(mode)[:40]!r} here; choose {', '.join(self._modes)}")
        self._session.set_permission_mode(mode)

    async def set_option(self, name: str, value: str | bool) -> None:
        """Change an option, from the next turn on.

        Raises:
            RequestError: There is no such option or value.
            ConfigError: It cannot be changed now, such as while a turn runs.
        """
        option = next((one for one in self.options if one.id == name), None)
        if option is None:
            raise invalid(
                f"there is no option {clean_line(name)[:40]!r}; choose {_MODE}, {_MODEL}, {_EFFORT}, {_THINKING}"
            )
        if isinstance(option, SessionConfigOptionSelect):
            values = [one.value for one in cast("list[SessionConfigSelectOption]", option.options)]
            if value not in values:
                raise invalid(f"{name} cannot be {clean_line(str(value))[:40]!r}; choose {', '.join(values)}")
        elif not isinstance(value, bool):
            raise invalid(f"{name} is true or false")
        if value != option.current_value:
            await self._set(name, value)

    async def _set(self, name: str, value: str | bool) -> None:
        session = self._session
        match name:
            case "mode":
                self.set_mode(str(value))
            case "model":
                await session.use_model(str(value))
            case "effort":
                await session.use_effort(None if value == NO_EFFORT else cast("Effort", value))
            case _:
                session.use_thinking(is_on=value in (True, _ON))

    @property
    def commands(self) -> AvailableCommandsUpdate:
        """The slash commands."""
        found = [
            AvailableCommand(
                name=one.name,
                description=one.help or one.name,
                input=AvailableCommandInput(root=UnstructuredCommandInput(hint=one.arguments))
                if one.arguments
                else None,
            )
            for one in self._commands.listed
        ]
        return AvailableCommandsUpdate(session_update="available_commands_update", available_commands=found)


def _hint(arguments: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(root=UnstructuredCommandInput(hint=arguments)) if arguments else None


def _option(value: str, name: str, description: str) -> SessionConfigSelectOption:
    return SessionConfigSelectOption(value=value, name=name, description=description or None)


def _select(
    name: str, label: str, category: Any, value: str, options: list[SessionConfigSelectOption]
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect(
        id=name, name=label, category=category, type="select", current_value=value, options=options
    )
