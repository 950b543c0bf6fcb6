"""The menu of a start without a model: what each row leads to, and that leaving leaves nothing."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.exceptions import Exit

from panpan.capabilities.local_model import model_detection
from panpan.cli.start_menu import TITLE, choose_start
from panpan.models.local_servers import LocalServer
from panpan.session.command import Option
from tests.model_server import serving

OLLAMA = LocalServer("ollama", "Ollama", "http://127.0.0.1:11434/v1", ("qwen3:8b", "llama3"))
EMPTY = LocalServer("vllm", "vLLM", "http://127.0.0.1:8000/v1", ())
KEY = "sk-ant-of-a-menu-0123456789"


class Door:
    """Picks rows by how they begin, and gives secrets."""

    def __init__(
        self, home: Path, *picks: str, secrets: Sequence[str] = (), servers: Sequence[LocalServer] = ()
    ) -> None:
        self.home = home
        self.picks, self.secrets, self.servers = list(picks), list(secrets), servers
        self.titles: list[str] = []
        self.rows: list[str] = []
        self.told: list[str] = []
        self.ran: list[tuple[str, ...]] = []
        self.exit_code = 0

    async def tell(self, text: str) -> None:
        self.told.append(text)

    async def secret(self, question: str) -> str | None:
        return self.secrets.pop(0) if self.secrets else None

    async def choose(self, title: str, options: Sequence[Option]) -> int | None:
        self.titles.append(title)
        self.rows = [f"{option.label}: {option.detail}" for option in options]
        if not self.picks:
            return None
        wanted = self.picks.pop(0)
        return next(number for number, row in enumerate(self.rows) if row.startswith(wanted))

    async def open(self, env: dict[str, str] | None = None) -> str | None:
        async def find() -> Sequence[LocalServer]:
            return self.servers

        async def run(*arguments: str) -> int:
            self.ran.append(arguments)
            return self.exit_code

        chosen = await choose_start(self, self.home, env or {}, model_detection, find=find, run=run)
        return None if chosen is None else f"{chosen.name}, since {chosen.reason}"


async def test_server_that_is_picked_is_remembered_as_allowed(tmp_path: Path) -> None:
    door = Door(tmp_path, "Use Ollama", servers=[OLLAMA, EMPTY])

    assert await door.open() == "ollama/qwen3:8b, since Ollama runs here and you allowed it"
    assert [row.partition(":")[0] for row in door.rows] == [
        "Paste an API key",
        "Use Ollama, which runs here",
        "Set up a small local model",
        "See the demo",
        "Quit",
    ]

    async def find() -> tuple[LocalServer, ...]:
        return (OLLAMA,)

    later = await model_detection.detect_model(tmp_path, has_embedded=False, ask=None, say=lambda _: None, find=find)
    assert later.name == "ollama/qwen3:8b"


async def test_server_that_changed_since_it_was_allowed_says_how(tmp_path: Path) -> None:
    await Door(tmp_path, "Use Ollama", servers=[OLLAMA]).open()
    door = Door(tmp_path, "Use Ollama", servers=[replace(OLLAMA, program="other", models=("llama3", "qwen3:8b"))])

    assert await door.open() == "ollama/qwen3:8b, since Ollama runs here and you allowed it"
    assert door.rows[1].endswith(
        "qwen3:8b; it gets your prompts and code; changed: it calls itself other and not nothing"
    )


async def test_key_that_is_accepted_leads_to_its_vendor(tmp_path: Path) -> None:
    with serving([], api_key=KEY) as server:
        door = Door(tmp_path, "Paste", "Anthropic", secrets=["sk-wrong-0123456789", KEY])
        assert await door.open({"ANTHROPIC_BASE_URL": server.url}) is None

    assert (tmp_path / "keys/anthropic").read_text().strip() == KEY
    assert not any(KEY in text for text in door.told)


async def test_menu_comes_again_until_something_leads_to_a_model(tmp_path: Path) -> None:
    door = Door(tmp_path, "Paste", "Groq", "See the demo", "Set up", "Quit")
    door.exit_code = 1

    with pytest.raises(Exit):
        await door.open()
    assert door.ran == [("demo",), ("local", "setup", "--yes")]
    assert door.titles.count(TITLE) == 4

    door = Door(tmp_path, "Set up")
    assert await door.open() == "local, since you set it up"


async def test_key_that_cannot_be_checked_is_kept_if_the_user_says_so(tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    door = Door(tmp_path, "Paste", "OpenAI", "Drop it", secrets=[KEY])
    with pytest.raises(Exit):
        await door.open(env)
    assert not (tmp_path / "keys").exists()

    door = Door(tmp_path, "Paste", "OpenAI", "Keep it", secrets=[KEY])
    assert await door.open(env) is None
    assert "could not be checked: could not connect" in door.titles[-1]
    assert (tmp_path / "keys/openai").read_text().strip() == KEY
