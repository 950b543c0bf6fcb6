"""Model for settings that name none: a server that the user allowed, the embedded model, or advice."""

import json
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.local_model.model_detection import ANSWERS_FILE, detect_model, has_embedded_model
from panpan.errors import ConfigError
from panpan.faces.plain.line_reader import YesOrNo
from panpan.models.local_servers import LocalServer, Probe, find_local_servers
from tests.faces.memory import Memory
from tests.faces.plain.terminal import Keyboard, terminal
from tests.fakes.runtime_weights import RUNTIME, installed_weights
from tests.model_server import serving

OLLAMA = LocalServer("ollama", "Ollama", "http://127.0.0.1:11434/v1", ("qwen3:8b", "llama3"))
STUDIO = LocalServer("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", ("gemma",))


@dataclass
class Machine:
    """Servers that run here, and the user with the questions and notes they got."""

    home: Path
    servers: Sequence[LocalServer] = ()
    has_embedded: bool = False
    answers: list[bool | None] | None = None
    """One for each question; None: nobody is there."""
    questions: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    reason: str = ""
    """Reason for taking the model."""

    async def choose(self) -> str:
        """Return what is used, as for `--model`."""

        async def ask(question: str) -> bool | None:
            self.questions.append(question)
            assert self.answers is not None
            return self.answers.pop(0)

        async def find() -> tuple[LocalServer, ...]:
            return tuple(self.servers)

        offered = await detect_model(
            self.home,
            has_embedded=self.has_embedded,
            ask=None if self.answers is None else ask,
            say=self.told.append,
            find=find,
        )
        self.reason = offered.reason
        return offered.name


async def test_server_is_asked_about_once_and_yes_is_remembered(tmp_path: Path) -> None:
    first = Machine(tmp_path / "home", [OLLAMA], answers=[True])
    then = Machine(tmp_path / "home", [OLLAMA])

    assert await first.choose() == "ollama/qwen3:8b"
    assert await then.choose() == "ollama/qwen3:8b"

    assert first.questions == [
        "Ollama runs at http://127.0.0.1:11434/v1 with qwen3:8b and 1 more.\n"
        "May it be sent your prompts and code, now and in future? [y/n] "
    ]
    assert first.told == then.told == ["using ollama/qwen3:8b, since Ollama runs here and you allowed it"]
    assert first.reason == then.reason == "Ollama runs here and you allowed it"
    assert stat.S_IMODE((tmp_path / "home" / ANSWERS_FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


async def test_no_is_remembered_and_the_embedded_model_is_used(tmp_path: Path) -> None:
    for answers in ([False], []):
        machine = Machine(tmp_path, [OLLAMA], has_embedded=True, answers=answers)
        assert await machine.choose() == "local"

    assert machine.questions == []
    assert machine.told == ["using the small local model, since no key is set and none of the servers here was allowed"]


async def test_servers_have_their_own_answers(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [OLLAMA, STUDIO], answers=[False, True])

    assert await machine.choose() == "lmstudio/gemma"
    assert await Machine(tmp_path, [OLLAMA, STUDIO], answers=[]).choose() == "lmstudio/gemma"
    with pytest.raises(ConfigError):
        await Machine(tmp_path, [OLLAMA], answers=[]).choose()


@pytest.mark.parametrize("answers", [None, [None]])
async def test_server_without_an_answer_gets_nothing(tmp_path: Path, answers: list[bool | None] | None) -> None:
    machine = Machine(tmp_path, [OLLAMA], has_embedded=True, answers=answers)

    assert await machine.choose() == "local"
    assert not (tmp_path / ANSWERS_FILE).exists()


async def test_embedded_model_is_used_without_a_server(tmp_path: Path) -> None:
    machine = Machine(tmp_path, has_embedded=True, answers=[])

    assert await machine.choose() == "local"
    assert machine.told == ["using the small local model, since no key is set and no model server runs here"]
    assert machine.reason == "no key is set and no model server runs here"


async def test_server_precedes_the_embedded_model(tmp_path: Path) -> None:
    assert await Machine(tmp_path, [OLLAMA], has_embedded=True, answers=[True]).choose() == "ollama/qwen3:8b"


async def test_server_without_a_loaded_model_is_skipped(tmp_path: Path) -> None:
    empty = LocalServer("vllm", "vLLM", "http://127.0.0.1:8000/v1", ())

    assert await Machine(tmp_path, [empty, STUDIO], answers=[True]).choose() == "lmstudio/gemma"


@pytest.mark.parametrize("servers", [(), (OLLAMA,)])
async def test_missing_model_error_names_the_ways_to_one(tmp_path: Path, servers: Sequence[LocalServer]) -> None:
    with pytest.raises(ConfigError) as caught:
        await Machine(tmp_path, servers).choose()

    assert len(str(caught.value).splitlines()) == 3
    for way in ("ANTHROPIC_API_KEY", "panpan local setup", "panpan demo"):
        assert way in str(caught.value)
    assert ("--model ollama/qwen3:8b" in str(caught.value)) == bool(servers)


@pytest.mark.parametrize("text", ["", "{", "[true]", "[" * 100_000, "\xff"])
async def test_unreadable_answers_are_reported_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / ANSWERS_FILE
    path.write_text(text, encoding="latin-1")

    with pytest.raises(ConfigError, match=f"{ANSWERS_FILE} (cannot be read|holds no answers).*remove it"):
        await Machine(tmp_path, [OLLAMA], has_embedded=True, answers=[True]).choose()

    assert path.read_text(encoding="latin-1") == text


@pytest.mark.parametrize(
    "kept", [True, "yes", None, {}, {"is_allowed": "yes", "program": "", "user": None, "models": ["qwen3:8b"]}]
)
async def test_answer_to_another_question_does_not_count(tmp_path: Path, kept: object) -> None:
    (tmp_path / ANSWERS_FILE).write_text(json.dumps({OLLAMA.base_url: kept, STUDIO.base_url: "stays"}))
    machine = Machine(tmp_path, [OLLAMA], answers=[True])

    assert await machine.choose() == "ollama/qwen3:8b"
    assert len(machine.questions) == 1
    assert json.loads((tmp_path / ANSWERS_FILE).read_text())[STUDIO.base_url] == "stays"
    assert await Machine(tmp_path, [OLLAMA]).choose() == "ollama/qwen3:8b"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"program": "llamacpp"}, "it calls itself llamacpp and not nothing"),
        ({"user": 0}, "it runs as the user root and not as a user that is not known"),
        ({"models": ("gpt-oss:120b-cloud",)}, "it has no qwen3:8b"),
    ],
)
async def test_changed_server_is_asked_about_again(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    await Machine(tmp_path, [OLLAMA], answers=[True]).choose()
    later = replace(OLLAMA, **change)

    unattended = Machine(tmp_path, [later], has_embedded=True)
    refused = Machine(tmp_path, [later], has_embedded=True, answers=[False])

    assert await unattended.choose() == "local", "nobody could be asked"
    assert await refused.choose() == "local"
    assert f" Since you were asked, something changed: {said}.\nMay it" in refused.questions[0]
    assert await Machine(tmp_path, [later], has_embedded=True, answers=[]).choose() == "local"


@pytest.mark.parametrize("change", [{"program": "llamacpp"}, {"user": 0}])
async def test_no_applies_to_the_refused_program(tmp_path: Path, change: dict[str, Any]) -> None:
    await Machine(tmp_path, [OLLAMA], has_embedded=True, answers=[False]).choose()

    more_models = replace(OLLAMA, models=("new", *OLLAMA.models))
    assert await Machine(tmp_path, [more_models], has_embedded=True, answers=[]).choose() == "local"
    other = replace(OLLAMA, **change)
    assert await Machine(tmp_path, [other], has_embedded=True, answers=[True]).choose() == "ollama/qwen3:8b"


async def test_later_model_is_neither_asked_about_nor_used(tmp_path: Path) -> None:
    await Machine(tmp_path, [OLLAMA], answers=[True]).choose()

    more = replace(OLLAMA, models=("gpt-oss:120b-cloud", *OLLAMA.models))

    assert await Machine(tmp_path, [more], answers=[]).choose() == "ollama/qwen3:8b"


async def test_models_allowed_one_by_one_are_all_allowed(tmp_path: Path) -> None:
    await Machine(tmp_path, [OLLAMA], answers=[True]).choose()
    await Machine(tmp_path, [replace(OLLAMA, models=("gemma",))], answers=[True]).choose()

    for models in (("gemma",), ("qwen3:8b",)):
        machine = Machine(tmp_path, [replace(OLLAMA, models=models)], answers=[])
        assert await machine.choose() == f"ollama/{models[0]}"


async def test_model_allowed_to_another_program_is_asked_about(tmp_path: Path) -> None:
    await Machine(tmp_path, [OLLAMA], answers=[True]).choose()
    other = replace(OLLAMA, program="x", models=("gemma",))
    await Machine(tmp_path, [other], answers=[True]).choose()

    machine = Machine(tmp_path, [replace(other, models=OLLAMA.models)], answers=[True])
    assert await machine.choose() == "ollama/qwen3:8b"
    assert len(machine.questions) == 1


async def test_answer_that_cannot_be_saved_is_reported(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")

    with pytest.raises(ConfigError, match=r"(your answer could not be kept|cannot be read)"):
        await Machine(tmp_path / "home", [OLLAMA], answers=[True]).choose()


async def test_model_names_cannot_drive_the_terminal(tmp_path: Path) -> None:
    server = LocalServer("ollama", "Ollama", "http://127.0.0.1:11434/v1", ("a\x1b[2Jb",), "\x1b[2J")
    machine = Machine(tmp_path, [server], answers=[True])
    then = Machine(tmp_path, [replace(server, program="\x1b]0;x\x07", models=("\x1b[3J",))], answers=[True])

    await machine.choose()
    await then.choose()

    told = [*machine.questions, *machine.told, *then.questions, *then.told]
    assert all(line.isprintable() for text in told for line in text.splitlines())


async def test_found_server_gets_only_the_request_for_its_models(tmp_path: Path) -> None:
    with serving([], models=("text-embedding-nomic-embed-text-v1.5", "bge-m3", "qwen3:8b")) as server:
        found = await find_local_servers([Probe("lmstudio", "LM Studio", server.port, "/v1/models")], time_limit_s=10)
        machine = Machine(tmp_path, found, answers=[False, False])
        with pytest.raises(ConfigError):
            await machine.choose()

    assert "with qwen3:8b.\n" in machine.questions[0], "what only embeds is no model to talk to"
    assert [(request.method, request.path) for request in server.other_requests] == [("GET", "/v1/models")]
    assert server.requests == []


def test_embedded_model_needs_its_runtime_and_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    monkeypatch.syspath_prepend(RUNTIME)

    assert not has_embedded_model(env)
    installed_weights(tmp_path / "panpan" / "models")
    assert has_embedded_model(env)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    assert not has_embedded_model(env)


class Screen(Memory):
    """A screen that types an answer each time a question is on it."""

    def __init__(self, keyboard: Keyboard, *answers: str) -> None:
        super().__init__(is_terminal=True)
        self._keyboard = keyboard
        self._answers = list(answers)

    async def write(self, text: str) -> None:
        await super().write(text)
        self._keyboard.type(self._answers.pop(0))


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        (["y\n"], "ollama/qwen3:8b"),
        (["well\n", "\n", "YES\n"], "ollama/qwen3:8b"),
        (["n\n"], "local"),
        (["\x04"], "local"),
    ],
)
async def test_question_stays_on_the_terminal_until_the_answer(tmp_path: Path, typed: list[str], chosen: str) -> None:
    async def find() -> tuple[LocalServer, ...]:
        return (OLLAMA,)

    with terminal() as (keyboard, lines):
        keyboard.type("n\n")  # before the question: no answer to it
        screen = Screen(keyboard, *typed)

        offered = await detect_model(
            tmp_path, has_embedded=True, ask=YesOrNo(screen, lines), say=lambda _: None, find=find
        )

    assert offered.name == chosen
    assert screen.text.count("[y/n]") == len(typed)
    assert (tmp_path / ANSWERS_FILE).exists() == (typed != ["\x04"])
