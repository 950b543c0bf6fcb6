"""What became of subagents that were at work when panpan ended, as their own logs tell."""

from collections.abc import Callable
from pathlib import Path

from panpan.capabilities.subagents.report import going_on
from panpan.capabilities.subagents.task import TaskTool
from panpan.core.conversation import NEVER_BEGUN, error_result
from panpan.errors import SessionError
from panpan.session.agent_log import agent_log_path, agent_records
from panpan.session.fold import folded
from panpan.session.log import read_records
from panpan.session.open_calls import UnfinishedCall
from panpan.types.content import TextBlock, ToolResultBlock
from panpan.types.messages import AssistantMessage, ToolResultMessage


def results_of_subagents(folder: Path, *, parent: str = "") -> Callable[[UnfinishedCall], ToolResultMessage | None]:
    """Return what finds the result of a call that the session left open, where a subagent was begun by it.

    Args:
        folder: Where the logs of the session's subagents lie.
        parent: Id of the subagent whose calls they are; empty: the session's own model.
    """

    def result(call: UnfinishedCall) -> ToolResultMessage | None:
        use = call.tool_use
        if use.name != TaskTool.name:
            return None
        records = (one for one in agent_records(folder) if (one.tool_use_id, one.parent) == (use.id, parent))
        record = next(records, None)
        path = agent_log_path(folder, record.id) if record is not None else None
        if record is None or path is None:  # a subagent has a log before it does anything; in a fork, another session
            return error_result(use.id, NEVER_BEGUN) if call.process_mark else None
        try:
            messages = folded(read_records(path)).messages
        except SessionError:
            return None
        last = messages[-1] if messages else None
        kept = going_on(record.name, record.id)
        if isinstance(last, AssistantMessage) and last.stop_reason == "end_turn" and not last.tool_uses:
            text = f"The session ended right after the subagent was done. It said:\n{last.text}\n\n{kept}"
            return ToolResultMessage(result=ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text=text),)))
        text = (
            "The session ended while the subagent worked on this. What it has done until then stands, and its "
            f"conversation is kept.\n\n{kept}"
        )
        return error_result(use.id, text)

    return result
