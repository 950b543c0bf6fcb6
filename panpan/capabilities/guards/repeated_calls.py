"""Notices a model that runs in circles: the same calls with the same results, round after round.

The model is told before anything else happens. Then the user is asked before such a call runs once more, and a turn in
which nobody says yes ends. A result that changes starts the count again, so that a log can be polled for as long as it
grows. Calls that wait for something, such as the end of a background task, do not count.
"""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import AnswerNeededError
from panpan.types.content import ToolUseBlock
from panpan.types.events import Output
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage
from panpan.types.permission import Ask, Behaviour, Decision, Deny, Reason

_MOST_IN_A_ROW = 3

_MOST_REFUSALS = 3
"""Rounds in a row in which the same calls may be refused before the turn ends."""

_ADVICE = "use that result, or try something different; the turn ends if you go on repeating the call"
_SAME_RESULT = (
    "You have made the same call {count} times in a row, and its result was the same each time. Do not make it again: "
    "use the result, or try something different. Otherwise the turn ends."
)
_CANNOT_RUN = (
    "You have made the same call {count} times in a row, and it cannot run: its result says why. Once more ends "
    "the turn. Correct it, use another tool, or say what you need."
)

_Calls: TypeAlias = Mapping[bytes, bytes]
"""Results of one round by their calls; a call that comes twice in a reply counts once."""


class RepeatedCalls(Hook):
    """Asks before a call that keeps getting the same result, and ends a turn that makes no headway."""

    def __init__(self, doom_loop: Behaviour = "ask") -> None:
        self._doom_loop = doom_loop
        self._newest: _Calls = {}
        """Calls and results of the newest round that counts."""
        self._count = 0
        """Equal rounds in a row."""
        self._refusals = 0
        self._begin_round()

    def _begin_round(self) -> None:
        self._keys: dict[str, bytes] = {}
        """Keys of the calls that may run, by id."""
        self._outputs: dict[str, bytes] = {}
        """Digests of results, by call id."""
        self._asked: set[str] = set()
        """Ids of calls that were stopped here and have not run since."""
        self._starts_again = False
        """True if the user said yes to going on, or a call waits for something."""

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._newest, self._count, self._refusals = {}, 0, 0
        return ()

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        self._begin_round()

    async def before_tool(self, call: ToolCall) -> Decision | None:
        key = self._keys[call.tool_use_id] = _key(call.tool.name, call.args.model_dump(mode="json"))
        if call.tool.may_be_repeated(call.args):
            self._starts_again = True
            return None
        if self._count < _MOST_IN_A_ROW or key not in self._newest or self._doom_loop == "allow":
            return None
        self._asked.add(call.tool_use_id)
        text = f"the model has made this call {self._count} times in a row with the same result"
        reason = Reason(text, "doom-loop", advice=_ADVICE)
        return Deny(reason) if self._doom_loop == "deny" else Ask(reason)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if call.tool_use_id in self._asked:  # it ran, so somebody allowed it to go on
            self._asked.discard(call.tool_use_id)
            self._starts_again = True
        folder = re.escape(str(call.context.outputs.directory))
        text = "\n".join(block.model_dump_json() for block in output.blocks)
        self._outputs[call.tool_use_id] = _digest(re.sub(rf"{folder}/[^\s/\"]+", "", text))  # file names differ
        return output

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        """Count rounds that only repeat the one before, and warn the model."""
        if not reply.tool_uses:
            return ()
        if self._asked:
            self._refusals += 1
            if self._refusals >= _MOST_REFUSALS:
                raise AnswerNeededError(
                    f"the model repeats the same call of {reply.tool_uses[0].name} although it gets the same result; "
                    "only you can say how to go on"
                )
            return ()
        calls = self._calls(reply.tool_uses, _results(round_.conversation))
        self._refusals = 0
        self._count = 0 if self._starts_again else self._count + 1 if calls == self._newest else 1
        self._newest = calls
        if self._count < _MOST_IN_A_ROW or (self._keys and self._doom_loop == "allow"):
            return ()
        if self._count > _MOST_IN_A_ROW:  # calls that can run have been asked about before
            raise AnswerNeededError(
                f"the model repeats the same call of {reply.tool_uses[0].name} although it cannot run; only you can "
                "say how to go on"
            )
        warning = (_SAME_RESULT if self._keys else _CANNOT_RUN).format(count=self._count)
        return (SystemReminder(text=warning, cause="limit:repeated_calls"),)

    def _calls(self, uses: Sequence[ToolUseBlock], results: Mapping[str, ToolResultMessage]) -> _Calls:
        calls: dict[bytes, bytes] = {}
        for use in uses:
            key = self._keys.get(use.id) or _key(f"{use.name} {use.input_error or ''}", use.input)
            result = self._outputs.get(use.id) or _digest(results[use.id].text if use.id in results else "")
            calls[key] = _digest(f"{calls[key].hex()} {result.hex()}") if calls.get(key, result) != result else result
        return calls


def _results(conversation: Conversation) -> Mapping[str, ToolResultMessage]:
    results: dict[str, ToolResultMessage] = {}
    for message in reversed(conversation.messages):
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, ToolResultMessage):
            results[message.tool_use_id] = message
    return results


def _key(name: str, arguments: Mapping[str, Any]) -> bytes:
    """Return a key of equal calls, whatever the order of their arguments, defaults left out."""
    return _digest(f"{name} {json.dumps(arguments, sort_keys=True)}")


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
