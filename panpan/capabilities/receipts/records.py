"""Records of commands in the log of a session."""

from typing import Any, Literal

from panpan.session.log.record_kinds import Figure, SystemRecord, Words, Yes


class ReceiptRecord(SystemRecord):
    """A command of the session has ended, or goes on in the background."""

    subtype: Literal["receipt", "background_command"]
    """`background_command` says how a command was started that goes on; its end is told by a `receipt`."""
    receipt: dict[str, Any]
    agent_id: Words = ""
    tool_use_id: Words = ""
    task_id: Words = ""
    """The task in the background that it is; empty for none."""
    turn: Figure = 0
    is_of_user: Yes = False
    root: Words = ""
    """Folder of the paths in the receipt: the workspace, or a copy of it."""
