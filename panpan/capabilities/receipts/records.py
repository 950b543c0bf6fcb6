"""Records of commands in the log of a session."""

from typing import Any, Literal

from panpan.session.log.record_kinds import Figure, SystemRecord, Words, Yes


class CommandRecord(SystemRecord):
    """A command of the session."""

    receipt: dict[str, Any]
    agent_id: Words = ""
    tool_use_id: Words = ""
    task_id: Words = ""
    """The task in the background that it is; empty for none."""
    turn: Figure = 0
    is_of_user: Yes = False
    root: Words = ""
    """Folder of the paths in the receipt, if that is not the workspace."""


class ReceiptRecord(CommandRecord):
    """A command has ended."""

    subtype: Literal["receipt"] = "receipt"


class BackgroundCommandRecord(CommandRecord):
    """A command goes on in the background; its receipt says how it was started."""

    subtype: Literal["background_command"] = "background_command"
