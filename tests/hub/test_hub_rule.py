"""The rule of the hub, under many orders of what clients do: a prompt is said, returned or taken back, and once."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import anyio
import anyio.lowlevel
import pytest

from panpan.hub.events import HubEvent, MessageRecorded, PromptsReturned, TurnBegan
from panpan.hub.waiting_prompts import WaitingPrompt
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage
from tests.fakes.scripted_llm import call, say
from tests.fakes.tools import FakeTool
from tests.hub.test_hub import of, running

STEPS = [
    *["put"] * 3,
    *["steer"] * 2,
    *["answer"] * 3,
    "interrupt",
    "take back",
    "withdraw",
    "leave",
    "wake",
    "hold",
    "note",
]


def told_ids(events: Sequence[HubEvent]) -> list[str]:
    """Return the ids of the messages that events tell."""
    ids = []
    for event in events:
        match event:
            case TurnBegan(prompt=UserMessage(uuid=uuid)) | MessageRecorded(message=UserMessage(uuid=uuid)):
                ids.append(uuid)
            case MessageRecorded(message=AssistantMessage(uuid=uuid) | ToolResultMessage(uuid=uuid)):
                ids.append(uuid)
            case UserMessage(uuid=uuid) | AssistantMessage(uuid=uuid) | ToolResultMessage(uuid=uuid):
                ids.append(uuid)
            case _:
                pass
    return ids


@pytest.mark.parametrize("seed", range(25))
async def test_no_prompt_is_lost_or_runs_twice(tmp_path: Path, seed: int) -> None:
    random, tool = Random(seed), FakeTool()
    replies = [
        call((f"t{number}", tool.name, {"seconds": 0})) if random.random() < 0.4 else say(f"answer {number}")
        for number in range(400)
    ]
    sent, back = list[str](), list[str]()
    async with running(tmp_path, *replies, tools=[tool]) as it:
        hub = it.hub
        for number in range(60):
            step, client = random.choice(STEPS), random.choice("abc")
            match step:
                case "put" | "steer":
                    prompt = WaitingPrompt(UserMessage.of(f"p{number}"), client, is_returned=random.random() < 0.6)
                    sent.append(prompt.message.uuid)
                    hub.put(prompt, "steer" if step == "steer" else "queue")
                case "answer":
                    it.llm.let_go()
                case "interrupt":
                    hub.interrupt()
                case "take back":
                    back += [one.uuid for one in [hub.take_back(client)] if one is not None]
                case "withdraw":
                    back += [one.uuid for one in hub.withdraw(client)]
                case "leave":
                    hub.left(client)
                case "wake":
                    hub.wake()
                case "hold":
                    with hub.held():
                        await anyio.lowlevel.checkpoint()
                case "note":
                    hub.note(UserMessage.of("a command ran"))
            for _ in range(random.choice([0, 0, 1, 2, 5, 20])):
                await anyio.lowlevel.checkpoint()
        events = await it.finish(1_000)
        messages = [
            one
            for one in hub.session.conversation.messages
            if isinstance(one, UserMessage | AssistantMessage | ToolResultMessage)
        ]

    said = [one.uuid for one in messages if one.uuid in sent]
    returned = [one.uuid for event in of(PromptsReturned, events) for one in event.prompts]
    assert sorted([*said, *returned, *back]) == sorted(sent)
    assert sorted(told_ids(events)) == sorted(one.uuid for one in messages), "each message is told once"
