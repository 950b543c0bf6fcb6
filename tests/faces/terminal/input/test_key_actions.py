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
def test_what_cannot_go_on_in_the_background_is_said_and_where_nothing_runs_the_tasks_are_listed(
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
        leaving=SimpleNamespace(),  # type: ignore[arg-type]
    )

    actions.to_background()

    assert [message.text for message in messages] == sent
    assert "".join(notes).startswith(said)
