"""Lets what a subagent changes be kept for undo, also what it changes after the turn in which it was started."""

from panpan.capabilities.snapshots.rounds import RoundSnapshots
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook, ToolCall
from panpan.types.tool import Output


class SnapshotsBeside(Hook):
    """Tells the session's snapshots of the calls of one subagent.

    Args:
        rounds: The session's.
        agent_id: The subagent.
    """

    def __init__(self, rounds: RoundSnapshots, agent_id: str) -> None:
        self._rounds = rounds
        self._agent_id = agent_id
        self._running: set[str] = set()

    async def before_effect(self, call: ToolCall) -> None:
        key = f"{self._agent_id} {call.tool_use_id}"
        self._running.add(key)
        await self._rounds.effect_begins_beside(key, call)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        self._over(f"{self._agent_id} {call.tool_use_id}")
        return output

    async def turn_ended(self, conversation: Conversation) -> None:
        for key in tuple(self._running):  # of calls that were interrupted
            self._over(key)

    def _over(self, key: str) -> None:
        if key in self._running:
            self._running.discard(key)
            self._rounds.effect_ended_beside(key)
