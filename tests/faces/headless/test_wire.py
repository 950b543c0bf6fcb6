import pytest

from panpan.faces.headless.output_formats import notice_line
from panpan.types.events import PermissionDecided
from panpan.types.messages import SystemReminder
from panpan.types.permission import Reason, ReasonKind


def test_denial_names_its_call_and_reasons() -> None:
    reason = Reason("it may change things", "unknown", command="make", assumption="nobody knows make")
    decided = PermissionDecided("1", "Bash", False, "asked; the answer was no", (reason,), digest="c0ffee")

    line = notice_line(decided, "session")

    assert line["subtype"] == "permission_denied"
    assert (line["tool_use_id"], line["tool_name"], line["reason"]) == ("1", "Bash", "asked; the answer was no")
    assert line["reasons"] == [reason.as_json()]
    assert line["digest"] == "c0ffee"


def test_reminder_names_its_cause_and_priority() -> None:
    line = notice_line(SystemReminder(text="Look again.", cause="file:changed:1", priority="high"), "session")

    assert {name: line[name] for name in ("subtype", "cause", "category", "priority", "content")} == {
        "subtype": "system_reminder",
        "cause": "file:changed:1",
        "category": "file",
        "priority": "high",
        "content": "Look again.",
    }


@pytest.mark.parametrize("kind", ["bad-call", "bad-path"])
def test_impossible_call_is_no_denial(kind: ReasonKind) -> None:
    decided = PermissionDecided("1", "Edit", False, "it was not read", (Reason("it was not read", kind),))

    assert notice_line(decided, "session")["subtype"] == "call_rejected"
