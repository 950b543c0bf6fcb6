"""Whatever a cassette says, what comes of it is a replay, a difference, or a sentence; also on the other event loop."""

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.cassettes.recorded_session import read_session
from panpan.errors import ConfigError, PanpanError
from tests.capabilities.cassettes.cassette_fixtures import Place

SOMETHING_ELSE: list[Any] = [None, "", "x", 0, -1, 1e9, True, [], {}, [None], {"a": 1}]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a piece of JSON, as what holds it and the key."""
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def damaged(lines: list[Any], rng: random.Random) -> list[Any]:
    lines = copy.deepcopy(lines)
    number = rng.randrange(len(lines))
    holder, key = rng.choice(list(places(lines[number])))
    if rng.random() < 0.2 and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = rng.choice(SOMETHING_ELSE)
    return lines


async def test_damaged_cassette_is_reported_without_a_crash(tmp_path: Path) -> None:
    place = Place(tmp_path)
    await place.record("look around")
    whole = [json.loads(line) for line in place.cassette.read_text().splitlines()]
    rng = random.Random(7)
    errors: list[str] = []

    for round_ in range(300):
        lines = damaged(whole, rng)
        place.cassette.write_text("".join(json.dumps(line) + "\n" for line in lines))
        try:
            recorded = read_session(place.cassette)
            if round_ % 10 == 0:
                await place.replay(rng.choice(["strict", "semantic", "live-tools"]), recorded=recorded)
        except PanpanError as error:
            errors.append(str(error))

    assert errors
    assert [error for error in errors if "\n" in error] == []


async def test_impossible_settings_are_blamed_on_the_cassette(tmp_path: Path) -> None:
    place = Place(tmp_path)
    await place.record("look around")
    lines = place.cassette.read_text().splitlines(keepends=True)
    place.cassette.write_text(json.dumps(json.loads(lines[0]) | {"settings": {"effort": "\x1b[2Jx"}}) + "\n")

    with pytest.raises(ConfigError, match=r"^cassette .*recorded\.jsonl:1: effort is unknown; write 'low'"):
        read_session(place.cassette)


@pytest.mark.parametrize("depth", [100, 400, 900, 5_000])
async def test_deep_nesting_is_reported(tmp_path: Path, depth: int) -> None:
    place = Place(tmp_path)
    await place.record("look around")
    text = place.cassette.read_text()
    deep = '{"a":' * depth + "1" + "}" * depth
    place.cassette.write_text(text.replace('{"file_path":"a.txt"}', deep).replace('{"file_path": "a.txt"}', deep))
    assert deep in place.cassette.read_text()

    with suppress(ConfigError):
        recorded = read_session(place.cassette)
        for mode in ("strict", "live-tools"):
            assert not (await place.replay(mode, recorded=recorded, cwd=place.workspace)).is_same  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_replay_works_on_both_event_loops(tmp_path: Path, backend: str) -> None:
    place = Place(tmp_path)

    async def both() -> None:
        await place.record("look around")
        assert (await place.replay("strict")).is_same

    anyio.run(partial(both), backend=backend)


@pytest.mark.parametrize("type_", ["cassette_request", "cassette_reply"])
@pytest.mark.parametrize("number", [None, "1", [], {"a": 1}, 1.5, True])
async def test_request_without_a_whole_number_is_damage(tmp_path: Path, type_: str, number: Any) -> None:
    place = Place(tmp_path)
    await place.record("look around")
    lines = [json.loads(line) for line in place.cassette.read_text().splitlines()]
    for line in lines:
        line |= {"number": number} if line.get("type") == type_ else {}
    place.cassette.write_text("".join(json.dumps(line) + "\n" for line in lines))

    with pytest.raises(ConfigError, match="the number of its request is not a whole number"):
        read_session(place.cassette)
