"""A recorded conversation comes out again, whatever day, machine and folder; and what differs is named."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.cassettes.recorded_session import read_session
from panpan.capabilities.cassettes.requests import transcript_hash
from panpan.types.permission import PermissionAnswer, PermissionQuestion, UserAnswer
from tests.capabilities.cassettes.cassette_fixtures import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rewrite(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


async def test_strict_replay_gives_the_same_and_runs_nothing(place: Place) -> None:
    recorded = await place.record("look around")
    shutil.rmtree(place.workspace)

    report = await place.replay("strict")

    assert (report.divergence, report.error) == (None, "")
    assert (report.turns, report.requests, report.tool_calls) == (1, 3, 4)
    assert report.transcript == transcript_hash(recorded.messages)
    assert not place.workspace.exists()


async def test_replay_holds_on_another_day_and_in_another_folder(place: Place, tmp_path: Path) -> None:
    await place.record("look around")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    text = place.cassette.read_text()
    (start,) = [line for line in lines_of(place.cassette) if line.get("subtype") == "system_reminder"]
    today = next(word for word in start["content"].split() if word.count("-") == 2 and word[:2] == "20")
    place.cassette.write_text(text.replace(today, "2001-02-03"))

    report = await place.replay("strict", cwd=elsewhere)

    assert report.is_same


async def test_replay_offers_the_tools_of_the_recording(place: Place, tmp_path: Path) -> None:
    (place.workspace / "requirements.txt").touch()
    recorded = await place.record("look around")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    report = await place.replay("strict", cwd=elsewhere)

    assert recorded.header.unavailable is not None
    assert "pip" not in recorded.header.unavailable
    assert "MergeWorktree" in recorded.header.unavailable
    assert report.is_same


async def test_live_tools_change_the_files(place: Place, tmp_path: Path) -> None:
    await place.record("look around")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(place.workspace, elsewhere)
    (elsewhere / "made.txt").unlink()

    report = await place.replay("live-tools", cwd=elsewhere)

    assert (report.divergence, report.error) == (None, "")
    assert (elsewhere / "made.txt").read_text() == "made\n"
    assert report.requests == 3


async def test_live_tools_name_a_call_that_fails_now(place: Place) -> None:
    await place.record("look around")
    (place.workspace / "b.txt").unlink()

    report = await place.replay("live-tools", cwd=place.workspace)

    assert report.divergence is not None
    assert report.divergence.request == 2
    assert report.divergence.difference.field == "steps[4].is_error"
    assert report.divergence.difference.as_json()["now"] is True


async def test_live_tools_report_another_text_without_failing(place: Place) -> None:
    await place.record("look around")
    (place.workspace / "a.txt").write_text("omega\n")

    report = await place.replay("live-tools", cwd=place.workspace)

    assert report.is_same
    assert "omega" in report.other_texts[0].difference.diff


async def test_live_tools_do_not_run_a_refused_call(place: Place) -> None:
    async def no(question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(is_allowed=False, feedback="rather not")

    recorded = await place.record("look around", ask=no)

    report = await place.replay("live-tools", cwd=place.workspace)

    assert report.is_same
    assert not (place.workspace / "made.txt").exists()
    assert "rather not" in recorded.results["tape_2_1"].text


async def test_other_prompt_is_named_with_request_and_field(place: Place) -> None:
    await place.record("look around")
    lines = lines_of(place.cassette)
    for line in lines:
        if line["type"] == "cassette_request":
            line["messages"] = (
                [
                    {"role": "user", "content": [{"type": "text", "text": "look at this"}]} if index == 0 else message
                    for index, message in enumerate(line["messages"])
                ]
                if line["number"] == 1
                else line["messages"]
            )
    rewrite(place.cassette, lines)

    report = await place.replay("strict")

    assert report.divergence is not None
    assert report.divergence.sentence == "request 1 differs in messages[0].content[0].text"
    assert report.divergence.difference.diff == "-look at this\n+look around"


async def test_other_system_prompt_matters_in_strict_mode_only(place: Place) -> None:
    recorded = await place.record("look around", append_system_prompt="Be kind.")
    assert recorded.header.prompts.append_system_prompt == "Be kind."
    rewrite(
        place.cassette,
        [
            line | ({"appendSystemPrompt": "Be brief."} if line["type"] == "cassette" else {})
            for line in lines_of(place.cassette)
        ],
    )

    strict, semantic = await place.replay("strict"), await place.replay("semantic")

    assert strict.divergence is not None
    assert strict.divergence.sentence == "request 1 differs in system"
    assert strict.divergence.difference.diff == "-Be kind.\n+Be brief."
    assert semantic.is_same


async def test_workspace_rules_count_as_they_are_now_on_request(place: Place) -> None:
    (place.workspace / "AGENTS.md").write_text("Speak plainly.\n")
    await place.record("look around")

    same = await place.replay("strict", cwd=place.workspace, uses_current_rules=True)
    (place.workspace / "AGENTS.md").write_text("Speak in riddles.\n")
    as_recorded = await place.replay("strict", cwd=place.workspace)
    changed = await place.replay("strict", cwd=place.workspace, uses_current_rules=True)

    assert same.is_same
    assert as_recorded.is_same
    assert changed.divergence is not None
    assert changed.divergence.difference.field == "messages[1].text"
    assert "+Speak in riddles." in changed.divergence.difference.diff


async def test_questions_to_the_user_are_answered_as_recorded(place: Place) -> None:
    tape = """
version = 1
[[reply]]
[[reply.tool_use]]
name = "AskUserQuestion"
[reply.tool_use.input]
[[reply.tool_use.input.questions]]
question = "Which one?"
header = "One"
options = [{ label = "red", description = "" }, { label = "blue", description = "" }]

[[reply]]
expects.results_contain = ["blue"]
text = "Blue it is."
"""

    async def blue(questions: Any) -> Any:
        return [UserAnswer(("blue",), "")]

    recorded = await place.record("choose", tape=tape, ask_user=blue)

    reports = [await place.replay(mode, cwd=place.workspace) for mode in ("strict", "live-tools")]

    assert [report.is_same for report in reports] == [True, True], reports
    assert "blue" in recorded.results["tape_1_1"].text
    assert len({report.transcript for report in reports}) == 1


async def test_several_turns_and_prompts_are_replayed(place: Place) -> None:
    tape = "version = 1\n" + '[[reply]]\ntext = "Well."\n' * 3
    recorded = await place.record("one", "two", "three", tape=tape)

    report = await place.replay("strict")

    assert [turn.prompt.text for turn in recorded.turns] == ["one", "two", "three"]
    assert (report.is_same, report.turns) == (True, 3)


async def test_cut_recording_is_played_to_its_end(place: Place) -> None:
    await place.record("look around")
    whole = place.cassette.read_bytes()
    third = [n for n, line in enumerate(lines_of(place.cassette)) if line["type"] == "cassette_request"][2]
    begun = b"\n".join(whole.split(b"\n")[: third + 1]) + b'\n{"type":"cassette_re'
    place.cassette.write_bytes(begun)

    report = await place.replay("strict")

    assert report.requests == 3
    assert report.error == "the recording was cut off in this reply"


async def test_every_prefix_of_a_recording_can_be_read(place: Place) -> None:
    await place.record("look around")
    data = place.cassette.read_bytes()
    first_line = data.index(b"\n") + 1
    rng = random.Random(3)

    for end in [first_line, *rng.sample(range(first_line, len(data)), 60)]:
        place.cassette.write_bytes(data[:end])
        assert len(read_session(place.cassette).turns) <= 1


@pytest.mark.parametrize(
    ("before", "now", "field"),
    [
        ('"description":"', '"description":"Once: ', "tools[0].description"),
        ('"file_path":', '"file":', "messages[2].content[1].input"),
    ],
)
async def test_differing_part_of_a_request_is_named(place: Place, before: str, now: str, field: str) -> None:
    await place.record("look around")
    lines = place.cassette.read_text().splitlines(keepends=True)
    kind = "cassette_request" if field.startswith("tools") else "assistant"
    first = next(number for number, line in enumerate(lines) if json.loads(line)["type"] == kind)
    changed = lines[first].replace(before, now, 1)
    place.cassette.write_text("".join([*lines[:first], changed, *lines[first + 1 :]]))

    report = await place.replay("strict")

    assert report.divergence is not None
    assert report.divergence.difference.field.startswith(field)
    assert report.divergence.request == (1 if field.startswith("tools") else 2)
