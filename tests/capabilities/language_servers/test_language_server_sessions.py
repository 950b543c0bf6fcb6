"""Language servers in whole sessions: offered with trust alone, ended with the session, told of in the conversation."""

import json
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from panpan.api import open_session
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.session.session import Session
from panpan.types.messages import ToolResultMessage
from tests.capabilities.language_servers.toy import SCRIPT


class Place:
    """A project with toy files, and a home whose settings know the toy server."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self.home = folder / "home"
        self.home.mkdir()
        self._log = folder / "log"
        self.env = {"HOME": str(folder), "PANPAN_HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        self.toy = (
            "[language_servers.servers.toy]\n"
            f"command = {json.dumps([sys.executable, '-I', '-S', str(SCRIPT), str(self._log)])}\n"
            'languages = {".toy" = "toy"}\n'
        )

    def tape(self, *calls: tuple[str, dict[str, Any]]) -> str:
        """Write a tape of calls, one a reply, and return its name as a model."""
        replies = [f'[[reply]]\ntool_use = [{{ name = "{name}", input = {toml(args)} }}]' for name, args in calls]
        path = self.root.parent / "tape.toml"
        path.write_text("\n".join(["version = 1", *replies, '[[reply]]\ntext = "done"']))
        return f"cassette:{path}"

    @property
    def starts(self) -> int:
        text = self._log.read_text() if self._log.exists() else ""
        return text.count('"method": "start"')


def toml(args: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in args.items()) + " }"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def results(session: Session) -> Sequence[str]:
    async with aclosing(session.submit("go")) as events:
        return [event.result.text async for event in events if isinstance(event, ToolResultMessage)]


HOVER = ("LSP", {"operation": "hover", "file_path": "a.toy", "symbol": "alpha"})
EDITS = (
    ("Read", {"file_path": "a.toy"}),
    ("Edit", {"file_path": "a.toy", "old_string": "alpha", "new_string": "ERROR"}),
)


@pytest.mark.parametrize("trusts", [True, False])
async def test_lsp_tool_works_if_the_project_is_trusted(place: Place, trusts: bool) -> None:
    (place.home / "settings.toml").write_text(place.toy)
    (place.root / "a.toy").write_text("alpha\n")
    calls = (HOVER, *EDITS) if trusts else EDITS  # a tape can ask for what is offered
    overrides = {"model": place.tape(*calls), "sandbox.mode": "off", "permission.mode": "acceptEdits"}

    opening = open_session(place.root, overrides=overrides, env=place.env, trusts_project=trusts)
    async with opening as session:
        is_offered = "LSP" in session.info.tools
        starts = place.starts
        told = await results(session)
        states = {state.name: state.state for state in session[LanguageServers].states}

    assert is_offered is trusts
    assert starts == 0
    assert ("the word alpha" in told[0]) is trusts
    assert states["toy"] == ("runs" if trusts else "not started: the project is not trusted")
    assert place.starts == trusts


async def test_edit_tells_the_model_of_its_errors(place: Place) -> None:
    (place.home / "settings.toml").write_text(place.toy)
    (place.root / "a.toy").write_text("alpha\n")
    overrides = {"model": place.tape(*EDITS), "sandbox.mode": "off", "permission.mode": "acceptEdits"}

    opening = open_session(place.root, overrides=overrides, env=place.env, trusts_project=True)
    async with opening as session:
        told = await results(session)
        late = [one.text for one in session.conversation.messages if getattr(one, "cause", "").startswith("errors:")]

    assert "line 1: wrong 0: ERROR (toy)" in "".join([told[1], *late])  # late on a machine that is busy


@pytest.mark.parametrize("trusts", [True, False])
async def test_project_names_servers_only_if_trusted(place: Place, trusts: bool) -> None:
    (place.root / ".panpan").mkdir()
    (place.root / ".panpan" / "settings.toml").write_text(place.toy)
    (place.root / "a.toy").write_text("alpha\n")
    calls = (HOVER, *EDITS) if trusts else EDITS  # a tape can ask for what is offered
    overrides = {"model": place.tape(*calls), "sandbox.mode": "off", "permission.mode": "acceptEdits"}

    opening = open_session(place.root, overrides=overrides, env=place.env, trusts_project=trusts)
    async with opening as session:
        names = [state.name for state in session[LanguageServers].states]
        await results(session)

    assert ("toy" in names) is trusts
    assert place.starts == trusts


async def test_disabled_servers_do_not_exist(place: Place) -> None:
    (place.home / "settings.toml").write_text(f"[language_servers]\nenabled = false\n{place.toy}")
    overrides = {"model": place.tape(), "sandbox.mode": "off"}

    opening = open_session(place.root, overrides=overrides, env=place.env, trusts_project=True)
    async with opening as session:
        is_offered, states = "LSP" in session.info.tools, session[LanguageServers].states

    assert not is_offered
    assert states == []
