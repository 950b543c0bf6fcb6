"""`/login` and `/logout`: a key goes where `panpan login` puts it, and a running session can use it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from panpan.config.stored_keys import StoredKeys
from panpan.errors import ConfigError
from panpan.hub.choices import models_for
from panpan.models.provider_kind import NO_KINDS
from panpan.session.command import Option
from tests.config.test_stored_keys import NoKeyring
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in
from tests.fakes.settings import settings_with
from tests.model_server import serving

KEY = "sk-ant-in-a-session-0123456789"


class Answers:
    """Gives a key and picks the first row."""

    def __init__(self, *secrets: str) -> None:
        self.secrets = list(secrets)
        self.told: list[str] = []

    async def tell(self, text: str) -> None:
        self.told.append(text)

    async def secret(self, question: str) -> str | None:
        return self.secrets.pop(0) if self.secrets else None

    async def choose(self, title: str, options: Sequence[Option]) -> int | None:
        return 0


async def test_login_keeps_a_key_and_logout_removes_it(tmp_path: Path) -> None:
    with serving([], api_key=KEY) as server:
        asking = Answers(KEY)
        terminal = terminal_in(tmp_path / "w", env={"ANTHROPIC_BASE_URL": server.url}, asking=asking)
        await type_in(terminal, "/login anthropic")

        place = tmp_path / "home/.panpan/keys/anthropic"
        assert place.read_text().strip() == KEY
        assert "/model lets you choose a model of Anthropic" in terminal.text
        assert KEY not in terminal.text + "".join(asking.told)

        await type_in(terminal, "/logout")
    assert not place.exists()
    assert "The key for Anthropic is removed here." in terminal.text


async def test_login_does_not_repeat_a_key_that_was_typed_behind_it(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "w", asking=Answers())

    with pytest.raises(ConfigError, match="no provider with keys") as caught:
        await type_in(terminal, f"/login {KEY}")
    assert KEY not in str(caught.value)


def test_models_of_a_vendor_with_a_stored_key_are_offered(tmp_path: Path) -> None:
    keys = StoredKeys(tmp_path, NoKeyring())
    assert models_for(settings_with(), {}, NO_KINDS, keys) == []

    keys.keep("groq", KEY)
    assert {one.name.partition("/")[0] for one in models_for(settings_with(), {}, NO_KINDS, keys)} == {"groq"}
