"""Puts into one line for the user which worktrees hold changes that nobody merged."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from panpan.capabilities.subagents.place import Place
from panpan.errors import SessionError
from panpan.session.agent_log import agent_log_path, agent_record, agents_folder
from panpan.system.text.terminal_text import clean_line

MAX_NAMED = 5
"""Subagents that the line names, of this session and of earlier ones each."""
_MAX_DESCRIPTION_CHARS = 60


def waiting_line(agent_ids: Sequence[str], place: Place) -> str:
    """Return the line, which says of each subagent whether it is of this session; empty where there is none.

    Args:
        agent_ids: The subagents whose worktrees hold changes.
        place: Where the session is; reads the logs of subagents.
    """
    if not agent_ids:
        return ""
    own = [id_ for id_ in agent_ids if _log(id_, place.logs) is not None]
    earlier = [id_ for id_ in agent_ids if id_ not in own]
    kinds = (("this session", own), ("earlier sessions", earlier))
    named = "; ".join(f"of {whose} {_named(ids, place)}" for whose, ids in kinds if ids)
    number = "1 worktree holds" if len(agent_ids) == 1 else f"{len(agent_ids):,} worktrees hold"
    return f"{number} changes that are not merged, {named}: ask the model to show, merge or discard them"


def _named(agent_ids: Sequence[str], place: Place) -> str:
    names = [_name(id_, place) for id_ in agent_ids[:MAX_NAMED]]
    if (more := len(agent_ids) - MAX_NAMED) > 0:
        names.append(f"and {more:,} more")
    return ", ".join(names)


def _name(agent_id: str, place: Place) -> str:
    """Return the id, and what the subagent was to do where some session of the project knows it."""
    folders = (place.logs, *(agents_folder(place.sessions_folder, path.stem) for path in _sessions(place)))
    path = next(filter(None, (_log(agent_id, folder) for folder in folders)), None)
    with suppress(SessionError):
        if path is not None and (record := agent_record(path)) is not None and record.description:
            return f"{agent_id} ({clean_line(record.description)[:_MAX_DESCRIPTION_CHARS]})"
    return agent_id


def _sessions(place: Place) -> Sequence[Path]:
    return list(place.sessions_folder.glob("*.jsonl"))


def _log(agent_id: str, folder: Path) -> Path | None:
    path = agent_log_path(folder, agent_id)
    return path if path is not None and path.is_file() else None
