"""`panpan login` and `panpan logout`, by a pipe and on a real terminal."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from panpan.cli.login_command import login, logout
from panpan.errors import ConfigError
from tests.model_server import ModelServer, serving
from tests.terminal_emulator import Terminal

KEY = "sk-ant-typed-0123456789"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving([], api_key=KEY) as server:
        yield server


@pytest.fixture
def env(tmp_path: Path, server: ModelServer) -> dict[str, str]:
    return {
        "PANPAN_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "ANTHROPIC_BASE_URL": server.url,
    }


def run(command: click.Command, env: dict[str, str], *args: str, stdin: str = "") -> Result:
    everything = {name: None for name in os.environ} | env
    return CliRunner().invoke(command, args, env=everything, input=stdin)


def said(result: Result) -> str:
    return str(result.exception) if isinstance(result.exception, ConfigError) else result.output


def test_piped_key_is_checked_kept_listed_and_removed(env: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "home/keys/anthropic"

    assert said(run(login, env, "anthropic", stdin=f"{KEY}\n")) == (
        f"Anthropic accepts the key. It is kept in {place}, which only you can read.\n"
    )
    assert place.read_text().strip() == KEY
    assert said(run(login, env, "--list")).splitlines()[0].split(maxsplit=1) == ["anthropic", "panpan login (file)"]
    also = env | {"ANTHROPIC_API_KEY": "sk-of-the-environment"}
    listed = said(run(login, also, "--list"))
    assert listed.splitlines()[0].endswith(" ANTHROPIC_API_KEY, panpan login (file)")
    assert "is set, and is used instead of it" in said(run(login, also, "anthropic", stdin=KEY))
    assert "The key for Anthropic is removed here." in said(run(logout, env))
    assert not place.exists()
    assert said(run(logout, env, "anthropic")).startswith("no key for Anthropic is stored")


def test_login_behind_another_key_says_how_to_use_it(env: dict[str, str], tmp_path: Path) -> None:
    both = env | {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "ANTHROPIC_API_KEY": "sk-of-the-environment"}
    told = said(run(login, both, "openai", stdin=KEY))
    before = "panpan takes Anthropic first, by ANTHROPIC_API_KEY"
    assert told.endswith(f"which only you can read.\n{before}; add --provider openai to ask OpenAI.\n")

    with Terminal([sys.executable, "-m", "panpan", "login", "openai"], env=both, cwd=tmp_path) as terminal:
        terminal.wait_for("it is not shown")
        terminal.send(f"{KEY}\r")
        terminal.wait_for("Keep it")
        terminal.send("\r")
        terminal.wait_for("To work with it:  panpan --provider openai")
        assert terminal.wait() == 0


def test_wrong_key_is_not_kept(env: dict[str, str], tmp_path: Path) -> None:
    result = run(login, env, "anthropic", stdin="sk-wrong-0123456789")

    assert said(result) == "Anthropic rejected the API key (invalid x-api-key); nothing was kept"
    assert not (tmp_path / "home/keys").exists()


def test_piped_key_without_a_network_is_kept_and_told(env: dict[str, str], server: ModelServer) -> None:
    gone = env | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    result = run(login, gone, "anthropic", stdin=KEY)

    assert result.exit_code == 0
    assert "nothing answers there" in result.output
    assert "The key was not checked. It is kept in" in result.output


@pytest.mark.parametrize("args", [[KEY], [f"{KEY} "], ["ollama"]])
def test_key_given_as_provider_is_not_repeated(env: dict[str, str], args: list[str]) -> None:
    for command in (login, logout):
        text = said(run(command, env, *args, stdin=KEY))
        assert "no provider with keys has this name; there are anthropic, openai" in text
        assert KEY not in text


def test_pipe_without_a_provider_or_key_is_told(env: dict[str, str]) -> None:
    assert "name the provider" in said(run(login, env, stdin=KEY))
    assert "no key on standard input" in said(run(login, env, "groq", stdin="\n"))


def test_key_is_typed_unseen_on_a_terminal(env: dict[str, str], tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "panpan"]
    with Terminal([*argv, "login"], env=env, cwd=tmp_path) as terminal:
        terminal.wait_for("Which provider?")
        terminal.send("\x1b[B\x1b[A\r")
        terminal.wait_for("it is not shown")
        terminal.send("sk-wrong-0123456789\r")
        terminal.wait_for(lambda screen: screen.text.count("it is not shown") == 2)  # before that, keys are dropped
        terminal.send(f"x\x15\x1b[200~{KEY}\x1b[201~\r")
        terminal.wait_for("To work with it:  panpan")
        assert terminal.wait() == 0
        assert KEY.encode() not in bytes(terminal.raw)
        assert terminal.has_settings_of_before
    assert (tmp_path / "home/keys/anthropic").read_text().strip() == KEY


@pytest.mark.parametrize("key", ["\x1b", "\x03", "\x04"])
def test_login_stores_nothing_when_cancelled(env: dict[str, str], tmp_path: Path, key: str) -> None:
    with Terminal([sys.executable, "-m", "panpan", "login", "anthropic"], env=env, cwd=tmp_path) as terminal:
        terminal.wait_for("it is not shown")
        terminal.send(key)
        terminal.wait_for("Nothing was kept.")
        assert terminal.wait() == 1
        assert terminal.has_settings_of_before
    assert not (tmp_path / "home/keys").exists()


@pytest.mark.parametrize(
    ("keys", "title"),
    [("12\r", "OpenRouter"), ("1\r", "Anthropic"), ("\x1b[A\r", "Groq"), ("1\x1b[B\r", "OpenAI"), ("99\r", "Gemini")],
)
def test_login_row_is_picked_by_number_or_arrows(env: dict[str, str], tmp_path: Path, keys: str, title: str) -> None:
    with Terminal([sys.executable, "-m", "panpan", "login"], env=env, cwd=tmp_path) as terminal:
        terminal.wait_for("↑↓ or a number, then Enter; Esc leaves")
        terminal.send(keys)
        terminal.wait_for(f"Which provider? {title}")
        terminal.wait_for("it is not shown")
        terminal.send("\x1b")
        assert terminal.wait() == 1


def test_login_row_is_picked_by_number_on_a_dumb_terminal(env: dict[str, str], tmp_path: Path) -> None:
    argv, dumb = [sys.executable, "-m", "panpan", "login"], env | {"TERM": "dumb"}
    with Terminal(argv, env=dumb, cwd=tmp_path) as terminal:
        terminal.wait_for("type a number, then Enter")
        terminal.send("77\r13\r")
        terminal.wait_for("You get a key for Groq")
        terminal.wait_for("it is not shown")
        terminal.send("\x04")
        assert terminal.wait() == 1
        assert b"\x1b[J" not in bytes(terminal.raw)


@pytest.mark.parametrize("columns", [30, 47])
def test_reason_of_a_failed_check_is_wrapped_at_blanks(env: dict[str, str], tmp_path: Path, columns: int) -> None:
    argv, gone = [sys.executable, "-m", "panpan", "login", "anthropic"], env | {"ANTHROPIC_BASE_URL": "http://[::1]:9"}
    with Terminal(argv, env=gone, cwd=tmp_path, columns=columns) as terminal:
        terminal.wait_for("Enter:")
        terminal.send(f"{KEY}\r")
        terminal.wait_for("Drop it")
        said = " ".join(terminal.text.split())
        terminal.send("\x1b[B\r")
        terminal.wait_for("Nothing was kept.")
        assert terminal.wait() == 1
    assert "Paste it here (it is not shown) and press Enter:" in said
    assert "The key could not be checked: " in said
    assert "nothing answers there; is the server running? ❯ 1 Keep it" in said
