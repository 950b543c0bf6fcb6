import pytest

from panpan.types.content import ToolUseBlock
from panpan.types.events import PermissionDecided
from panpan.types.messages import AssistantMessage
from panpan.types.permission import AskedOf, Reason, ReasonKind
from panpan.ui.headless.denials import denials_told
from panpan.ui.headless.face import TurnSummary


def summary_of(*decided: tuple[str, AskedOf, ReasonKind]) -> TurnSummary:
    summary = TurnSummary()
    uses = tuple(ToolUseBlock(id=str(at), name=name, input={}) for at, (name, _, _) in enumerate(decided))
    summary.follow(AssistantMessage(content=uses, model="m", stop_reason="tool_use"))
    for at, (name, asked_of, kind) in enumerate(decided):
        reasons = (Reason("why", kind),)
        summary.follow(PermissionDecided(str(at), name, False, "why", reasons, asked_of=asked_of))
    return summary


def test_each_kind_of_no_is_told_with_what_could_change_it() -> None:
    summary = summary_of(
        ("Write", "anybody", "not-allowed"),
        ("Bash", "nobody", "rule"),
        ("pip", "a person", "sandbox"),
        ("Edit", "anybody", "not-allowed"),
        ("Read", "a person", "protected"),
        ("Write", "a person", "protected"),
    )

    forbidden, asked, protected, person = denials_told(summary)

    assert forbidden.startswith("not allowed, and not run: 1 of the calls (Bash); a rule or the mode forbids")
    assert asked.startswith("not allowed, and not run: 2 of the calls (Write, Edit); with -p or a pipe nobody is asked")
    assert person.startswith("not allowed, and not run: 1 of the calls (pip); no flag allows these")
    assert protected.startswith(
        "not allowed, and not run: 2 of the calls (Read, Write): why (and 1 more); no flag and no rule"
    )
    assert "sandbox" not in protected
    assert "--yes" not in forbidden + person + protected


@pytest.mark.parametrize("kind", ["bad-call", "bad-path"])
def test_a_call_that_could_not_be_made_was_not_forbidden(kind: ReasonKind) -> None:
    summary = summary_of(("LSP", "nobody", kind))

    assert summary.denials == []
    assert list(denials_told(summary)) == []
