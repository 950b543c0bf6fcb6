"""Notices a model that runs in circles: the same call again and again asks before it runs once more.

Identical means the same tool with the same arguments, with no other call between, over as many rounds as it takes.
"""

import json
from collections.abc import Sequence
from hashlib import blake2b

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import AnswerNeededError
from panpan.types.permission import Ask, Decision
from panpan.types.tool import Output

_MOST_IN_A_ROW = 3
"""Identical calls in a row that run unasked."""

_MOST_REFUSALS = 3
"""How often the same call may be refused before the turn ends."""


class RepeatedCalls(Hook):
    """Asks before a call that has come too often in a row."""

    def __init__(self) -> None:
        self._newest = b""
        self._count = 0
        self._asked: set[str] = set()
        """Ids of the calls that were asked about."""

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._newest, self._count = b"", 0
        self._asked.clear()
        return ()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        """End a turn that only repeats what nobody allows.

        Raises:
            AnswerNeededError: The same call was asked about several times and never allowed.
        """
        if len(self._asked) >= _MOST_REFUSALS:
            raise AnswerNeededError(
                "the model repeats the same call although it is refused each time; only you can say how to go on"
            )
        return ()

    async def before_tool(self, call: ToolCall) -> Decision | None:
        key = _key(call)
        if key != self._newest:
            self._newest, self._count = key, 0
            self._asked.clear()
        self._count += 1
        if self._count <= _MOST_IN_A_ROW:
            return None
        self._asked.add(call.tool_use_id)
        return Ask(
            f"{call.tool.name} has been called {self._count - 1} times in a row with the same arguments, and once more "
            "is unlikely to give anything new; look at the results so far and try something different"
        )

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if call.tool_use_id in self._asked:  # it ran, so somebody said yes to going on
            self._asked.discard(call.tool_use_id)
            self._count = 0
        return output


def _key(call: ToolCall) -> bytes:
    """Return what tells calls apart: not the order of their arguments, nor defaults that are left out."""
    arguments = json.dumps(call.args.model_dump(mode="json"), sort_keys=True)
    return blake2b(f"{call.tool.name} {arguments}".encode(errors="surrogatepass"), digest_size=16).digest()
