"""The context that all parts of a session are made with. It is whole before the first of them, so none is patched."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from panpan.config.known_secrets import provider_keys, without_provider_keys
from panpan.config.project_limits import limits_of
from panpan.config.settings import Settings, Table
from panpan.config.settings_writer import RuleFile
from panpan.config.sources import Loaded
from panpan.core.conversation import Conversation
from panpan.core.tool import SeenFiles, ToolContext
from panpan.errors import ConfigError
from panpan.permissions.folder_gate import ApprovingAsker, DenyingAsker, ModeAsker, gate_of, sandbox_of, workspace_paths
from panpan.session.agent import Agent, AgentPermissions, Identity, Transcript
from panpan.session.budget.budget import Budget
from panpan.session.budget.session_budget import count_earlier, session_budget
from panpan.session.capability import Capabilities, Capability, ServiceT
from panpan.session.frontend import Frontend, SessionConfig
from panpan.session.log.fold import UnfinishedCall
from panpan.session.log.record_kinds import PermissionModeRecord
from panpan.session.log.recorder import Recorder
from panpan.session.opening import OpenedLog, opening_mode
from panpan.session.setup import SessionSetup
from panpan.session.unfinished import UnfinishedCalls
from panpan.system.environment import child_environment, user_environment
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.system.web.network import WebNetwork
from panpan.types.messages import ToolResultMessage
from panpan.version import __version__

if TYPE_CHECKING:
    from panpan.session.budget.budget import TurnClock

SWITCHES = frozenset({"enabled", "required"})
"""Keys of a capability's table that say whether there is one, and not how it works."""

UNATTENDED_ROUNDS = 50
"""Most rounds of one turn if nobody watches, unless the settings say otherwise."""

ATTENDED_ROUNDS = 10_000
"""Most rounds of one turn if a user watches. The user is the limit; this only stops a loop without end."""


class SessionContext:
    """One session, for all that is part of it.

    Raises:
        ConfigError: A permission rule, or a folder of the settings, cannot be used.
    """

    def __init__(
        self, setup: SessionSetup, opened: OpenedLog, config: SessionConfig, frontend: Frontend, clock: "TurnClock"
    ) -> None:
        self.setup = setup
        self.opened = opened
        self.config = config
        self.frontend = frontend
        self.capabilities = Capabilities()
        """Capabilities that are made already."""
        transcript = _transcript(opened, frontend)
        self.tool_context = _tool_context(setup, opened.id)
        self.processes = [self.tool_context.processes]
        """Trees of processes that belong to the session, for what holds or ends them all."""
        self.gate = gate_of(
            setup.loaded,
            self.paths,
            mode=opening_mode(setup, opened.before, is_interactive=frontend.is_interactive, warn=frontend.warn),
            store=RuleFile(setup.locations.local_settings),
            auto_approve=frontend.auto_approve,
        )
        self.gate.subscribe(
            lambda mode: transcript.recorder.record_decision(PermissionModeRecord(permission_mode=mode).as_json())
        )
        asks = frontend.askers.permission or (frontend.stop.permission if frontend.stop is not None else None)
        ask = ModeAsker(
            lambda: self.gate.mode, ApprovingAsker(asks) if frontend.auto_approve else asks or DenyingAsker()
        )
        host = config.options.get("host")
        is_attended = frontend.is_interactive or (host is not None and host.limits_turns)
        budget = session_budget(setup.settings, clock, frontend.warn, transcript.recorder.record_decision)
        count_earlier(budget, opened.log.path, opened.before.spent)
        self.main = Agent(
            Identity(opened.id),
            transcript,
            AgentPermissions(self.gate, ask, budget, _max_rounds(setup.loaded, is_interactive=is_attended)),
            self.tool_context,
            UnfinishedCalls(
                opened.before.unfinished,
                ask=frontend.askers.user,
                outcome=frontend.unfinished,
                session_id=opened.forked_from or opened.id,
                is_fork=bool(opened.forked_from),
                known=self._recovered_result,
            ),
            frontend.warn,
        )

    def _recovered_result(self, call: UnfinishedCall) -> ToolResultMessage | None:
        results = (capability.recover_result(call) for capability in self.capabilities)
        return next((result for result in results if result is not None), None)

    @property
    def id(self) -> str:
        return self.opened.id

    @property
    def warn(self) -> Callable[[str], None]:
        return self.frontend.warn

    @property
    def settings(self) -> Settings:
        return self.setup.settings

    def settings_of(self, kind: type[Capability]) -> BaseModel:
        """Return the table of a capability, `[capabilities.NAME]`, as its model; ConfigError names a wrong key."""
        if issubclass(kind.settings_model, Table) and kind.settings_model.table:
            return self.settings[kind.settings_model]
        table = self.settings.capabilities.get(kind.name, {})
        given = {} if isinstance(table, bool) else {key: table[key] for key in table if key not in SWITCHES}
        try:
            return kind.settings_model.model_validate(given)
        except ValidationError as error:
            raise ConfigError(self._wrong_setting(kind.name, error)) from error

    def _wrong_setting(self, name: str, error: ValidationError) -> str:
        first = error.errors()[0]
        key = ".".join(map(str, ("capabilities", name, *first["loc"])))
        origin = self.setup.loaded.origins.get(key)
        return f"{origin.place if origin else 'settings'}: {key}: {first['msg'].lower()}"

    @property
    def conversation(self) -> Conversation:
        return self.main.conversation

    @property
    def recorder(self) -> Recorder:
        return self.main.transcript.recorder

    @property
    def budget(self) -> Budget:
        return self.main.budget

    @cached_property
    def paths(self) -> PathResolver:
        """Resolver of paths for panpan itself; that of `tool_context` also finds outputs of tools."""
        return workspace_paths(self.setup.cwd, self.setup.loaded, self.setup.locations)

    @property
    def product(self) -> str:
        return f"panpan/{__version__}"

    @property
    def user_agent(self) -> str:
        """Name that panpan gives web servers; the settings may say another."""
        return self.settings.web.user_agent or self.product

    @cached_property
    def network(self) -> WebNetwork:
        """Network of the tools."""
        web = self.settings.web
        return (self.config.options.get("network") or WebNetwork()).as_set_up(web.private_hosts, web.proxy_url)

    @property
    def unavailable(self) -> Sequence[str]:
        """Names of tools that a new session does not tell its model of; whole once all capabilities are made."""
        given = self.config.options.get("unavailable")
        return [name for one in self.capabilities for name in one.unavailable()] if given is None else given

    def find(self, kind: type[ServiceT]) -> ServiceT | None:
        """Return the object of a type that a capability before this one offers; None if there is none."""
        return self.capabilities.find(kind)


def _transcript(opened: OpenedLog, frontend: Frontend) -> Transcript:
    before = opened.before
    conversation = Conversation(messages=before.messages, compactions=before.compactions)
    conversation.side_calls.extend(before.side_calls)
    recorder = Recorder(conversation, opened.log, before.prefixes, panpan_version=__version__, warn=frontend.warn)
    if (note := opened.opened_note(is_interactive=frontend.is_interactive)) is not None:
        recorder.note_with_message(note)
    return Transcript(conversation, opened.log, recorder)


def _max_rounds(loaded: Loaded, *, is_interactive: bool) -> int:
    """Return the most rounds of a turn; a file of the project may only lower them."""
    default = ATTENDED_ROUNDS if is_interactive else UNATTENDED_ROUNDS
    chosen = loaded.settings.max_rounds
    if chosen is None:
        return default
    return min(chosen, default) if loaded.origins["max_rounds"].kind == "project" else chosen


def _tool_context(setup: SessionSetup, session_id: str) -> ToolContext:
    settings, locations = setup.settings, setup.locations
    given = {name: value.get_secret_value() for name, value in settings.environment.variables.items()}
    env = without_provider_keys({**setup.env, **given}, settings)
    pass_env = (*settings.environment.pass_env, *given)
    if programs := setup.loaded.places.program_folders:  # last, so that a plug-in takes no other program's place
        env = {**env, "PATH": os.pathsep.join([env.get("PATH", os.defpath), *map(str, programs)])}
    outputs = locations.outputs_folder / session_id
    sandbox = sandbox_of(setup.loaded, setup.cwd, setup.env, locations)
    return ToolContext(
        tool_use_id="",
        paths=workspace_paths(setup.cwd, setup.loaded, locations, readable=outputs, temporary=sandbox.temporary),
        seen_files=SeenFiles(),
        outputs=OutputStore(outputs, keys=provider_keys(setup.env, settings, setup.loaded.keys)),
        environment=child_environment(env, pass_env=pass_env),
        user_environment=user_environment(env, pass_env=pass_env),
        own_environment=env,
        limits=limits_of(settings.limits),
        sandbox=sandbox,
    )
