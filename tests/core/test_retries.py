"""A call that the sandbox made fail runs once more, within itself, where a hook allows it or the user says yes."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from pydantic import BaseModel

from panpan.core.hooks import Hook, ToolCall
from panpan.core.tool import Tool, ToolContext
from panpan.core.tool_executor import ToolExecutor
from panpan.types.content import ToolUseBlock
from panpan.types.events import Output, PermissionDecided, ToolEvent, ToolStarted, ToolYield
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import (
    Allow,
    Ask,
    Box,
    Decision,
    Deny,
    Offer,
    Opening,
    PermissionAnswer,
    Reason,
    SandboxDenial,
)
from tests.fakes.askers import ScriptedAsker
from tests.fakes.context import context_in

OUTSIDE = Opening("off")
YES = PermissionAnswer(is_allowed=True, opening=OUTSIDE)


class Nothing(BaseModel):
    """No arguments."""


class Fetches(Tool[Nothing]):
    """Works outside the sandbox, or in the usual box; elsewhere it fails, and says by what."""

    name = "Fetch"
    input_model = Nothing
    question_template = "Fetch it?"

    def __init__(self, works_in: Sequence[Box] = ()) -> None:
        self.works_in = works_in
        self.ran: list[str] = []
        self.approved: list[frozenset[Path]] = []

    def title(self, args: Nothing) -> str:
        return "all"

    async def run(self, args: Nothing, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        is_outside = ctx.opening is not None and ctx.opening.use == "off"
        self.ran.append("outside" if is_outside else ctx.box)
        self.approved.append(ctx.paths.approved)
        if is_outside or ctx.box in self.works_in:
            yield Output("fetched")
        else:
            blocked = SandboxDenial("the sandbox blocks the network", "off", box=ctx.box)
            yield Output("no network", is_error=True, blocked=blocked)


class Retries(Hook):
    """Allows each call, and decides about a retry as it is told."""

    def __init__(self, first: Decision, again: Decision | None) -> None:
        self.first, self.again = first, again
        self.seen: list[SandboxDenial] = []
        self.ended: list[str] = []

    async def before_tool(self, call: ToolCall) -> Decision:
        return self.first

    async def after_sandbox_denial(self, call: ToolCall, blocked: SandboxDenial) -> Decision | None:
        self.seen.append(blocked)
        return self.again

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        self.ended.append(output.text)
        return output


FINE = Allow(Reason("fine"))
QUESTION = Ask(Reason("the rule"), is_protected=True, offer=Offer(openings=(OUTSIDE,)))


async def run(
    tmp_path: Path, tool: Fetches, hook: Retries, answer: PermissionAnswer = YES
) -> tuple[str, list[ToolEvent], ScriptedAsker]:
    """Return the result of one call, its events, and what was asked."""
    asker = ScriptedAsker(answer)
    executor = ToolExecutor({tool.name: tool}, context_in(tmp_path), (hook,), ask=asker)
    async with executor, aclosing(executor.run([ToolUseBlock(id="1", name=tool.name, input={})])) as running:
        events = [event async for event in running]
    (result,) = (event for event in events if isinstance(event, ToolResultMessage))
    return result.text, events, asker


async def test_retry_after_a_yes_runs_the_call_with_more(tmp_path: Path) -> None:
    tool, hook = Fetches(), Retries(FINE, QUESTION)

    text, events, asker = await run(tmp_path, tool, hook)

    assert tool.ran == ["usual", "outside"]
    assert text == "fetched"
    (question,) = asker.questions
    assert (question.head, question.reason) == ("Run it again?", "the sandbox blocks the network")
    assert question.offer.openings == (OUTSIDE,)
    assert [event.is_allowed for event in events if isinstance(event, PermissionDecided)] == [True, True]
    titles = [event.title for event in events if isinstance(event, ToolStarted)]
    assert titles[1] == f"{titles[0]} (outside the sandbox)"
    assert hook.ended == ["fetched"], "hooks see one call, with what came of it at last"


async def test_retry_refused_keeps_the_failure_and_tells_the_model(tmp_path: Path) -> None:
    tool = Fetches()

    no = PermissionAnswer(is_allowed=False, feedback="The user refused it and said: use the mirror")
    text, events, _ = await run(tmp_path, tool, Retries(FINE, QUESTION), no)

    assert tool.ran == ["usual"]
    assert text == "no network\n[The user was asked to run it again: The user refused it and said: use the mirror]"
    first, again = [event for event in events if isinstance(event, PermissionDecided)]
    assert (first.is_allowed, again.is_allowed, again.asked_of) == (True, False, "a person")
    assert again.digest == first.digest


async def test_retry_without_a_person_keeps_the_failure(tmp_path: Path) -> None:
    nobody = PermissionAnswer(is_allowed=False, is_persons=False)

    text, _, _ = await run(tmp_path, Fetches(), Retries(FINE, QUESTION), nobody)

    assert text == "no network"


async def test_retry_needs_a_hook_that_allows_it(tmp_path: Path) -> None:
    for again in (None, Deny(Reason("plan mode"))):
        tool = Fetches()
        text, _, asker = await run(tmp_path, tool, Retries(FINE, again))
        assert (tool.ran, text, asker.questions) == (["usual"], "no network", [])


async def test_retry_in_a_wider_box_needs_no_question(tmp_path: Path) -> None:
    tool = Fetches(works_in=("unasked",))
    hook = Retries(Allow(Reason("it looks"), box="looking"), Allow(Reason("auto"), box="unasked"))

    text, _, asker = await run(tmp_path, tool, hook)

    assert (tool.ran, text, asker.questions) == (["looking", "unasked"], "fetched", [])


async def test_retry_asks_again_while_something_else_blocks(tmp_path: Path) -> None:
    class Widens(Retries):
        async def after_sandbox_denial(self, call: ToolCall, blocked: SandboxDenial) -> Decision:
            return Ask(Reason("wider"), box="unasked" if blocked.box == "looking" else "usual")

    tool, hook = Fetches(works_in=("usual",)), Widens(Allow(Reason("it looks"), box="looking"), None)
    text, _, asker = await run(tmp_path, tool, hook, PermissionAnswer(is_allowed=True))

    assert (tool.ran, text, len(asker.questions)) == (["looking", "unasked", "usual"], "fetched", 2)


async def test_retry_keeps_the_paths_approved_for_the_first_attempt(tmp_path: Path) -> None:
    tool, place = Fetches(), tmp_path / ".envrc"

    await run(tmp_path, tool, Retries(Allow(Reason("fine"), frozenset({place})), QUESTION))

    assert tool.approved == [frozenset({place})] * 2


class Moves(Fetches):
    """Ends in another folder, as `cd sub && make` does."""

    def __init__(self, *, removes: bool = False) -> None:
        super().__init__()
        self.began_in: list[Path] = []
        self.removes = removes

    async def run(self, args: Nothing, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        self.began_in.append(ctx.paths.cwd)
        ctx.paths.change_directory(ctx.paths.root / "sub")
        if self.removes:
            self.began_in[0].rmdir()
        async for item in super().run(args, ctx):
            yield item


async def test_retry_begins_in_the_folder_of_the_first_attempt(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    tool = Moves()

    await run(tmp_path, tool, Retries(FINE, QUESTION))

    assert tool.began_in == [tmp_path, tmp_path]


@pytest.mark.parametrize("comes", ["nothing", "a link"])
async def test_retry_whose_folder_is_gone_does_not_run(tmp_path: Path, comes: str) -> None:
    (tmp_path / "sub").mkdir()
    (begins := tmp_path / "here").mkdir()
    tool, context = Moves(removes=True), context_in(tmp_path)
    context.paths.change_directory(begins)

    class Links(Retries):
        async def after_sandbox_denial(self, call: ToolCall, blocked: SandboxDenial) -> Decision | None:
            if comes == "a link":
                begins.symlink_to("sub")
            return await super().after_sandbox_denial(call, blocked)

    executor = ToolExecutor({tool.name: tool}, context, (Links(FINE, QUESTION),), ask=ScriptedAsker(YES))
    async with executor, aclosing(executor.run([ToolUseBlock(id="1", name=tool.name, input={})])) as running:
        (result,) = [event async for event in running if isinstance(event, ToolResultMessage)]

    assert tool.ran == ["usual"]
    assert result.text.startswith("no network\n[it was not run again: ")


async def test_retry_denied_by_a_guard_keeps_the_first_output(tmp_path: Path) -> None:
    class Fails(Retries):
        def denies_all(self) -> Deny | None:
            return Deny(Reason("a guard failed")) if self.seen else None

    tool = Fetches()
    text, _, _ = await run(tmp_path, tool, Fails(FINE, QUESTION))

    assert (tool.ran, text) == (["usual"], "no network\n[it was not run again: a guard failed]")
