"""Reports of a subagent's turn to its parent, and to people."""

from panpan.capabilities.subagents.report import Report
from panpan.errors import ProviderError, TurnLimitError
from panpan.types.content import SummaryDisplay, TextBlock, ToolUseBlock
from panpan.types.events import SubagentEvent, TurnEnded
from panpan.types.messages import AssistantMessage, Usage


def said(text: str, *calls: str, tokens: int = 0) -> AssistantMessage:
    uses = tuple(ToolUseBlock(id=name, name=name, input={}) for name in calls)
    texts = (TextBlock(text=text),) if text else ()
    return AssistantMessage(content=texts + uses, usage=Usage(input_tokens=tokens))


def report(*events: object) -> Report:
    made = Report("12345678", "explore")
    for event in events:
        made.follow(event)  # type: ignore[arg-type]
    return made


def ended(*, is_interrupted: bool = False) -> TurnEnded:
    return TurnEnded(2, Usage(), 0.0, 41.4, 1.0, is_interrupted)


def test_report_is_the_last_text_with_nested_tokens_counted() -> None:
    nested = SubagentEvent("t", "87654321", said("inner words", tokens=500))
    made = report(said("first", "Read", "Grep", tokens=1_000), nested, said("the answer", tokens=2_000), ended())
    output = made.output([])

    assert output.text.startswith("the answer\n\n")
    assert "id 12345678" in output.text
    assert not output.is_error
    assert output.display == SummaryDisplay(text="2 rounds · 2 tool calls · 3,500 tokens · 41 s")


def test_report_says_that_there_was_no_text() -> None:
    assert report(said("", "Read"), ended()).output([]).text.startswith("(it ended without a report)")


def test_report_of_an_error_has_the_findings() -> None:
    output = report(said("half the answer", "Read")).output([ProviderError("the model is gone")])

    assert output.is_error
    assert "the model is gone" in output.text
    assert "half the answer" in output.text
    assert "12345678" in output.text


def test_report_at_the_round_limit_is_no_failure() -> None:
    output = report(said("half the answer", "Read")).output([TurnLimitError("too many")])

    assert not output.is_error
    assert "stopped after 1 rounds" in output.text


def test_report_says_that_it_was_stopped() -> None:
    output = report(said("half"), ended(is_interrupted=True)).output([])

    assert output.is_error
    assert "stopped before it was done" in output.text


def test_report_holds_notes_for_the_parent() -> None:
    assert "it was slow" in report(said("done"), ended()).output([], notes=["it was slow"]).text
