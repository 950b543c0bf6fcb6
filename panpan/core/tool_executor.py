"""The executor: runs the tools of one turn side by side, and those that touch the same files in order.

Enter it around the loop, never inside a generator: it owns the tasks, and `run` only receives. Every tool use gets
exactly one result, from running, refusal, failure or interrupt. A result is in `results` before it is sent, so none is
lost when the receiver goes away. Equal read-only calls with no change between them run once and share the result.
"""

import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Self, assert_never

from anyio import (
    AsyncContextManagerMixin,
    Event,
    Lock,
    create_task_group,
    fail_after,
    move_on_after,
)

from panpan.core.conversation import error_result
from panpan.core.event_channel import EventChannel
from panpan.core.hooks import Hook, Ledger, NoLedger, ToolCall
from panpan.core.leases import EVERYTHING, Lease, Leases
from panpan.core.tool import Tool, ToolContext
from panpan.core.tool_call import (
    Permission,
    PreparedCall,
    digest_of,
    equal_calls,
    error_output,
    find_changed_files,
    find_file_use,
    is_apart,
    permission_for,
    permission_to_retry,
    prepare_call,
    recheck_call,
    shorten_error,
)
from panpan.errors import PanpanError, ToolError, unwrap_single_exception
from panpan.system.files.paths import PathResolver
from panpan.types.content import AssistantContent, ToolResultBlock, ToolUseBlock, for_model
from panpan.types.events import (
    Output,
    PermissionDecided,
    Progress,
    SubagentEvent,
    ToolEvent,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    Waiting,
    known_name,
)
from panpan.types.messages import AssistantMessage, ToolResultMessage
from panpan.types.permission import Asker, PermissionAnswer, PermissionQuestion

CLEANUP_S = 5.0
"""Longest wait for cancelled tools to end; the process runner waits 0.3 s for a process and then kills it."""

_EVENTS_AHEAD = 64
"""Buffer between the calls of a message and the receiver of their events."""

_TURN = "another subagent is changing files"

_MAX_TOLD = 1_000
"""Characters of other arguments that the model is shown."""

log = logging.getLogger(__name__)


class ToolExecutor(AsyncContextManagerMixin):
    """Runs tool calls for one turn.

    Args:
        tools: Tools that may be called, by name.
        context: Context of the calls, of which each gets its own copy.
        hooks: Hooks to ask before and after each call.
        ask: Puts a question to the user.
        ledger: Record of the calls that may change something, written before they do.
        advertised: Names of the tools in the model's list; None for all.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool[Any]],
        context: ToolContext,
        hooks: Sequence[Hook] = (),
        *,
        ask: Asker,
        ledger: Ledger | None = None,
        advertised: Collection[str] | None = None,
    ) -> None:
        self.results: dict[str, ToolResultMessage] = {}
        """Results that exist but have not been received yet, by tool use id."""
        self.begun: set[str] = set()
        """Ids of the calls whose tool began to run."""
        self.left: dict[str, str] = {}
        """Work that calls had done when they were cut short, in a sentence of their tools, by tool use id."""
        self._tools = tools
        self._advertised = advertised
        self._context = context
        self._hooks = hooks
        self._ask = ask
        self._ledger = ledger or NoLedger()

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        with unwrap_single_exception():  # so that `except ProviderError` works above
            async with create_task_group() as self._task_group:
                yield self
                self._task_group.cancel_scope.cancel("the turn is over")

    def with_known_names(self, reply: AssistantMessage) -> AssistantMessage:
        """Return the reply with the tools' exact names in place of those that differ in case, such as `bash`."""
        names = {use.name: known_name(use.name, self._tools.keys()) for use in reply.tool_uses}
        if all(name == written for written, name in names.items()):
            return reply
        return reply.model_copy(update={"content": tuple(_renamed(block, names) for block in reply.content)})

    async def run(self, tool_uses: Sequence[ToolUseBlock]) -> AsyncGenerator[ToolEvent, None]:
        """Yield progress as it comes, and the results in the order of the calls."""
        calls = [prepare_call(use, self._tools, self._advertised) for use in tool_uses]
        received = {call.use.id: Event() for call in calls}
        channel = EventChannel[ToolEvent](_EVENTS_AHEAD)
        task = self._task_group.start_soon(self._run_message, calls, channel, received)
        try:
            while events := await channel.take():
                for event in events:
                    if not isinstance(event, ToolResultMessage):
                        yield event
                        continue
                    self.results.pop(event.tool_use_id)
                    yield event
                    received[event.tool_use_id].set()
        finally:
            if not channel.is_over:
                task.cancel()
                with move_on_after(CLEANUP_S, shield=True):
                    await task.wait()

    async def _run_message(
        self,
        calls: Sequence[PreparedCall],
        channel: EventChannel[ToolEvent],
        received: Mapping[str, Event],
    ) -> None:
        """Start each call once, with a lease that keeps it behind those before it that touch the same files.

        A call that runs alone waits until the results before it are received, and so recorded; the calls after it wait
        for its own. So a crash leaves at most one such call without a result, and what a call touches is known by the
        files that are there, and by the working directory, when its turn comes.
        """
        results = _ResultsInOrder(calls, self.results, channel)
        order = Leases()
        context = replace(self._context, leases=self._context.leases or Leases())
        with closing(channel):
            async with create_task_group() as task_group:
                numbers = {call.use.id: number for number, call in enumerate(calls)}
                has_changes = not all(call.only_reads for call in calls)
                for equal in equal_calls(calls):
                    call, number = equal[0], numbers[equal[0].use.id]
                    may_move = is_apart(calls, number)
                    use = await find_file_use(call, context, may_move=may_move, is_beside_changes=has_changes)
                    runs_alone = use == EVERYTHING
                    if runs_alone:
                        await _all(received[earlier.use.id] for earlier in calls[:number])
                    own = replace(
                        context, tool_use_id=call.use.id, runs_alone=runs_alone, paths=context.paths.for_call()
                    )
                    task_group.start_soon(self._run_one, equal, own, order.ask(use), channel, results)
                    if runs_alone:
                        await received[call.use.id].wait()

    async def _run_one(
        self,
        equal: Sequence[PreparedCall],
        context: ToolContext,
        lease: Lease,
        channel: EventChannel[ToolEvent],
        results: "_ResultsInOrder",
    ) -> None:
        """Run the first of equal calls, and make exactly one result for each of them, even if the tool crashes."""
        call = equal[0]
        async with lease:
            try:
                output = await self._output_of(call, context, channel)
                self.results.update({one.use.id: _result(one.use.id, output) for one in equal})
            except Exception as error:  # a bug in a tool or a hook costs its call, not the turn
                log.exception("the tool %s failed unexpectedly", call.use.name)
                text = f"{call.use.name} failed unexpectedly: {type(error).__name__}: {error}"
                self.results.update({one.use.id: error_result(one.use.id, shorten_error(text)) for one in equal})
        await results.send(equal)

    async def _refusal_at_last(self, call: ToolCall) -> str:
        """Tell the hooks and the ledger that an allowed call runs now; return the reason if it must not after all."""
        name, has_effect = call.tool.name, not (call.effects.is_read_only or call.context.box == "looking")
        for hook in self._hooks if has_effect else ():
            try:
                await hook.before_effect(call)
            except Exception:  # a hook that only watches must not keep an allowed call from running
                log.exception("the hook %s failed before %s", type(hook).__name__, name)
        if denial := next(filter(None, (hook.denies_all() for hook in self._hooks)), None):
            return denial.reason.text
        try:
            if has_effect:
                await self._ledger.call_starts(call)
        except PanpanError as error:  # a call that cannot be recorded must not run
            return str(error)
        return ""

    async def _output_of(self, call: PreparedCall, context: ToolContext, channel: EventChannel[ToolEvent]) -> Output:
        """Get permission for a call, and run it once no other agent changes its files."""
        if call.tool is None or call.args is None:
            return Output(shorten_error(call.problem), is_error=True)
        try:
            tool_call = await self._revised(
                await ToolCall.of(call.use.id, call.tool, call.args, call.use.input, context)
            )
        except ToolError as error:
            return error_output(error)
        leases = _leases(context)
        permission = await permission_for(tool_call, self._hooks, self._ask, leases.asking)
        if permission.is_allowed and permission.input is not None:
            try:
                tool_call = await _with_arguments(tool_call, permission.input, "the answer gave it other arguments")
            except ToolError as error:
                return error_output(error)
            said = f"made with these arguments instead: {json.dumps(tool_call.input, ensure_ascii=False)[:_MAX_TOLD]}"
            permission = await permission_for(tool_call, self._hooks, self._ask_about_given, leases.asking)
            permission = replace(permission, said=said) if permission.is_allowed else permission
        await channel.send(_decided(call, permission))
        if not permission.is_allowed:
            return _refusal(permission)
        if digest_of(tool_call) != permission.digest:  # run exactly what was decided about, to the byte
            return Output(f"{call.use.name} was not run: its arguments changed after the decision", is_error=True)

        lease = leases.ask(find_changed_files(tool_call, permission.box), on_wait=partial(channel.send, Waiting(_TURN)))
        has_to_wait = lease.has_to_wait or not leases.slots.available_tokens
        # an agent's own calls take slots, and to wait is no work
        takes_slot = not (call.tool.starts_agents or call.tool.asks_user or call.tool.waits)
        slot = leases.slots if takes_slot else nullcontext()
        async with lease, slot:
            if has_to_wait and (denial := await recheck_call(tool_call, self._hooks)) is not None:
                await channel.send(_decided(call, denial))
                return _refusal(denial)
            return await self._run_allowed(call, tool_call, permission, channel)

    async def _ask_about_given(self, question: PermissionQuestion) -> PermissionAnswer:
        """Answer for the one who gave a call its arguments with a yes, which opens no protected place by itself."""
        return await self._ask(question) if question.is_protected else PermissionAnswer(is_allowed=True)

    async def _revised(self, call: ToolCall) -> ToolCall:
        """Return a call with the arguments that the hooks give it; raise `ToolError` where these cannot be used."""
        for hook in self._hooks:
            if (given := await hook.revise_call(call)) is not None:
                call = await _with_arguments(call, given, "a hook gave it other arguments")
        return call

    async def _run_allowed(
        self,
        call: PreparedCall,
        tool_call: ToolCall,
        permission: Permission,
        channel: EventChannel[ToolEvent],
    ) -> Output:
        """Run a call that is allowed, again if the sandbox stopped it, and let the hooks see its output."""
        paths = tool_call.context.paths
        opened = self._opened(tool_call, permission)
        if why := await self._refusal_at_last(opened):
            return Output(shorten_error(f"{call.use.name} was not run: {why}"), is_error=True)
        self.begun.add(call.use.id)
        cwd = paths.cwd
        started_at = perf_counter()
        output = await self._attempt(opened, permission, channel)
        while output.blocked and (more := await permission_to_retry(tool_call, output.blocked, self._hooks, self._ask)):
            await channel.send(_decided(call, more))
            if not more.is_allowed:
                output = output.with_note(more.text_for_model)
                break
            opened = self._opened(
                tool_call, replace(more, approved_paths=permission.approved_paths | more.approved_paths)
            )
            if why := _cannot_return(paths, cwd) or await self._refusal_at_last(opened):
                output = output.with_note(shorten_error(f"it was not run again: {why}"))
                break
            started_at = perf_counter()
            output = await self._attempt(opened, more, channel)
        for hook in self._hooks:
            try:
                output = await hook.after_tool(opened, output)
            except Exception:  # the tool has done its work, even if a hook fails afterwards
                log.exception("the hook %s failed after %s", type(hook).__name__, call.use.name)
        await channel.send(ToolFinished(call.use.id, output.is_error, perf_counter() - started_at))
        return output

    def _opened(self, call: ToolCall, permission: Permission) -> ToolCall:
        """Return a call with the paths and surroundings that its permission opens."""
        context = replace(
            call.context,
            paths=call.context.paths.approving(permission.approved_paths),
            box=permission.box,
            opening=permission.opening,
            allowed_change=permission.shown_change,
            note_changes=partial(self._ledger.files_change, call.tool_use_id),
            note_unfinished=partial(self.left.__setitem__, call.tool_use_id),
        )
        return replace(call, context=context)

    async def _attempt(self, call: ToolCall, permission: Permission, channel: EventChannel[ToolEvent]) -> Output:
        """Run the tool of an allowed call once."""
        tool, title, limit_s = call.tool, call.tool.title(call.args), call.tool.time_limit_s(call.args)
        if permission.opening is not None and permission.opening.use != "on":
            title = f"{title} ({permission.opening.description})"
        await channel.send(ToolStarted(call.tool_use_id, tool.name, title, limit_s, tool.starts_agents, tool.asks_user))
        output = await _run_tool(tool, call.args, call.context, channel)
        return output.with_note(permission.said) if permission.said else output


class _ResultsInOrder:
    """Sends the results of a message in the order of its calls, each as soon as those before it are there."""

    def __init__(
        self, calls: Sequence[PreparedCall], results: Mapping[str, ToolResultMessage], channel: EventChannel[ToolEvent]
    ) -> None:
        self._waiting = deque(call.use.id for call in calls)
        self._finished = set[str]()
        self._results = results
        self._channel = channel
        self._sending = Lock(fast_acquire=True)

    async def send(self, finished: Sequence[PreparedCall]) -> None:
        """Note that calls have their results; send those that can be sent."""
        self._finished.update(call.use.id for call in finished)
        async with self._sending:
            while self._waiting and self._waiting[0] in self._finished:
                await self._channel.send(self._results[self._waiting.popleft()])


def _cannot_return(paths: PathResolver, cwd: Path) -> str:
    """Go back to `cwd`, the working directory at the time of the decision; return the reason if that is impossible."""
    try:
        if paths.cwd != cwd:
            paths.change_directory(cwd)
    except ToolError as error:
        return str(error)
    return "" if paths.cwd == cwd else f"{cwd} leads to {paths.cwd} now"


async def _all(events: Iterable[Event]) -> None:
    for event in events:
        await event.wait()


def _leases(context: ToolContext) -> Leases:
    return context.leases or Leases()


def _refusal(permission: Permission) -> Output:
    text = shorten_error(permission.text_for_model)
    content = text if permission.display is None else (for_model(text),)
    return Output(content, permission.display, is_error=True)


async def _with_arguments(call: ToolCall, given: Mapping[str, Any], why: str) -> ToolCall:
    """Return a call with other arguments; raise `ToolError` where these cannot be used."""
    use = ToolUseBlock(id=call.tool_use_id, name=call.tool.name, input=dict(given))
    checked = prepare_call(use, {use.name: call.tool})
    if checked.args is None:
        raise ToolError(f"{why}. {checked.problem}")
    revised = await ToolCall.of(use.id, call.tool, checked.args, use.input, call.context)
    return replace(revised, is_revised=True)


def _decided(call: PreparedCall, permission: Permission) -> PermissionDecided:
    return PermissionDecided(
        call.use.id,
        call.use.name,
        permission.is_allowed,
        permission.reason,
        permission.reasons,
        permission.saved_rule,
        permission.digest,
        permission.asked_of,
        permission.box,
        call.use.input if call.is_meant else None,
    )


async def _run_tool(tool: Tool[Any], args: Any, context: ToolContext, channel: EventChannel[ToolEvent]) -> Output:
    """Drive the tool's generator within its time limit, and turn errors that it raises on purpose into an output."""
    output: Output | None = None
    try:
        with fail_after(tool.timeout_s):
            async with aclosing(tool.run(args, context)) as yields:
                async for item in yields:
                    match item:
                        case Progress(text=text):
                            await channel.send(ToolProgress(context.tool_use_id, text))
                        case SubagentEvent():
                            await channel.send(item)
                        case Output():
                            output = item
                        case _:
                            assert_never(item)
    except TimeoutError:
        return Output(f"{tool.name} did not finish within {tool.timeout_s:g} s and was ended", is_error=True)
    except PanpanError as error:
        return error_output(error)
    return output or Output(f"{tool.name} ended without an output", is_error=True)


def _renamed(block: AssistantContent, names: Mapping[str, str]) -> AssistantContent:
    return block.model_copy(update={"name": names[block.name]}) if isinstance(block, ToolUseBlock) else block


def _result(tool_use_id: str, output: Output) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id=tool_use_id, content=output.blocks, is_error=output.is_error)
    return ToolResultMessage(result=block, display=output.display)
