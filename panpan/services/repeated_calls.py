"""Notices a model that runs in circles: the same call again and again asks before it runs once more.

Identical means the same tool with the same arguments, with no other call between, over as many rounds as it takes. A
call that cannot run, of an unknown tool or with arguments that do not fit, never comes to the question; rounds in which
nothing but the same such calls came are counted apart, and the model is warned before they end the turn. Calls that
wait for something, such as the end of a background task, do not count.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import AnswerNeededError
from panpan.types.content import ToolUseBlock
from panpan.types.messages import AssistantMessage, SystemReminder
from panpan.types.permission import Ask, Behaviour, Decision, Deny, Reason
from panpan.types.tool import Output

_MOST_IN_A_ROW = 3
"""Identical calls in a row that run unasked, and identical rounds in a row in which no call can run."""

_MOST_REFUSALS = 3
"""How often the same call may be refused before the turn ends."""

_ADVICE = (
    "{name} has been called {times} with the same arguments, and once more is unlikely to give anything new; look at "
    "the results so far and try something different."
)
_WARNING = (
    "You have made the same call {count} times in a row, and it cannot run: its result says why. Once more ends "
    "the turn. Correct it, use another tool, or say what you need."
)


class RepeatedCalls(Hook):
    """Asks before a call that has come too often in a row, and ends a turn that makes no headway.

    Args:
        doom_loop: What happens to such a call.
    """

    def __init__(self, doom_loop: Behaviour = "ask") -> None:
        self._doom_loop = doom_loop
        self._newest = b""
        self._count = 0
        self._asked: set[str] = set()
        """Ids of the calls that were asked about."""
        self._has_valid_call = False
        """Whether any call of this round is in order."""
        self._failed = b""
        self._failed_rounds = 0

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._newest, self._count = b"", 0
        self._failed, self._failed_rounds = b"", 0
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

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        self._has_valid_call = False

    async def before_tool(self, call: ToolCall) -> Decision | None:
        self._has_valid_call = True
        key = _key(call.tool.name, call.args.model_dump(mode="json"))
        if key != self._newest:
            self._newest, self._count = key, 0
            self._asked.clear()
        self._count += 1
        if call.tool.may_be_repeated(call.args):
            self._count = 0
        if self._count <= _MOST_IN_A_ROW or self._doom_loop == "allow":
            return None
        self._asked.add(call.tool_use_id)
        times = f"{self._count - 1} times in a row"
        advice = _ADVICE.format(name=call.tool.name, times=times)
        if self._doom_loop == "deny":
            return Deny(Reason(advice, "doom-loop"))
        text = f"the model has made this same call {times}, and may be going round in circles"
        return Ask(Reason(text, "doom-loop"), advice_for_model=advice)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if call.tool_use_id in self._asked:  # it ran, so somebody said yes to going on
            self._asked.discard(call.tool_use_id)
            self._count = 0
        return output

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        """Count rounds that repeat what cannot run, and warn the model when it is about to end the turn.

        Raises:
            AnswerNeededError: The model went on all the same.
        """
        if not reply.tool_uses:
            return ()
        failed = b"" if self._has_valid_call else _keys(reply.tool_uses)
        self._failed_rounds = self._failed_rounds + 1 if failed and failed == self._failed else 1
        self._failed = failed
        if not failed or self._failed_rounds < _MOST_IN_A_ROW:
            return ()
        if self._failed_rounds > _MOST_IN_A_ROW:
            raise AnswerNeededError(
                f"the model repeats the same call of {reply.tool_uses[0].name} although it cannot run; only you can "
                "say how to go on"
            )
        return (SystemReminder(text=_WARNING.format(count=self._failed_rounds), cause="limit:repeated_calls"),)


def _key(name: str, arguments: Mapping[str, Any]) -> bytes:
    """Return what tells calls apart: not the order of their arguments, nor, where they fit, defaults left out."""
    text = json.dumps(arguments, sort_keys=True)
    return blake2b(f"{name} {text}".encode(errors="surrogatepass"), digest_size=16).digest()


def _keys(uses: Sequence[ToolUseBlock]) -> bytes:
    """Return what tells rounds apart in which no call can run; a call that comes twice in one counts once."""
    return b"".join(dict.fromkeys(_key(f"{use.name} {use.input_error or ''}", use.input) for use in uses))
