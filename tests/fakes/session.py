"""Sessions made of fakes, in a folder of the test's own."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.compaction.capability import CompactionCapability
from panpan.capabilities.files.read import ReadTool
from panpan.capabilities.mentions.capability import Mentions
from panpan.capabilities.search.ls import LsTool
from panpan.config.settings import Table
from panpan.config.stored_keys import NO_KEYS
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.permissions.gate import PermissionGate
from panpan.session.agent import Agent, AgentPermissions, Identity, ModelParts, ModelSource, Transcript
from panpan.session.budget.budget import Budget
from panpan.session.capability import Capabilities
from panpan.session.log.fold import FoldedSession, fold_records
from panpan.session.log.record_kinds import NO_PREFIX, PermissionModeRecord, SpentRecord
from panpan.session.log.recorder import Recorder
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.session import Session, Titles
from panpan.session.turn import Steering
from panpan.session.unfinished import Outcome, UnfinishedCalls
from panpan.types.messages import Message
from panpan.types.permission import Asker, PermissionMode, UserAsker
from tests.fakes.askers import yes
from tests.fakes.context import context_in
from tests.fakes.settings import settings_with

if TYPE_CHECKING:
    from panpan.session.context import SessionContext


def session_in(
    root: Path,
    llm: Any,
    *tools: Tool[Any],
    hooks: Sequence[Hook] = (),
    ask: Asker | None = None,
    max_rounds: int = 50,
    models: ModelSource | None = None,
    ask_user: UserAsker | None = None,
    outcome: Outcome | None = None,
    permission_mode: PermissionMode | None = None,
    **parts: Any,
) -> Session:
    """Return a session whose log has no prefix, so that its first record is the first message.

    With a `permission_mode`, its gate is among the hooks. With `has_background` False, it has no background tasks.
    """
    path = log_path(root)
    before = fold_records(read_records(path)) if path.exists() else FoldedSession()
    log = SessionLog(path, session_id="s1", cwd=root)
    log.parent_uuid = before.last_uuid
    conversation = Conversation(
        tools=[tool.definition for tool in tools], messages=before.messages, compactions=before.compactions
    )
    recorded = {NO_PREFIX.profile: NO_PREFIX}
    recorder = Recorder(conversation, log, recorded, warn=parts.get("warn", lambda _: None))
    steering = Steering()
    budget = parts.pop("budget", None) or Budget()
    budget.note = budget.note or (
        lambda spending, cause: recorder.record_decision(SpentRecord.of(spending, cause).as_json())
    )
    budget.count(before.spent)
    gate = parts.pop("gate", None) or PermissionGate(mode=permission_mode or "default")
    gate.subscribe(lambda mode: recorder.record_decision(PermissionModeRecord(permission_mode=mode).as_json()))
    model = ModelParts(
        name="scripted",
        llm=llm,
        tools={tool.name: tool for tool in tools},
        hooks=(*([gate] if permission_mode else ()), *hooks, steering),
        choice="scripted",
        **{name: parts.pop(name) for name in ("retry_now", "aclose") if name in parts},
    )
    warn, settings = parts.pop("warn", lambda _: None), parts.get("settings", settings_with())
    agent = Agent(
        Identity("s1"),
        Transcript(conversation, log, recorder),
        AgentPermissions(gate, ask or yes(), budget, max_rounds),
        parts.pop("tool_context", None) or context_in(root),
        UnfinishedCalls(before.unfinished, ask=ask_user, outcome=outcome, session_id="s1"),
        warn,
    )
    agent.use(model)
    capabilities = Capabilities()
    capabilities.register(*parts.pop("offers", ()), ReadTool(), LsTool())
    if parts.pop("has_background", True):
        capabilities.register(BackgroundTasks())
    facts = SimpleNamespace(
        find=capabilities.find,
        main=agent,
        conversation=conversation,
        recorder=recorder,
        settings_of=lambda kind: (
            settings[kind.settings_model] if issubclass(kind.settings_model, Table) else kind.settings_model()
        ),
        setup=SimpleNamespace(env=parts.pop("env", {}), loaded=SimpleNamespace(keys=NO_KEYS)),
        settings=settings,
        tool_context=agent.context,
        gate=gate,
        warn=warn,
    )
    for kind in (Mentions, CompactionCapability):
        capabilities.add(kind(cast("SessionContext", facts)))
    titles = Titles(before.title, parts.pop("make_title", None))
    return Session(agent, capabilities, steering=steering, models=models, titles=titles, **parts)


def log_path(root: Path) -> Path:
    return root.parent / f"{root.name}-log" / "s1.jsonl"


def recorded(root: Path) -> list[Message]:
    """Return the messages that the log on disk now holds."""
    return fold_records(read_records(log_path(root))).messages
