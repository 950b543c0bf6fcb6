"""A session of fakes, in a folder of the test's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.services.sessions.fold import folded
from panpan.services.sessions.log import SessionLog, read_records
from panpan.services.sessions.session import Session, SessionInfo, SessionParts
from panpan.types.messages import Message
from panpan.types.permission import Asker
from tests.fakes.askers import yes
from tests.fakes.context import context_in
from tests.fakes.tools import FakeTool


def session_in(
    root: Path,
    llm: Any,
    *tools: FakeTool,
    hooks: Sequence[Hook] = (),
    ask: Asker | None = None,
    max_rounds: int = 50,
) -> Session:
    path = log_path(root)
    before = folded(read_records(path)) if path.exists() else None
    log = SessionLog(path, session_id="s1", cwd=root)
    if before is not None:
        log.parent_uuid = before.last_uuid
    return Session(
        SessionParts(
            info=SessionInfo(
                id="s1",
                cwd=root,
                model="scripted",
                choice="scripted",
                key_source="none",
                permission_mode="default",
                tools=[tool.name for tool in tools],
            ),
            conversation=Conversation(messages=before.messages if before else ()),
            log=log,
            llm=llm,
            tools={tool.name: tool for tool in tools},
            tool_context=context_in(root),
            hooks=hooks,
            ask=ask or yes(),
            max_rounds=max_rounds,
        )
    )


def log_path(root: Path) -> Path:
    return root.parent / f"{root.name}-log" / "s1.jsonl"


def recorded(root: Path) -> list[Message]:
    """What the log on disk adds up to now."""
    return folded(read_records(log_path(root))).messages
