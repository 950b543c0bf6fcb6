import pytest

from panpan.faces.headless.face import Outcome, TurnSummary, denials_told
from panpan.faces.headless.output_formats import result_line
from panpan.types.content import ToolUseBlock
from panpan.types.events import PermissionDecided
from panpan.types.messages import AssistantMessage
from panpan.types.permission import AskedOf, Reason, ReasonKind


def summary_of(*decided: tuple[str, AskedOf, ReasonKind], flags: str = "") -> TurnSummary:
    summary = TurnSummary()
    uses = tuple(ToolUseBlock(id=str(at), name=name, input={}) for at, (name, _, _) in enumerate(decided))
    summary.follow(AssistantMessage(content=uses, model="m", stop_reason="tool_use"))
    for at, (name, asked_of, kind) in enumerate(decided):
        reasons = (Reason("why", kind, flags=flags and f"{flags} {name}"),)
        summary.follow(PermissionDecided(str(at), name, False, "why", reasons, asked_of=asked_of))
    return summary


def test_denial_names_its_remedy() -> None:
    summary = summary_of(
        ("Write", "anybody", "not-allowed"),
        ("Bash", "nobody", "rule"),
        ("pip", "a person", "sandbox"),
        ("Edit", "anybody", "not-allowed"),
        ("Read", "a person", "protected"),
        ("Write", "a person", "protected"),
    )

    forbidden, asked, protected, person = denials_told(summary)

    assert forbidden.startswith("1 call was blocked (Bash); a rule, a hook or the mode forbids")
    assert asked.startswith("2 calls were blocked (Write, Edit); -p cannot ask; allow it with --yes")
    assert person.startswith("1 call was blocked (pip); no flag allows it")
    assert protected.startswith("2 calls were blocked (Read, Write): why (and 1 more); no flag and no rule")
    assert "sandbox" not in protected
    assert "--yes" not in forbidden + person + protected


@pytest.mark.parametrize("asked_of", ["nobody", "anybody", "a person"])
def test_denial_flags_stand_on_one_line(asked_of: AskedOf) -> None:
    summary = summary_of(*((name, asked_of, "sandbox") for name in ("a", "b", "a", "c")), flags="--allowedTools")

    (told,) = denials_told(summary)

    assert told == (
        "4 calls were blocked (a, b, c); -p cannot ask; allow it with --allowedTools a --allowedTools b "
        "--allowedTools c"
    )


def test_denial_flags_are_counted_if_many() -> None:
    summary = summary_of(*((name, "anybody", "unknown") for name in "abcdefg"), flags="--allowedTools")

    (told,) = denials_told(summary)

    assert told.endswith("--allowedTools e (and those of 2 more)")


def test_denial_flags_shared_by_calls_stand_once() -> None:
    summary = summary_of(
        *((name, "a person", "mode") for name in "ab"), flags="--permission-mode default --allowedTools"
    )

    (told,) = denials_told(summary)

    assert told.endswith("--permission-mode default --allowedTools a --allowedTools b")


def test_denial_names_all_flags_of_a_call_or_none() -> None:
    summary = TurnSummary()
    uses = tuple(ToolUseBlock(id=str(at), name="Bash", input={}) for at in range(6))
    summary.follow(AssistantMessage(content=uses, model="m", stop_reason="tool_use"))
    for use in uses:
        rule = Reason("why", "unknown", flags=f"--allowedTools 'Bash(a {use.id})'")
        sandbox = Reason("why", "sandbox", flags=f"--allow-outside 'a {use.id}'")
        summary.follow(PermissionDecided(use.id, "Bash", False, "why", (rule, sandbox), asked_of="a person"))

    (told,) = denials_told(summary)

    assert told.endswith("--allowedTools 'Bash(a 4)' --allow-outside 'a 4' (and those of 1 more)")


def test_result_object_names_the_flags_of_each_denial() -> None:
    helped = summary_of(("pip", "a person", "sandbox"), flags="--allow-network")
    not_helped = summary_of(("Read", "a person", "protected"))

    (with_flags,) = result_line("s", helped, Outcome("success"), 1.0)["permission_denials"]
    (without,) = result_line("s", not_helped, Outcome("success"), 1.0)["permission_denials"]

    assert with_flags == {
        "tool_name": "pip",
        "tool_use_id": "0",
        "tool_input": {},
        "allowed_with": "--allow-network pip",
    }
    assert "allowed_with" not in without


@pytest.mark.parametrize("kind", ["bad-call", "bad-path"])
def test_impossible_call_is_no_denial(kind: ReasonKind) -> None:
    summary = summary_of(("LSP", "nobody", kind))

    assert summary.denials == []
    assert list(denials_told(summary)) == []
