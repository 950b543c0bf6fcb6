"""A start without a model: the menu on a terminal, three lines elsewhere, and a server that is asked for its models."""

import sys

import pytest

from panpan.cli.start_menu import TITLE
from tests.e2e.conftest import Panpan
from tests.model_server import say, serving
from tests.terminal_emulator import Terminal

KEY = "sk-ant-of-a-menu-0123456789"


@pytest.mark.parametrize("flags", [[], ["--plain"]])
def test_session_opens_behind_the_menu(panpan: Panpan, flags: list[str]) -> None:
    with serving([say("Hello from the model.")], api_key=KEY) as server:
        panpan.env["ANTHROPIC_BASE_URL"] = server.url
        argv = [sys.executable, "-m", "panpan", *flags]
        with Terminal(argv, env=panpan.environment(), cwd=panpan.workspace, columns=100, rows=30) as terminal:
            terminal.wait_for(TITLE)
            terminal.send("1\r" if flags else "1")
            terminal.wait_for("Which provider?")
            terminal.send("1\r" if flags else "\r")
            terminal.wait_for("it is not shown")
            terminal.send(f"{KEY}\r")
            terminal.wait_for("since you logged in to Anthropic")
            terminal.wait_for("❯")
            terminal.send("hello\r")
            terminal.wait_for("Hello from the model.")
            assert KEY.encode() not in bytes(terminal.raw)
            terminal.send("\x04")
            assert terminal.wait() == 0
    logs = [path.read_text() for path in panpan.home.rglob("*.jsonl")]
    assert logs
    assert not any(KEY in text for text in logs)


@pytest.mark.parametrize("flags", [[], ["--plain"]])
def test_login_in_a_session_mends_a_rejected_key(panpan: Panpan, flags: list[str]) -> None:
    keys = panpan.home / "keys"
    keys.mkdir(parents=True, mode=0o700)
    (keys / "anthropic").write_text("sk-ant-outdated-0123456789")
    with serving([say("Now it works.")], api_key=KEY) as server:
        panpan.env["ANTHROPIC_BASE_URL"] = server.url
        argv = [sys.executable, "-m", "panpan", *flags]
        with Terminal(argv, env=panpan.environment(), cwd=panpan.workspace, columns=100, rows=30) as terminal:
            terminal.wait_for("since you logged in to Anthropic")
            terminal.send("hello\r")
            terminal.wait_for("rejected the key from panpan login")
            terminal.send("/login anthropic\r")
            terminal.wait_for("it is not shown")
            terminal.send("\x03")
            terminal.wait_for("Nothing was kept.")
            terminal.wait_for(lambda screen: screen.is_cursor_visible and screen.before_cursor.rstrip() == "❯")
            terminal.send("/login anthropic\r")
            terminal.wait_for(lambda screen: screen.text.count("it is not shown") == 2)
            terminal.send(f"{KEY}\r")
            terminal.wait_for("from the next message on panpan asks claude-")
            terminal.send("hello again\r")
            terminal.wait_for("Now it works.")
            assert KEY.encode() not in bytes(terminal.raw)
            terminal.send("\x04")
            assert terminal.wait() == 0


def test_login_command_without_a_terminal_is_an_error(panpan: Panpan) -> None:
    panpan.env["ANTHROPIC_API_KEY"] = KEY
    done = panpan.run("-p", "/login anthropic")

    assert done.code == 2
    assert "/login needs a terminal" in done.stderr


@pytest.mark.parametrize("key", ["\x1b", "\x03", "4"])
def test_leaving_the_menu_restores_the_terminal(panpan: Panpan, key: str) -> None:
    argv = [sys.executable, "-m", "panpan"]
    with Terminal(argv, env=panpan.environment(), cwd=panpan.workspace) as terminal:
        terminal.wait_for("Quit")
        terminal.wait_for("Esc leaves")
        terminal.send(key)
        assert terminal.wait() == 0
        assert terminal.has_settings_of_before


def test_server_with_one_model_needs_no_name(panpan: Panpan) -> None:
    with serving([say("Here.")], models=["qwen3-coder:30b"]) as server:
        done = panpan.run("-p", "hi", "--base-url", server.openai_url)
    assert (done.code, done.stdout) == (0, "Here.\n")
    assert f"using qwen3-coder:30b, since it is the only one at {server.openai_url}" in done.stderr
    assert server.requests[0].body["model"] == "qwen3-coder:30b"


def test_models_of_a_server_with_several_are_named(panpan: Panpan) -> None:
    with serving([], models=[f"m{number}" for number in range(12)]) as server:
        done = panpan.run("-p", "hi", "--base-url", server.openai_url)
    assert done.code == 2
    assert "has several models; choose one with --model: m0, m1, m2" in done.stderr
    assert "m9 and 2 more" in done.stderr

    done = panpan.run("-p", "hi", "--base-url", "http://127.0.0.1:9/v1")
    assert (done.code, "nothing says which model; set --model" in done.stderr) == (2, True)


def test_missing_model_without_a_terminal_is_three_lines(panpan: Panpan) -> None:
    done = panpan.run("-p", "hi")

    assert (done.code, len(done.stderr.splitlines())) == (2, 3)
    assert "panpan login" in done.stderr
