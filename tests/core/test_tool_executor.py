"""Calls that touch different files run together, others in order, and every call gets exactly one result."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from panpan.core.effects import Effects
from panpan.core.hooks import Hook, ToolCall
from panpan.core.leases import FileUse, Leases
from panpan.core.tool import Tool, ToolContext
from panpan.core.tool_executor import ToolExecutor
from panpan.errors import SessionLogError, ToolError
from panpan.types.content import ToolUseBlock
from panpan.types.events import (
    Output,
    PermissionDecided,
    ToolEvent,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    ToolYield,
    Waiting,
)
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import Allow, Ask, Asker, Decision, Deny, PermissionAnswer, Reason
from tests.fakes.askers import ScriptedAsker, no, yes
from tests.fakes.context import context_in
from tests.fakes.ledger import FakeLedger
from tests.fakes.tools import FailingTool, FakeTool, FileTool, changing, looking, refusing

Main = Callable[[], Coroutine[Any, Any, None]]

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Callable[[Main], None]:
    """Runs a test's main on each event loop; a plain function, since the async runner knows asyncio only."""
    return lambda main: anyio.run(main, backend=request.param)


@asynccontextmanager
async def executor_of(
    root: Path,
    *tools: Tool[Any],
    hooks: tuple[Hook, ...] = (),
    ask: Asker | None = None,
    note_start: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[ToolExecutor]:
    executor = ToolExecutor(
        {tool.name: tool for tool in tools}, context_in(root), hooks, ask=ask or yes(), ledger=FakeLedger(note_start)
    )
    async with executor:
        yield executor


async def collect(executor: ToolExecutor, *uses: ToolUseBlock) -> list[ToolEvent]:
    async with aclosing(executor.run(uses)) as events:
        return [event async for event in events]


def use(id_: str, name: str, **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(id=id_, name=name, input=arguments)


def results_of(events: list[ToolEvent]) -> list[ToolResultMessage]:
    return [event for event in events if isinstance(event, ToolResultMessage)]


def test_executor_runs_reads_together_then_the_edit_alone(tmp_path: Path, run: Callable[[Main], None]) -> None:
    """The worked example that the project began with: [Read 1, Read 2, Glob 3, Edit 4]."""
    log: list[str] = []
    read, glob, edit = FakeTool("Read", log=log), FakeTool("Glob", log=log), changing(log)
    edit.name = "Edit"  # type: ignore[misc]

    async def main() -> None:
        async with executor_of(tmp_path, read, glob, edit) as executor:
            events = await collect(
                executor,
                use("1", "Read", seconds=0.06),
                use("2", "Read", seconds=0.02),
                use("3", "Glob", seconds=0.04),
                use("4", "Edit"),
            )
        assert [result.tool_use_id for result in results_of(events)] == ["1", "2", "3", "4"]
        assert not any(result.is_error for result in results_of(events))
        begins = {line for line in log[:3]}
        assert begins == {"Read 1 begins", "Read 2 begins", "Glob 3 begins"}
        assert log[-2:] == ["Edit 4 begins", "Edit 4 ends"]
        assert log.index("Edit 4 begins") > log.index("Read 1 ends")

    run(main)


def test_executor_runs_changes_one_by_one_in_order(tmp_path: Path, run: Callable[[Main], None]) -> None:
    log: list[str] = []
    look, change = looking(log), changing(log)

    async def main() -> None:
        async with executor_of(tmp_path, look, change) as executor:
            await collect(executor, use("1", "Change"), use("2", "Change"), use("3", "Look"), use("4", "Change"))
        assert change.peak == 1
        assert [line.split()[1] for line in log] == ["1", "1", "2", "2", "3", "3", "4", "4"]

    run(main)


def test_executor_runs_at_most_ten_at_once(tmp_path: Path, run: Callable[[Main], None]) -> None:
    look = looking()

    async def main() -> None:
        async with executor_of(tmp_path, look) as executor:
            events = await collect(executor, *(use(str(n), "Look", seconds=0.01 + n / 1e6) for n in range(25)))
        assert look.peak == 10
        assert len(results_of(events)) == 25

    run(main)


def edits(log: list[str]) -> tuple[FileTool, FileTool, FakeTool]:
    """Return a tool that reads a file, one that changes a file, and one of which nothing is known."""
    return FileTool("Look", changes=False, log=log), FileTool("Edit", changes=True, log=log), changing(log)


class Show(FileTool):
    """A tool that reads a file, and depends on nothing else."""

    names_reads = True


def order_of(log: list[str], *ids: str) -> list[str]:
    return [line.split(maxsplit=1)[1] for line in log if line.split()[1] in ids]


def test_changes_of_different_files_run_together(tmp_path: Path, run: Callable[[Main], None]) -> None:
    log: list[str] = []

    async def main() -> None:
        look, edit, change = edits(log)
        async with executor_of(tmp_path, look, edit, change) as executor:
            events = await collect(
                executor,
                use("1", "Edit", path="a", seconds=0.02),
                use("2", "Edit", path="b", seconds=0.01),
                use("3", "Look", path="c"),
            )
        assert [result.tool_use_id for result in results_of(events)] == ["1", "2", "3"]
        assert {*order_of(log, "1", "2")[:2]} == {"1 begins", "2 begins"}
        assert order_of(log, "1", "2", "3")[-2:] == ["3 begins", "3 ends"]  # it may depend on more than it names

    run(main)


@pytest.mark.parametrize("kinds", [("Edit", "Show"), ("Show", "Edit")])
def test_read_of_a_named_file_runs_beside_a_change_of_another(
    tmp_path: Path, run: Callable[[Main], None], kinds: tuple[str, str]
) -> None:
    log: list[str] = []

    async def main() -> None:
        show, edit = Show("Show", changes=False, log=log), FileTool("Edit", changes=True, log=log)
        async with executor_of(tmp_path, show, edit) as executor:
            calls = [use(str(n), kind, path=f"{n}", seconds=0.02) for n, kind in enumerate(kinds)]
            await collect(executor, *calls)
        assert {*order_of(log, "0", "1")[:2]} == {"0 begins", "1 begins"}

    run(main)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (use("1", "Edit", path="a", seconds=0.01), use("2", "Edit", path="./x/../a")),
        (use("1", "Edit", path="a", seconds=0.01), use("2", "Show", path="A")),
        (use("1", "Show", path="link", seconds=0.01), use("2", "Edit", path="a")),
        (use("1", "Change", seconds=0.01), use("2", "Show", path="a")),
        (use("1", "Show", path="a", seconds=0.01), use("2", "Change")),
        (use("1", "Edit", path="a", seconds=0.01), use("2", "Look", path=".")),
        (use("1", "Look", path="a", seconds=0.01), use("2", "Edit", path="a")),
        (use("1", "Change", seconds=0.01), use("2", "Look", path="a")),
        (use("1", "Edit", path="a", seconds=0.01), use("2", "Change")),
        (use("1", "Edit", path="link", seconds=0.01), use("2", "Edit", path="a")),
    ],
    ids=[
        "same-file",
        "named-read-after",
        "named-read-before",
        "named-read-after-unknown",
        "named-read-before-unknown",
        "folder-above",
        "read-before",
        "unknown-before",
        "unknown-after",
        "through-a-link",
    ],
)
def test_calls_that_may_meet_run_in_order(
    tmp_path: Path, run: Callable[[Main], None], first: ToolUseBlock, second: ToolUseBlock
) -> None:
    log: list[str] = []
    (tmp_path / "x").mkdir()
    (tmp_path / "link").symlink_to("a")

    async def main() -> None:
        show = Show("Show", changes=False, log=log)
        async with executor_of(tmp_path, show, *edits(log)) as executor:
            await collect(executor, first, second)
        assert order_of(log, "1", "2") == ["1 begins", "1 ends", "2 begins", "2 ends"]

    run(main)


def test_file_tool_that_does_not_know_all_its_files_runs_alone(tmp_path: Path, run: Callable[[Main], None]) -> None:
    log: list[str] = []

    class Unsure(FileTool):
        async def effects(self, args: Any, ctx: Any) -> Effects:
            return replace(await super().effects(args, ctx), is_complete=False)

    async def main() -> None:
        unsure = Unsure("Unsure", changes=True, log=log)
        async with executor_of(tmp_path, unsure, *edits(log)) as executor:
            await collect(executor, use("1", "Unsure", path="a", seconds=0.01), use("2", "Look", path="b"))
        assert order_of(log, "1", "2") == ["1 begins", "1 ends", "2 begins", "2 ends"]

    run(main)


def test_call_may_be_about_what_the_one_before_makes(tmp_path: Path, run: Callable[[Main], None]) -> None:
    log: list[str] = []

    class Makes(FakeTool):
        async def run(self, args: Any, ctx: Any) -> Any:
            (tmp_path / "new").mkdir()
            (tmp_path / "link").symlink_to("new")
            async for item in super().run(args, ctx):
                yield item

    async def main() -> None:
        look, edit, _ = edits(log)
        async with executor_of(tmp_path, look, edit, Makes("Make", is_read_only=False, log=log)) as executor:
            await collect(
                executor,
                use("1", "Make"),
                use("2", "Edit", path="link/a", seconds=0.01),
                use("3", "Edit", path="new/a"),
            )
        assert order_of(log, "2", "3") == ["2 begins", "2 ends", "3 begins", "3 ends"]

    run(main)


def test_change_waits_for_a_call_without_files_before_it(tmp_path: Path, run: Callable[[Main], None]) -> None:
    """Such a call may begin plan mode, or ask the user."""
    log: list[str] = []
    tools = FakeTool("Mode", log=log), FileTool("Edit", changes=True, log=log)

    async def main() -> None:
        async with executor_of(tmp_path, *tools) as executor:
            await collect(executor, use("1", "Mode", seconds=0.01), use("2", "Edit", path="a"))
        assert order_of(log, "1", "2") == ["1 begins", "1 ends", "2 begins", "2 ends"]

    run(main)


async def test_answer_to_one_question_may_decide_the_next(tmp_path: Path) -> None:
    class AllowsAfterYes(Hook):
        allows_all = False

        async def before_tool(self, call: ToolCall) -> Decision:
            return Allow(Reason("edits are accepted")) if self.allows_all else Ask(Reason("it changes a file"))

    gate, user = AllowsAfterYes(), yes()

    async def answer(question: Any) -> PermissionAnswer:
        await anyio.wait_all_tasks_blocked()  # all calls that would ask are waiting
        gate.allows_all = True
        return await user(question)

    edit = FileTool("Edit", changes=True)
    async with executor_of(tmp_path, edit, hooks=(gate,), ask=answer) as executor:
        events = await collect(executor, *(use(str(number), "Edit", path=f"f{number}") for number in range(4)))

    assert [result.is_error for result in results_of(events)] == [False] * 4
    assert len(user.questions) == 1


def test_equal_reads_share_a_result_unless_a_change_is_between(tmp_path: Path, run: Callable[[Main], None]) -> None:
    log: list[str] = []
    look, other = use("1", "Look", path="a"), use("2", "Look", path="b")

    async def main() -> None:
        async with executor_of(tmp_path, *edits(log)) as executor:
            events = await collect(
                executor,
                look,
                other,
                use("3", "Look", path="a"),
                use("4", "Edit", path="a"),
                use("5", "Look", path="a"),
            )
        assert order_of(log, "1", "3", "4", "5") == ["1 begins", "1 ends", "4 begins", "4 ends", "5 begins", "5 ends"]
        assert [result.text for result in results_of(events)] == [
            "Look 1 done",
            "Look 2 done",
            "Look 1 done",
            "Edit 4 done",
            "Look 5 done",
        ]

    run(main)


@pytest.mark.parametrize("flag", ["starts_agents", "asks_user", "waits"])
def test_calls_that_only_wait_run_together_without_slots(
    tmp_path: Path, run: Callable[[Main], None], flag: str
) -> None:
    class Waits(FakeTool):
        all_run: anyio.Event

        async def run(self, args: BaseModel, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
            self.running += 1
            if self.running == 25:
                self.all_run.set()
            await self.all_run.wait()
            yield Output("done")

    tool = Waits("Wait")
    setattr(tool, flag, True)

    async def main() -> None:
        tool.all_run = anyio.Event()
        async with executor_of(tmp_path, tool) as executor:
            with anyio.fail_after(30):
                await collect(executor, *(use(str(n), "Wait", seconds=n) for n in range(25)))
        assert tool.running == 25

    run(main)


def test_agents_calls_that_change_take_turns(tmp_path: Path, run: Callable[[Main], None]) -> None:
    """Two agents, as executors of their own, share the leases of the message that started them."""
    log: list[str] = []
    leases = Leases()

    async def agent(*uses: ToolUseBlock) -> None:
        tools = {tool.name: tool for tool in edits(log)}
        context = replace(context_in(tmp_path), leases=leases)
        async with ToolExecutor(tools, context, ask=yes(), ledger=FakeLedger(lambda _: None)) as executor:
            await collect(executor, *uses)

    async def main() -> None:
        async with anyio.create_task_group() as agents:
            agents.start_soon(agent, use("1", "Change", seconds=0.01), use("2", "Edit", path="a", seconds=0.01))
            agents.start_soon(agent, use("3", "Change", seconds=0.01), use("4", "Edit", path="a", seconds=0.01))
        for one, other in (("1", "3"), ("2", "4"), ("1", "4"), ("3", "2")):
            assert order_of(log, one, other)[1].endswith("ends")

    run(main)


async def test_call_that_had_to_wait_is_judged_again(tmp_path: Path) -> None:
    log: list[str] = []
    leases = Leases()

    class PlanModeBegins(Hook):
        async def recheck(self, call: ToolCall) -> Deny | None:
            return Deny(Reason("plan mode has begun"))

    context = replace(context_in(tmp_path), leases=leases)
    tools = {tool.name: tool for tool in edits(log)}
    executor = ToolExecutor(tools, context, (PlanModeBegins(),), ask=yes(), ledger=FakeLedger(lambda _: None))
    other = leases.ask(FileUse.of(writes=[tmp_path / "a"]))
    async with executor, anyio.create_task_group() as tasks:

        async def other_ends() -> None:
            async with other:
                await anyio.wait_all_tasks_blocked()

        tasks.start_soon(other_ends)
        events = await collect(executor, use("1", "Edit", path="a"), use("2", "Edit", path="b"))

    waited, ran = results_of(events)
    assert Waiting("another subagent is changing files") in events
    assert (waited.is_error, waited.text) == (True, "Edit was not run: plan mode has begun")
    assert (ran.is_error, executor.begun) == (False, {"2"})


def test_executor_yields_progress_and_results_before_the_slowest(tmp_path: Path, run: Callable[[Main], None]) -> None:
    look = looking()

    async def main() -> None:
        async with executor_of(tmp_path, look) as executor:
            events = await collect(executor, use("quick", "Look"), use("slow", "Look", seconds=0.05))
        kinds = [(type(event), getattr(event, "tool_use_id", "")) for event in events]
        slow_end = kinds.index((ToolFinished, "slow"))
        assert kinds.index((ToolProgress, "slow")) < slow_end
        assert kinds.index((ToolResultMessage, "quick")) < slow_end

    run(main)


def test_tool_that_raises_fails_only_its_own_call(tmp_path: Path, run: Callable[[Main], None]) -> None:
    async def main() -> None:
        async with executor_of(tmp_path, looking(), refusing(), FailingTool(KeyError("oops"), "Bug")) as executor:
            events = await collect(executor, use("1", "Fail"), use("2", "Bug"), use("3", "Look", seconds=0.02))
        refused, bug, good = results_of(events)
        assert (refused.is_error, refused.text) == (True, "it is not there; look elsewhere")
        assert bug.is_error
        assert bug.text == "Bug failed unexpectedly: KeyError: 'oops'"
        assert (good.is_error, good.text) == (False, "Look 3 done")

    run(main)


def test_tool_over_its_time_limit_is_ended(tmp_path: Path, run: Callable[[Main], None]) -> None:
    class Slow(FakeTool):
        timeout_s = 0.02

    slow = Slow("Slow")

    async def main() -> None:
        async with executor_of(tmp_path, slow) as executor:
            (result,) = results_of(await collect(executor, use("1", "Slow", seconds=60)))
        assert result.is_error
        assert "0.02 s" in result.text
        assert (slow.running, slow.cut_short) == (0, 1)

    run(main)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (use("1", "Lok"), "There is no tool named 'Lok'. Did you mean Look?"),
        (use("1", "Look", seconds="soon"), "The arguments of Look do not fit"),
        (
            ToolUseBlock(id="1", name="Look", input={}, input_error="its arguments are not JSON"),
            "The call was not run: its arguments are not JSON",
        ),
    ],
    ids=["unknown tool", "wrong arguments", "unreadable arguments"],
)
async def test_call_that_cannot_run_is_answered_with_advice(tmp_path: Path, bad: ToolUseBlock, expected: str) -> None:
    look = looking()
    async with executor_of(tmp_path, look) as executor:
        bad_result, good_result = results_of(await collect(executor, bad, use("2", "Look")))

    assert bad_result.is_error
    assert bad_result.text.startswith(expected)
    assert not good_result.is_error
    assert look.log == ["Look 2 begins", "Look 2 ends"]


def test_executor_left_early_ends_tools_and_runs_the_next_batch(tmp_path: Path, run: Callable[[Main], None]) -> None:
    look = looking()

    async def main() -> None:
        async with executor_of(tmp_path, look) as executor:
            async with aclosing(executor.run([use("1", "Look", seconds=60), use("2", "Look", seconds=60)])) as events:
                async for event in events:
                    if isinstance(event, ToolProgress):
                        break
            assert look.running == 0
            again = await collect(executor, use("3", "Look"))
        assert [result.text for result in results_of(again)] == ["Look 3 done"]

    run(main)


def test_executor_raises_the_consumers_own_error(tmp_path: Path, run: Callable[[Main], None]) -> None:
    look = looking()

    async def main() -> None:
        with pytest.raises(LookupError, match="mine"):
            async with executor_of(tmp_path, look) as executor:
                async with aclosing(executor.run([use("1", "Look", seconds=60)])) as events:
                    async for _ in events:
                        raise LookupError("mine")
        assert look.running == 0

    run(main)


def test_executor_keeps_finished_results_when_cancelled(tmp_path: Path, run: Callable[[Main], None]) -> None:
    look = looking()
    kept: dict[str, ToolResultMessage] = {}

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with executor_of(tmp_path, look) as executor:
                kept_by_executor = executor.results
                async with aclosing(executor.run([use("slow", "Look", seconds=60), use("quick", "Look")])) as events:
                    async for event in events:
                        if isinstance(event, ToolFinished):
                            scope.cancel()
        kept.update(kept_by_executor)
        assert look.running == 0
        assert {id_: result.text for id_, result in kept.items()} == {"quick": "Look quick done"}

    run(main)


class Gate(Hook):
    """Decides by tool name."""

    def __init__(self, **decisions: Decision) -> None:
        self.decisions = decisions

    async def before_tool(self, call: ToolCall) -> Decision | None:
        return self.decisions.get(call.tool.name)


@pytest.mark.parametrize(
    "hooks",
    [
        (
            Gate(Look=Deny(Reason("rule Look of the user"))),
            Gate(Look=Allow(Reason("all reads"))),
            Gate(Look=Ask(Reason("is it wise"))),
        ),
        (
            Gate(Look=Ask(Reason("is it wise"))),
            Gate(Look=Allow(Reason("all reads"))),
            Gate(Look=Deny(Reason("rule Look of the user"))),
        ),
    ],
    ids=["deny first", "deny last"],
)
async def test_deny_beats_ask_and_allow_in_any_order(tmp_path: Path, hooks: tuple[Hook, ...]) -> None:
    look, asker = looking(), yes()
    async with executor_of(tmp_path, look, hooks=hooks, ask=asker) as executor:
        events = await collect(executor, use("1", "Look"))

    assert look.log == []
    assert asker.questions == []
    reason = Reason("rule Look of the user")
    (decided,) = (event for event in events if isinstance(event, PermissionDecided))
    assert replace(decided, digest="") == PermissionDecided("1", "Look", False, reason.text, (reason,))
    assert results_of(events)[0].text == "Look was not run: rule Look of the user"


async def test_question_waits_while_other_calls_run(tmp_path: Path) -> None:
    log: list[str] = []
    answered = anyio.Event()

    class Waits:
        async def __call__(self, question: Any) -> Any:
            await answered.wait()
            log.append("answered yes")
            return await yes()(question)

    careful, look = FakeTool("Careful", log=log), looking(log)

    class Answers(Hook):
        async def after_tool(self, call: ToolCall, output: Output) -> Output:
            answered.set()
            return output

    hooks = (Gate(Careful=Ask(Reason("is it wise")), Look=Allow(Reason("fine"))), Answers())
    async with executor_of(tmp_path, careful, look, hooks=hooks, ask=Waits()) as executor:
        events = await collect(executor, use("1", "Careful"), use("2", "Look"))

    assert log.index("Look 2 ends") < log.index("answered yes") < log.index("Careful 1 begins")
    assert [result.text for result in results_of(events)] == ["Careful 1 done", "Look 2 done"]


async def test_no_reaches_the_model_with_the_users_words(tmp_path: Path) -> None:
    change = changing()
    async with executor_of(
        tmp_path, change, hooks=(Gate(Change=Ask(Reason("it changes files"))),), ask=no("Use git mv.")
    ) as ex:
        (result,) = results_of(await collect(ex, use("1", "Change")))

    assert change.log == []
    assert (result.is_error, result.text) == (True, "Change was not run. Use git mv.")


async def test_after_tool_hooks_add_to_a_result(tmp_path: Path) -> None:
    class Adds(Hook):
        async def after_tool(self, call: ToolCall, output: Output) -> Output:
            return Output(f"{output.content} and checked", is_error=output.is_error)

    async with executor_of(tmp_path, looking(), refusing(), hooks=(Adds(),)) as executor:
        good, bad = results_of(await collect(executor, use("1", "Look"), use("2", "Fail")))

    assert good.text == "Look 1 done and checked"
    assert (bad.text, bad.is_error) == ("it is not there; look elsewhere and checked", True)


async def test_after_tool_hooks_see_the_approved_paths(tmp_path: Path) -> None:
    opened: list[frozenset[Path]] = []

    class Sees(Hook):
        async def after_tool(self, call: ToolCall, output: Output) -> Output:
            opened.append(call.context.paths.approved)
            return output

    allows = Gate(Look=Allow(Reason("fine"), frozenset({tmp_path / ".envrc"})))
    async with executor_of(tmp_path, looking(), hooks=(allows, Sees())) as executor:
        await collect(executor, use("1", "Look"))

    assert opened == [frozenset({tmp_path / ".envrc"})]


async def test_tool_started_comes_only_for_calls_that_run(tmp_path: Path) -> None:
    async with executor_of(tmp_path, looking(), hooks=(Gate(Look=Deny(Reason("no"))),)) as executor:
        events = await collect(executor, use("1", "Look"), use("2", "Nope"))

    assert not [event for event in events if isinstance(event, ToolStarted | ToolFinished)]
    assert len(results_of(events)) == 2


async def test_tool_without_an_output_is_an_error(tmp_path: Path) -> None:
    class Silent(FakeTool):
        async def run(self, args: Any, ctx: Any) -> Any:
            return
            yield

    async with executor_of(tmp_path, Silent("Silent")) as executor:
        (result,) = results_of(await collect(executor, use("1", "Silent")))

    assert (result.is_error, result.text) == (True, "Silent ended without an output")


async def test_executor_raises_the_error_of_its_body_bare(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="bare"):
        async with executor_of(tmp_path):
            raise ToolError("bare")


async def test_executor_notes_a_changing_call_before_it_runs(tmp_path: Path) -> None:
    log: list[str] = []
    tools = (looking(log), changing(log))

    async with executor_of(tmp_path, *tools, note_start=lambda id_: log.append(f"noted {id_}")) as executor:
        await collect(executor, use("1", "Look"), use("2", "Change"), use("3", "Change", seconds="no number"))

    assert log == ["Look 1 begins", "Look 1 ends", "noted 2", "Change 2 begins", "Change 2 ends"]
    assert executor.begun == {"1", "2"}


async def test_refused_call_has_not_begun(tmp_path: Path) -> None:
    noted: list[str] = []

    class Denies(Hook):
        async def before_tool(self, call: ToolCall) -> Decision | None:
            return Deny(Reason("not today"))

    async with executor_of(tmp_path, changing(), hooks=(Denies(),), note_start=noted.append) as executor:
        await collect(executor, use("1", "Change"))

    assert (noted, executor.begun) == ([], set())


async def test_call_that_cannot_be_noted_is_not_run(tmp_path: Path) -> None:
    change = changing()

    def fails(_: str) -> None:
        raise SessionLogError("the disk is full")

    async with executor_of(tmp_path, change, note_start=fails) as executor:
        [*_, result] = await collect(executor, use("1", "Change"))

    assert isinstance(result, ToolResultMessage)
    assert (result.text, result.is_error) == ("Change was not run: the disk is full", True)
    assert (change.log, executor.begun) == ([], set())


class Unplannable(FakeTool):
    """Changes something, and knows beforehand that it cannot."""

    async def preview(self, args: Any, ctx: Any) -> None:
        raise ToolError("there is no such text")


@pytest.mark.parametrize(
    ("ask", "asks_user"),
    [
        (Ask(Reason("it changes files")), False),
        (Ask(Reason("it lies outside"), approved_paths=frozenset({Path("/elsewhere")})), True),
        (Ask(Reason("again and again", "doom-loop")), True),
    ],
    ids=["nothing-but-the-change", "a-path-that-needs-the-yes", "whether-to-go-on-at-all"],
)
async def test_question_is_not_asked_about_an_impossible_call(tmp_path: Path, ask: Ask, asks_user: bool) -> None:
    tool, user = Unplannable("Change", is_read_only=False), no()

    async with executor_of(tmp_path, tool, hooks=(Gate(Change=ask),), ask=user) as executor:
        decided, result = await collect(executor, use("1", "Change"))

    assert isinstance(decided, PermissionDecided)
    assert isinstance(result, ToolResultMessage)
    assert (decided.is_allowed, result.is_error, tool.log) == (False, True, [])
    assert bool(user.questions) is asks_user
    assert (result.text == "there is no such text") is not asks_user


@pytest.mark.parametrize(
    ("answer", "saved"),
    [
        (PermissionAnswer(is_allowed=True), []),
        (PermissionAnswer(is_allowed=True, is_remembered=True), ["Change"]),
        (PermissionAnswer(is_allowed=True, is_remembered=True, is_for_prefix=True), ["Change(like *)"]),
        (PermissionAnswer(is_allowed=False), []),
    ],
)
async def test_chosen_rule_is_saved_and_reported(tmp_path: Path, answer: PermissionAnswer, saved: list[str]) -> None:
    rules: list[str] = []

    async def remember(rule: str) -> None:
        rules.append(rule)

    ask = Ask(Reason("it changes files"), "Change", remember=remember, prefix_rule="Change(like *)")
    hooks = (Gate(Change=ask),)
    async with executor_of(tmp_path, changing(), hooks=hooks, ask=ScriptedAsker(answer)) as executor:
        decided, *_ = await collect(executor, use("1", "Change"))

    assert isinstance(decided, PermissionDecided)
    assert rules == saved
    assert decided.saved_rule == "".join(saved)
