"""The context that all parts of a session are made with. It is whole before the first of them, so none is patched."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from panpan.capabilities.guards.keys_in_results import provider_keys, without_provider_keys
from panpan.config.limits import limits_of
from panpan.core.conversation import Conversation
from panpan.core.seen_files import SeenFiles
from panpan.core.tool import ToolContext
from panpan.permissions.opening import sandbox_of, workspace_paths
from panpan.session.models import PromptWishes
from panpan.session.opening import OpenedLog
from panpan.session.recorder import Recorder
from panpan.session.setup import Setup
from panpan.session.tap import Askers
from panpan.session.unfinished import Outcome
from panpan.system.environment import child_environment, user_environment
from panpan.system.files.output_store import OutputStore
from panpan.types.dataclass import dataclass
from panpan.version import __version__

if TYPE_CHECKING:
    from panpan.session.budget.turn_clock import TurnClock


@dataclass(frozen=True, slots=True)
class Caller:
    """The wishes of whoever opens a session, and those who answer its questions."""

    askers: Askers
    """Those who answer what the user is asked."""
    clock: "TurnClock"
    """Stands while the user is asked."""
    unfinished: Outcome | None = None
    """End of the calls that the session left open in a crash; None: nobody knows."""
    prompts: PromptWishes = PromptWishes()
    says_yes: bool = False
    """True if questions are answered with yes, but for those that only a person may answer."""
    is_attended: bool = False
    """True if a user watches."""
    is_tapped: bool = False
    """True if what crosses the session's borders is seen by another, which must not miss any of it."""
    agents: Mapping[str, Any] | None = None
    """Kinds of subagents that the command line defines, by name; None: none."""
    warn: Callable[[str], None] = lambda _: None
    """Told what the user should know, one sentence each."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """One session, for all that is part of it."""

    caller: Caller
    setup: Setup
    opened: OpenedLog
    """Its log, and what was said and decided before."""
    conversation: Conversation
    recorder: Recorder
    """Writes into the log."""
    tool_context: ToolContext
    """Paths, files that were read, sandbox and processes, for its tools."""

    @property
    def id(self) -> str:
        """Id of the session."""
        return self.opened.id

    @property
    def warn(self) -> Callable[[str], None]:
        """Told what the user should know, one sentence each."""
        return self.caller.warn


def context_of(setup: Setup, opened: OpenedLog, caller: Caller) -> SessionContext:
    """Return the context of a session whose log is open."""
    before = opened.before
    conversation = Conversation(messages=before.messages, compactions=before.compactions)
    conversation.replies_beside.extend(before.replies_beside)
    recorder = Recorder(conversation, opened.log, before.prefixes, panpan_version=__version__, warn=caller.warn)
    if (note := opened.opened_note(is_interactive=caller.is_attended)) is not None:
        recorder.note_with_message(note)
    return SessionContext(caller, setup, opened, conversation, recorder, _tool_context(setup, opened.id))


def _tool_context(setup: Setup, session_id: str) -> ToolContext:
    settings, locations = setup.settings, setup.locations
    env = without_provider_keys(setup.env, settings)
    outputs = locations.outputs_folder / session_id
    sandbox = sandbox_of(settings, setup.env, locations)
    return ToolContext(
        tool_use_id="",
        paths=workspace_paths(setup.cwd, setup.loaded, locations, readable=outputs, temporary=sandbox.temporary),
        seen_files=SeenFiles(),
        outputs=OutputStore(outputs, keys=provider_keys(setup.env, settings)),
        environment=child_environment(env, pass_env=settings.environment.pass_env),
        user_environment=user_environment(env, pass_env=settings.environment.pass_env),
        own_environment=env,
        limits=limits_of(settings.limits),
        sandbox=sandbox,
    )
