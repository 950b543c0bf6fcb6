"""The hub runs prompts of many clients as turns, and tells all of them the same."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.core.background import Background
from panpan.errors import PanpanError, ProviderError
from panpan.hub.events import (
    Delivery,
    HubEvent,
    MessageRecorded,
    PromptsReturned,
    Rewound,
    SessionUse,
    Status,
    StatusChanged,
    TaskChanged,
    TurnBegan,
    TurnClosed,
    TurnFailed,
    Warned,
)
from panpan.hub.feed import Reader
from panpan.hub.hub import Hub, hosted
from panpan.hub.preparing import MAX_AT_ONCE, PreparingPrompts
from panpan.hub.waiting_prompts import MAX_WAITING, MAX_WAITING_BYTES, MAX_WAITING_OF_CLIENT, WaitingPrompt
from panpan.session.budget.spending import ModelCosts, Spending
from panpan.session.capability import Capability
from panpan.session.command import CommandResult, NoCommands
from panpan.session.frontend import Askers
from panpan.session.session import Session
from panpan.types.events import CommandRan, RetryScheduled, TaskInfo, TextDelta, TurnEnded
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage
from tests.faces.terminal.work_fixtures import HeldLLM, until
from tests.fakes.background import FakeBackground, task
from tests.fakes.hub import Commands, hub_of
from tests.fakes.scripted_llm import call, say
from tests.fakes.session import session_in
from tests.fakes.tools import FakeTool

DELIVERIES: tuple[Delivery, ...] = ("queue", "steer")


@dataclass
class Running:
    hub: Hub
    llm: HeldLLM
    reader: Reader

    async def begin(self, text: str, **options: Any) -> None:
        """Send a prompt, and wait until the model is asked."""
        asked = len(self.llm.requests)
        await self.hub.submit(text, **options)
        await until(lambda: len(self.llm.requests) > asked)

    async def finish(self, requests: int = 1) -> list[HubEvent]:
        """Let requests be answered, wait for the end, and return what a client was told so far."""
        self.llm.let_go(requests)
        with anyio.fail_after(20):
            await self.hub.idle()
        return self.told

    @property
    def told(self) -> list[HubEvent]:
        return [one.event for one in self.reader.take_now()]


@asynccontextmanager
async def running(root: Path, *replies: Any, tools: Any = (), **parts: Any) -> AsyncGenerator[Running, None]:
    llm = HeldLLM(*replies)
    async with hub_of(session_in(root, llm, *tools, warn=lambda text: None, **parts)) as hub:
        yield Running(hub, llm, hub.read(0))


def opened_in(root: Path, askers: Askers, warn: Callable[[str], None]) -> Session:
    return session_in(root, HeldLLM(), ask=askers.permission, warn=warn)


def of(kind: type, events: list[HubEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def test_two_readers_are_told_the_same_of_a_turn(tmp_path: Path) -> None:
    async with running(tmp_path, say("hello")) as it:
        other = it.hub.read(0)
        await it.begin("go", client="a")
        events = await it.finish()
        again = [one.event for one in other.take_now()]

    assert events == again
    began = of(TurnBegan, events)
    assert [(one.prompt.text, one.client) for one in began] == [("go", "a")]
    assert [one.text for one in of(TextDelta, events)] == ["hello"]
    assert isinstance(events[-1], StatusChanged)
    kept = [event for event in events if isinstance(event, TurnEnded | TurnClosed)]
    assert [type(event) for event in kept] == [TurnEnded, TurnClosed]


async def test_prompts_queue_or_join_the_running_turn(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("first", client="a")
        await it.hub.submit("second", client="b")
        await it.hub.submit("at once", client="b", delivery="steer")
        assert it.hub.status.waiting == 2
        await it.finish(3)

    assert it.llm.asked == [["first"], ["first", "at once"], ["first", "at once", "second"]]


async def test_steering_without_a_turn_begins_one(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("go", delivery="steer")
        await it.finish()

    assert it.llm.asked == [["go"]]


async def test_prompts_beyond_the_most_are_refused_and_others_run(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("go")
        for number in range(MAX_WAITING):
            it.hub.put(WaitingPrompt(UserMessage.of(f"{number}")), "steer" if number % 2 else "queue")
        for delivery in DELIVERIES:
            with pytest.raises(PanpanError, match="1,000 prompts wait in this session already; send this one later"):
                await it.hub.submit("one more", delivery=delivery)
        assert it.hub.status.waiting == MAX_WAITING
        assert it.hub.take_back() is not None
        await it.hub.submit("one more")
        assert it.hub.status.waiting == MAX_WAITING


async def test_prompts_beyond_their_memory_are_refused(tmp_path: Path) -> None:
    large = "x" * (MAX_WAITING_BYTES // 3)
    async with running(tmp_path) as it:
        await it.begin("go")
        it.hub.put(WaitingPrompt(UserMessage.of(large)))
        it.hub.put(WaitingPrompt(UserMessage.of(large)), "steer")
        with pytest.raises(PanpanError, match="prompts of 100 MB wait in this session already; send this one later"):
            it.hub.put(WaitingPrompt(UserMessage.of(large + "and more")))
        it.hub.put(WaitingPrompt(UserMessage.of("small")))
        assert it.hub.status.waiting == 3


async def test_prompts_of_one_joined_client_leave_room_for_others(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        it.hub.joined("a")
        await it.begin("go")
        for number in range(MAX_WAITING_OF_CLIENT):
            await it.hub.submit(f"{number}", client="a", delivery="steer" if number % 2 else "queue")
        with pytest.raises(PanpanError, match="100 prompts of yours wait already; send this one later"):
            await it.hub.submit("one more", client="a")
        await it.hub.submit("of the host", client="terminal")
        it.hub.take_back("a")
        await it.hub.submit("one more", client="a")
        assert it.hub.status.waiting == MAX_WAITING_OF_CLIENT + 1


async def test_status_tells_cost_and_context_after_a_round(tmp_path: Path) -> None:
    look = FakeTool()
    async with running(tmp_path, call(("1", look.name, {})), say("hello " * 100), tools=[look]) as it:
        await it.begin("go")
        it.hub.session.budget.count(Spending({"m": ModelCosts("m", known_cost_usd=0.5)}))
        events = await it.finish(2)

    uses = [one.status.use for one in of(StatusChanged, events)]
    assert uses[0] == SessionUse()
    assert uses[-1].cost_usd == 0.5
    assert uses[-1].context_tokens >= 150


async def test_warnings_of_the_session_reach_its_face_and_all_clients(tmp_path: Path) -> None:
    printed = list[str]()
    opened = partial(opened_in, tmp_path)
    async with hosted(opened, printed.append) as hub:
        reader = hub.read()
        hub.session.agent.warn("mind the gap")
        told = [one.event for one in reader.take_now()]

    assert printed == ["mind the gap"]
    assert told == [Warned("mind the gap")]


async def test_interrupt_returns_some_prompts_and_runs_the_others(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("go", client="a")
        await it.hub.submit("typed", client="a", is_returned=True)
        await it.hub.submit("sent", client="b")
        await it.hub.submit("steered", client="a", is_returned=True, delivery="steer")
        assert it.hub.interrupt()
        assert not it.hub.interrupt(), "it is told already"
        events = await it.finish()

    [returned] = of(PromptsReturned, events)
    assert ([one.text for one in returned.prompts], returned.client) == (["steered", "typed"], "a")
    assert it.llm.asked[-1][-1] == "sent"
    assert len(it.llm.asked) == 2


async def test_turn_that_fails_is_told_with_its_error(tmp_path: Path) -> None:
    async with running(tmp_path, ProviderError("the model is gone"), say("back")) as it:
        await it.begin("go")
        await it.hub.submit("typed", is_returned=True)
        failed = await it.finish()
        await it.begin("again")
        events = await it.finish()

    assert [str(one.error) for one in of(TurnFailed, failed)] == ["the model is gone"]
    assert [one.prompts[0].text for one in of(PromptsReturned, failed)] == ["typed"]
    assert of(TurnFailed, events) == []


async def test_take_back_and_withdraw_touch_only_ones_own(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("go", client="a")
        for number, client in enumerate("abab"):
            await it.hub.submit(f"{client}{number}", client=client, delivery="steer" if number < 2 else "queue")

        taken = it.hub.take_back("a")
        withdrawn = it.hub.withdraw("b")
        await it.finish(2)

    assert taken is not None
    assert taken.text == "a2"
    assert [one.text for one in withdrawn] == ["b1", "b3"]
    assert it.llm.asked[-1] == ["go", "a0"]


@pytest.mark.parametrize("delivery", ["steer", "queue"])
async def test_withdraw_takes_one_prompt_by_its_id(tmp_path: Path, delivery: Delivery) -> None:
    first, second = UserMessage.of("first"), UserMessage.of("second")
    async with running(tmp_path) as it:
        await it.begin("go")
        for message in (first, second):
            await it.hub.submit(message, client="a", delivery=delivery)
        withdrawn = it.hub.withdraw("a", second.uuid)
        others = it.hub.withdraw("b", first.uuid)
        await it.finish(2)

    assert [one.text for one in withdrawn] == ["second"]
    assert others == []
    assert it.llm.asked[-1][-1] == "first"


async def test_status_tells_retry_question_and_waiting_prompts(tmp_path: Path) -> None:
    def retry(request: Any) -> AssistantMessage:
        return say("there")

    async with running(tmp_path, retry) as it:
        assert it.hub.status == Status(mode="default", model="scripted")
        await it.begin("go")
        assert it.hub.status.activity == "busy"
        it.hub._publish(RetryScheduled(2, "overloaded", 30.0))
        status = it.hub.status
        assert (status.activity, status.attempt, status.reason) == ("retrying", 2, "overloaded")
        assert status.retry_at > 0
        it.hub.session.set_permission_mode("plan")
        it.hub.session.rename("a title")
        events = await it.finish()

    told = [one.status for one in of(StatusChanged, events)]
    assert [one.activity for one in told if one.activity != "busy"][-1] == "idle"
    assert any(one.mode == "plan" for one in told)
    assert told[-1].title == "a title"


async def test_results_of_an_interrupted_turn_are_told(tmp_path: Path) -> None:
    sleep = FakeTool()
    async with running(tmp_path, call(("1", sleep.name, {"seconds": 60})), tools=[sleep]) as it:
        await it.begin("go")
        it.llm.let_go()
        await until(lambda: sleep.peak)
        it.hub.interrupt()
        await it.hub.idle()
        events = it.told
        messages = it.hub.session.conversation.messages

    recorded = [one.message for one in of(MessageRecorded, events)]
    assert [type(one) for one in recorded] == [ToolResultMessage]
    assert recorded == list(messages[-1:])
    assert type(events[-2]) is TurnClosed, "and all of it before the turn is closed"


async def test_notes_wait_for_the_turn_and_are_told(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("go")
        it.hub.note(UserMessage.of("a command ran"))
        events = await it.finish()
        it.hub.note(UserMessage.of("another"))

        assert [one.message.text for one in of(MessageRecorded, events)] == ["a command ran"]
        assert [one.message.text for one in of(MessageRecorded, it.told)] == ["another"]


async def test_rewind_is_told_with_the_last_message_that_is_left(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("first")
        await it.finish()
        await it.begin("second")
        await it.finish()
        messages = it.hub.session.conversation.messages
        prompt = next(one for one in messages if isinstance(one, UserMessage) and one.text == "second")
        left = messages[messages.index(prompt) - 1].uuid
        await it.hub.session.rewind(prompt.uuid)

        assert of(Rewound, it.told) == [Rewound(left)]


async def test_command_runs_after_the_turn_however_it_is_sent(tmp_path: Path) -> None:
    async with running(tmp_path, commands=Commands()) as it:
        await it.begin("go")
        await it.hub.submit("/hello", delivery="steer")
        events = await it.finish()

    assert [one.text for one in of(CommandRan, events)] == ["hello there"]
    assert [one.prompt.text for one in of(TurnBegan, events)] == ["go", "/hello"]
    assert len(it.llm.requests) == 1


async def test_prompts_of_a_command_are_told_before_their_replies(tmp_path: Path) -> None:
    async with running(tmp_path, commands=Commands()) as it:
        await it.begin("/ask")
        events = await it.finish(2)

    told = [event for event in events if isinstance(event, TurnBegan | MessageRecorded | AssistantMessage | TurnClosed)]
    assert [type(one).__name__ for one in told] == [
        "TurnBegan",
        *["MessageRecorded", "AssistantMessage"] * 2,
        "TurnClosed",
    ]
    assert [one.message.text for one in of(MessageRecorded, told)] == ["one", "two"]


async def test_closing_the_hub_ends_the_turn_and_keeps_a_valid_log(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("go")
        it.hub.note(UserMessage.of("a command ran"))

    assert [one.text for one in it.hub.session.conversation.messages] == ["go", "a command ran"]
    assert not it.hub.is_busy


class Interrupting(Capability):
    """Interrupts the client whose prompt it prepares, and does not wait afterwards."""

    name = "interrupting"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def prepare_message(self, message: UserMessage) -> UserMessage:
        self._hub.cancel("a")
        return message


async def test_interrupt_at_the_end_of_preparing_drops_the_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        it.hub.session.capabilities.add(Interrupting(it.hub))
        with pytest.raises(PanpanError, match="interrupted before it was sent"):
            await it.hub.submit("go", client="a")
        await anyio.wait_all_tasks_blocked()

    assert of(TurnBegan, it.told) == []


async def test_prompts_that_are_prepared_at_once_are_bounded() -> None:
    preparing = PreparingPrompts()
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            async with preparing.turn_of("a", "m1"):
                await anyio.sleep_forever()

        for _ in range(MAX_AT_ONCE):
            tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(PanpanError, match="100 prompts are being sent already; wait for their responses"):
            with anyio.fail_after(20):
                async with preparing.turn_of("a", "m2"):
                    pass
        async with preparing.turn_of("b", "m3"):
            tasks.cancel_scope.cancel()


async def test_ended_hub_returns_all_prompts_and_takes_no_more(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("go")
        await it.hub.submit("later", client="a")
        await it.hub.submit("at once", client="b", delivery="steer")
        it.hub.end()
        with pytest.raises(PanpanError, match="closed before the prompt was sent; open it again"):
            await it.hub.submit("too late")
        await until(lambda: bool(of(TurnClosed, [one.event for one in Reader(it.hub.feed, 0).take_now()])))
    events = it.told

    returned = {one.client: [prompt.text for prompt in one.prompts] for one in of(PromptsReturned, events)}
    assert returned == {"a": ["later"], "b": ["at once"]}
    assert it.llm.asked == [["go"]]


async def test_bug_in_a_turn_ends_the_hub(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with running(tmp_path, ZeroDivisionError()) as it:
            it.llm.let_go()
            it.hub.put(WaitingPrompt(UserMessage.of("go")))
            await anyio.sleep_forever()


async def test_no_turn_begins_while_the_hub_is_held(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        with it.hub.held(), it.hub.session.agent.exclusive():
            await it.hub.submit("go", client="b")
            it.hub.wake()
            await anyio.wait_all_tasks_blocked()
            assert it.hub.is_busy
            assert it.hub.status.waiting == 1
            await it.hub.submit("second thoughts", client="b")
            assert (back := it.hub.take_back("b")) is not None
            assert back.text == "second thoughts"
        await it.finish()

    assert it.llm.asked == [["go"]]


async def test_prompts_of_a_client_that_left_run_after_a_stop(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.begin("go", client="a")
        await it.hub.submit("steered", client="b", is_returned=True, delivery="steer")
        await it.hub.submit("queued", client="b", is_returned=True)
        await it.hub.submit("mine", client="a", is_returned=True)
        it.hub.left("b")
        it.hub.interrupt()
        events = await it.finish(2)

    assert [[one.text for one in event.prompts] for event in of(PromptsReturned, events)] == [["mine"]]
    assert [asked[-1] for asked in it.llm.asked] == ["go", "steered", "queued"]


class SlowCommand(NoCommands):
    """`/slow`, which never ends by itself."""

    def line_in(self, text: str) -> str | None:
        return text if text.startswith("/") else None

    async def run(self, line: str, session: Any) -> CommandResult:
        await anyio.sleep_forever()
        raise AssertionError


async def test_interrupt_ends_a_slash_command(tmp_path: Path) -> None:
    async with running(tmp_path, commands=SlowCommand()) as it:
        await it.hub.submit("/slow", client="a")
        await until(lambda: it.hub.is_busy and not it.hub.queued)
        await anyio.wait_all_tasks_blocked()
        assert it.hub.interrupt()
        assert not it.hub.interrupt(), "it is told already"
        with anyio.fail_after(20):
            await it.hub.idle()
        [ended] = of(TurnEnded, it.told)
        await it.begin("and on")
        await it.finish()

    assert ended.is_interrupted
    assert it.llm.asked == [["and on"]]


async def test_bug_in_a_turn_of_another_program_fails_it_alone(tmp_path: Path) -> None:
    async with running(tmp_path, ZeroDivisionError(), say("back")) as it:
        await it.begin("nonsense", client="window")
        failed = await it.finish()
        await it.begin("go on")
        await it.finish()

    assert [str(one.error) for one in of(TurnFailed, failed)] == [
        "an unexpected ZeroDivisionError ended the turn; say it in other words, or report it"
    ]
    assert it.llm.asked[-1] == ["nonsense", "go on"]


class Watched(FakeBackground, Background):  # type: ignore[misc]  # with the parts that are needed
    """Background tasks that a session offers."""

    tasks: list[TaskInfo]
    movable: list[str]
    keeps: bool
    tasks = movable = keeps = None  # type: ignore[assignment]  # no properties here


async def test_background_tasks_are_told_when_they_begin_and_end(tmp_path: Path) -> None:
    background = Watched(task("3fa80001"))  # type: ignore[abstract]
    async with running(tmp_path, has_background=False, offers=[background]) as it:
        await anyio.wait_all_tasks_blocked()
        background.start(begun := task("3fa80002"))
        await anyio.wait_all_tasks_blocked()
        ended = [background.end("3fa80001"), background.end("3fa80002", "failed")]
        await anyio.wait_all_tasks_blocked()

        assert [one.task for one in of(TaskChanged, it.told)] == [begun, *ended]
