"""Input between turns reaches the model in order, once, and in its own time."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from panpan.cli_kit.stdin import StdinReader
from panpan.errors import ConfigError
from panpan.faces.headless import prompts
from panpan.faces.headless.prompts import Prompt, PromptReader, prompts_of_json_lines
from panpan.session.turn import Steering
from panpan.types.content import TextBlock
from panpan.types.messages import UserMessage


async def given(*prompts: tuple[str, bool], failure: str = "") -> AsyncGenerator[Prompt, None]:
    for text, is_next in prompts:
        yield Prompt(UserMessage.of(text), is_for_next_round=is_next)
    if failure:
        raise ConfigError(failure)


def into(steering: Steering) -> Callable[[UserMessage], Awaitable[bool]]:
    """Steers every message but slash commands, with something attached."""

    async def steer(message: UserMessage) -> bool:
        if message.typed.startswith("/"):
            return False
        steering.add(message.model_copy(update={"content": (*message.content, TextBlock(text="attached"))}))
        return True

    return steer


def queue_of(prompts: AsyncGenerator[Prompt, None]) -> PromptReader:
    steering = Steering()
    return PromptReader(prompts, steering, into(steering))


async def rest(queue: PromptReader) -> list[str]:
    texts = []
    while (message := await queue.next()) is not None:
        texts.append(message.text)
    return texts


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_prompts_without_a_turn_begin_one_in_order(backend: str) -> None:
    async def main() -> None:
        queue = queue_of(given(("a", False), ("b", True), ("c", False)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.read)
            assert await rest(queue) == ["a", "b", "c"]

    anyio.run(main, backend=backend)


async def test_prompts_a_turn_did_not_take_come_first_after_it() -> None:
    steering = Steering()
    queue = PromptReader(given(("a", False), ("b", True), ("c", True)), steering, into(steering))
    with queue.turn():
        await queue.read()

    assert [message.text for message in steering.waiting] == ["b\nattached", "c\nattached"]
    assert [message.typed for message in queue.waiting] == ["b", "c", "a"]
    assert await rest(queue) == ["b", "c", "a"]
    assert queue.waiting == ()


async def test_queue_keeps_a_slash_command_for_a_turn_of_its_own() -> None:
    steering = Steering()
    queue = PromptReader(given(("/compact", True), ("b", True)), steering, into(steering))
    with queue.turn():
        await queue.read()

    assert [message.typed for message in steering.waiting] == ["b"]
    assert await rest(queue) == ["b", "/compact"]


async def test_unreadable_input_is_reported_behind_readable_prompts() -> None:
    queue = queue_of(given(("a", False), failure="line 2"))
    await queue.read()

    assert await queue.next() is not None
    with pytest.raises(ConfigError, match="line 2"):
        await queue.next()


async def test_endless_input_is_read_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "MOST_WAITING", 3)
    queue = queue_of(given(*((str(number), bool(number % 2)) for number in range(50))))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.read)
        with queue.turn():
            for _ in range(20):
                await checkpoint()
            assert len(queue.waiting) == 3
        assert sorted(map(int, await rest(queue))) == list(range(50))


@pytest.mark.parametrize(
    ("fields", "is_next"), [("", False), (',"priority":"later"', False), (',"priority":"next"', True)]
)
async def test_line_says_when_it_wants_to_arrive(tmp_path: Path, fields: str, is_next: bool) -> None:
    (tmp_path / "in").write_text(f'{{"type":"user","message":{{"role":"user","content":"x"}}{fields}}}\n')
    with (tmp_path / "in").open() as file:
        (prompt,) = [prompt async for prompt in prompts_of_json_lines(StdinReader(file))]

    assert prompt.is_for_next_round is is_next


@pytest.mark.parametrize("priority", ['"soon"', "3", "[]", "null"])
async def test_other_priority_is_refused(tmp_path: Path, priority: str) -> None:
    (tmp_path / "in").write_text(f'{{"type":"user","message":{{"content":"x"}},"priority":{priority}}}\n')
    with (tmp_path / "in").open() as file, pytest.raises(ConfigError, match=r"line 1 .* priority .*next or later"):
        await anext(prompts_of_json_lines(StdinReader(file)))
