"""Asking for a summary: bounded, whatever the model does."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from panpan.capabilities.compaction.summary import HEADINGS, ask_for_summary, summary_in, summary_input
from panpan.errors import CassetteError, ContextOverflowError
from panpan.types.events import ModelEvent, TextDelta, ThinkingDelta, ToolInputDelta
from panpan.types.llm import ModelRequest
from panpan.types.messages import SystemReminder, UserMessage
from tests.capabilities.compaction.conversations import SUMMARY, answered, replied, talking, used
from tests.fakes.scripted_llm import ScriptedLLM, say


class EndlessLLM(ScriptedLLM):
    """Streams for ever, or never says anything."""

    def __init__(self, delta: ModelEvent | None) -> None:
        super().__init__()
        self._delta = delta

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        while True:
            if self._delta is None:
                await anyio.sleep_forever()
            else:
                await anyio.lowlevel.checkpoint()
                yield self._delta


async def summary_of(llm: ScriptedLLM, **options: float) -> tuple[str, str]:
    summary = await ask_for_summary(llm, talking(0), earlier="", hint="", most_chars=10_000, **options)  # type: ignore[arg-type]
    return summary.text, summary.problem


@pytest.mark.parametrize(
    "delta", [TextDelta(0, "go on " * 50), ThinkingDelta(0, "hm " * 50), ToolInputDelta(0, '{"command": "go on"' * 10)]
)
async def test_summary_of_an_endless_model_is_cut_off(delta: ModelEvent) -> None:
    assert await summary_of(EndlessLLM(delta)) == ("", "the model's text did not end")


async def test_summary_of_a_silent_model_times_out() -> None:
    text, problem = await summary_of(EndlessLLM(None), time_limit_s=0.05)

    assert text == ""
    assert "did not finish" in problem


async def test_summary_material_too_long_for_the_model_is_cut_again() -> None:
    llm = ScriptedLLM(ContextOverflowError("too long"), say(SUMMARY))
    messages = [one for number in range(20) for one in talking(number)]

    summary = await ask_for_summary(llm, messages, earlier="", hint="", most_chars=20_000)

    assert summary.text == SUMMARY
    first, second = (request.messages[0].text for request in llm.requests)  # type: ignore[union-attr]
    assert len(second) < len(first) / 2


async def test_summary_missing_in_a_recording_is_no_refusal() -> None:
    with pytest.raises(CassetteError):
        await summary_of(ScriptedLLM(CassetteError("no more is recorded")))


def test_summary_begins_with_its_first_heading() -> None:
    assert summary_in(f"Here it is:\n\n{SUMMARY}") == SUMMARY
    assert summary_in(SUMMARY.replace("## ", "**").replace("\n**", "**\n**"))


@pytest.mark.parametrize("heading", ["Goal", "Progress", "Next steps"])
def test_summary_needs_every_heading(heading: str) -> None:
    assert summary_in(SUMMARY.replace(f"## {heading}", "##")) == ""


def test_summary_request_names_all_headings() -> None:
    from panpan.capabilities.compaction.summary import _prompt

    positions = [_prompt().find(f"## {heading}\n") for heading in HEADINGS]

    assert positions == sorted(positions)
    assert -1 not in positions


def test_summary_material_cuts_long_output_and_omits_reminders() -> None:
    messages = [
        UserMessage.of("find it"),
        SystemReminder(text="a reminder"),
        replied("I look", used("1", "Bash", command="cat big")),
        answered("1", "begin" + "x" * 50_000 + "end"),
    ]

    text = summary_input(messages, earlier="the note before", hint="the colour", most_chars=20_000)

    for expected in ("find it", "I look", "cat big", "begin", "end", "the note before", "the colour"):
        assert expected in text
    assert "a reminder" not in text
    assert len(text) < 4_000
    assert len(summary_input(messages, earlier="", hint="", most_chars=500)) < 900
