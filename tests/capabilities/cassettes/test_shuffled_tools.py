"""The order in which tools end that run side by side changes nothing of a conversation."""

import os
import random
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint

from panpan.capabilities.cassettes.requests import transcript_hash
from panpan.types.events import Event, ToolFinished
from tests.capabilities.cassettes.cassette_fixtures import Place

IS_SOAK = "PANPAN_SOAK" in os.environ
REPLAYS = 1_000 if IS_SOAK else 20
READS = 8

pytestmark = pytest.mark.timeout(7200 if IS_SOAK else 120)


def reads(round_: int) -> str:
    calls = "".join(f'[[reply.tool_use]]\nname = "Read"\ninput = {{ file_path = "{n}.txt" }}\n' for n in range(READS))
    return f'[[reply]]\ntext = "Round {round_}."\n{calls}'


async def test_shuffled_tools_give_the_same_transcript(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in range(READS):
        (place.workspace / f"{number}.txt").write_text(f"this is {number}\n")
    tape = f'version = 1\n{reads(1)}{reads(2)}[[reply]]\ntext = "Done."\n'
    recorded = await place.record("read all", tape=tape)
    rng = random.Random(20_261_122)
    transcripts: set[str] = set()
    orders: set[tuple[str, ...]] = set()

    async def some_steps() -> None:
        for _ in range(rng.randrange(12)):
            await checkpoint()

    for _ in range(REPLAYS):
        order: list[str] = []

        async def show(event: Event, order: list[str] = order) -> None:
            if isinstance(event, ToolFinished):
                order.append(event.tool_use_id)

        report = await place.replay("strict", recorded=recorded, wait=some_steps, show=show)
        assert report.is_same, report
        transcripts.add(report.transcript)
        orders.add(tuple(order))

    assert transcripts == {transcript_hash(recorded.messages)}
    assert len(orders) > REPLAYS / 2
