import logging

import pytest

from panpan.session.turn import log_event
from panpan.types.events import PermissionDecided, SubagentEvent, ToolStarted
from panpan.types.permission import Reason


def test_decision_is_logged_with_its_reasons_and_digest(caplog: pytest.LogCaptureFixture) -> None:
    reason = Reason("it only reads", "read-only", assumption="ls only looks")

    with caplog.at_level(logging.DEBUG):
        log_event(PermissionDecided("1", "Bash", True, "it only reads", (reason,), digest="c0ffee"), "s1")

    (record,) = caplog.records
    assert record.getMessage() == "permission"
    assert record.__dict__["is_allowed"] is True
    assert record.__dict__["reasons"] == [reason.as_json()]
    assert record.__dict__["digest"] == "c0ffee"
    assert record.__dict__["conversation"] == "s1"


def test_subagent_events_are_not_logged_twice(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        log_event(SubagentEvent("t1", "a1b2c3d4", ToolStarted("1", "Grep", "loss")), "s1")

    assert not caplog.records
