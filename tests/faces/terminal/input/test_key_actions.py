from types import SimpleNamespace
from typing import Any

import pytest

from panpan.faces.terminal.input.key_actions import KeyActions
from panpan.faces.terminal.input.keys import DraftKeys
from tests.fakes.background import SessionWith


@pytest.mark.parametrize(
    ("was_moved", "runs_tools", "said", "sent"),
    [
        (True, True, "moved to the background until you quit", []),
        (False, True, "nothing can move to the background", []),
        (False, False, "", ["/tasks"]),
    ],
)
def test_background_key_reports_unmovable_work_or_lists_tasks(
    was_moved: bool, runs_tools: bool, said: str, sent: list[str]
) -> None:
    notes: list[str] = []
    messages: list[Any] = []
    actions: Any = KeyActions(
        SessionWith(feature=SimpleNamespace(move=lambda: was_moved)),  # type: ignore[arg-type]
        DraftKeys(SimpleNamespace(), SimpleNamespace(), notes.append),  # type: ignore[arg-type]
        SimpleNamespace(send=messages.append),  # type: ignore[arg-type]
        SimpleNamespace(runs_tools=runs_tools),  # type: ignore[arg-type]
        SimpleNamespace(),  # type: ignore[arg-type]
        external_program=SimpleNamespace(),  # type: ignore[arg-type]
        paste_picture=lambda: None,
        exit_request=SimpleNamespace(),  # type: ignore[arg-type]
    )

    actions.to_background()

    assert [message.text for message in messages] == sent
    assert "".join(notes).startswith(said)


class InMode:
    """A session of which only the permission mode matters."""

    def __init__(self, auto_trouble: str) -> None:
        self.permission_mode = "default"
        self.auto_trouble = auto_trouble

    def set_permission_mode(self, mode: str) -> None:
        self.permission_mode = mode


@pytest.mark.parametrize(
    ("auto_trouble", "modes"),
    [
        ("", ["acceptEdits", "auto", "plan", "default"]),
        ("no sandbox works here", ["acceptEdits", "plan", "default", "acceptEdits"]),
    ],
)
def test_mode_key_cycles_and_skips_auto_if_unavailable(auto_trouble: str, modes: list[str]) -> None:
    session: Any = InMode(auto_trouble)
    nothing: Any = SimpleNamespace()
    draft_keys = DraftKeys(nothing, nothing, lambda _: None)
    actions: Any = KeyActions(
        session,
        draft_keys,
        nothing,
        nothing,
        nothing,
        external_program=nothing,
        paste_picture=lambda: None,
        exit_request=nothing,
    )

    seen = []
    for _ in range(4):
        actions.next_mode()
        seen.append(session.permission_mode)

    assert seen == modes
