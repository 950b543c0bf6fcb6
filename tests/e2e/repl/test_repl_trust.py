"""The question whether a project is trusted, before the first session in it."""

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.model_server import call, say, serving
from tests.terminal_emulator import keys

ASKED = "Do you trust these files? [y/n]"


@pytest.mark.parametrize(("answer", "exists"), [("y", True), ("n", False)])
def test_trust_is_asked_once_for_a_project(panpan: Panpan, start: Start, answer: str, exists: bool) -> None:
    settings = panpan.workspace / ".panpan" / "settings.toml"
    settings.parent.mkdir()
    settings.write_text('permission.allow = ["Bash(touch *)"]\n')
    with serving([call("Bash", {"command": "touch made"}), say("Fine.")]) as server:
        panpan.use(server)
        first = start(waits=False)
        first.wait_for(ASKED)
        first.send(answer)
        first.send(keys.ENTER)
        first.wait_for_prompt()
        first.leave()

        again = start()
        again.submit("go")
        if not exists:
            again.answer("touch made", "n")
        again.wait_for("Fine.")
        again.wait_for_prompt()
        assert ASKED not in again.read(lambda screen: "\n".join(screen.visible))

    assert (panpan.workspace / "made").exists() is exists
