"""The hook of receipts: counts turns, notes written files, and lets files stay until they are digested."""

from collections.abc import Sequence

from panpan.capabilities.receipts.session_recorder import SessionRecorder
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, ToolCall
from panpan.types.events import Output


class ReceiptsHook(Hook):
    """View of one agent's loop.

    Args:
        recorder: The recorder of the session.
        is_main: True for the main agent, whose turns count.
    """

    def __init__(self, recorder: SessionRecorder, *, is_main: bool) -> None:
        self._recorder = recorder
        self._is_main = is_main

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        if self._is_main:
            await self._recorder.loaded()
            self._recorder.receipts.begin_turn()
        return ()

    async def before_effect(self, call: ToolCall) -> None:
        await self._recorder.settled()

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if call.tool.notes_changes and not output.is_error:
            paths = call.context.paths
            self._recorder.receipts.note_written(paths.decided_location(text).path for text in call.effects.writes)
        return output
