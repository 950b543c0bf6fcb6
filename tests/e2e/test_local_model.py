"""The embedded model, from the command to the server that it is served by, with a fake in place of the runtime."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from panpan.capabilities.local_model.server import embedded_profile
from panpan.types.messages import UserMessage
from tests.e2e.conftest import Panpan, finished, wait_until
from tests.e2e.repl.driver import Repl
from tests.fakes.runtime_weights import RUNTIME, RuntimeWeights, installed_weights, is_running
from tests.model_server import say, serving
from tests.needed_programs import need
from tests.prepared_command import PreparedCommand

PROFILE = embedded_profile()
EXAMPLES = [message.text for message in PROFILE.examples if isinstance(message, UserMessage)]
BANNER = f"panpan: {PROFILE.model.banner}\n"
READ = ["Read", {"file_path": "notes.txt"}]
NOT_SET_UP = "panpan: the embedded model is not set up; run: panpan local setup\n"


@pytest.fixture(scope="module")
def prepared() -> Iterator[PreparedCommand]:
    command = PreparedCommand(PYTHONPATH=str(RUNTIME))
    yield command
    command.close()


@pytest.fixture(autouse=True)
def _fake_runtime(panpan: Panpan) -> None:
    need("ps")
    panpan.env["PYTHONPATH"] = str(RUNTIME)
    (panpan.workspace / "notes.txt").write_text("the password is swordfish\n")


def weights_of(panpan: Panpan, **order: object) -> RuntimeWeights:
    return installed_weights(panpan.home.parent / ".cache" / "panpan" / "models", **order)


def are_gone(weights: RuntimeWeights) -> bool:
    return not [start["pid"] for start in weights.starts if is_running(start["pid"])]


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_local_model_does_a_task_and_its_server_ends(panpan: Panpan) -> None:
    weights = weights_of(panpan, replies=[READ, "It is swordfish."])

    done = panpan.run("-p", "what is in the notes?", "--model", "local")

    assert (done.code, done.stdout, done.stderr) == (0, "It is swordfish.\n", BANNER)
    first, second = weights.conversations
    prompts = [message["content"] for message in second if message["role"] == "user"]
    assert prompts == [*EXAMPLES, "what is in the notes?"]
    assert second[: len(first)] == first
    assert "the password is swordfish" in second[-1]["content"]
    assert len(weights.starts) == 1
    assert are_gone(weights)
    # and the log tells of the conversation alone
    assert not [text for text in EXAMPLES if text in json.dumps(panpan.records())]


def test_local_model_is_used_without_a_choice(panpan: Panpan) -> None:
    weights_of(panpan)

    done = panpan.run("-p", "hi")

    assert (done.code, done.stdout) == (0, "Hello.\n")
    assert "using the small local model, since no key is set and no" in done.stderr


def test_terminal_says_why_the_local_model_is_used(panpan: Panpan) -> None:
    weights_of(panpan)

    with Repl(panpan, columns=200) as repl:
        repl.wait_for("the small local model, on this machine, since no key is set and no")
        repl.wait_for_prompt()
        assert repl.text.count("since no key is set") == 1
        assert repl.leave() == 0
        assert "chose" not in repl.text


def test_key_is_preferred_to_the_local_model(panpan: Panpan) -> None:
    weights = weights_of(panpan)
    with serving([say("I am large.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "hi")

    assert (done.stdout, done.stderr, weights.starts) == ("I am large.\n", "", [])


def test_missing_setup_is_reported_in_one_line(panpan: Panpan) -> None:
    done = panpan.run("-p", "hi", "--model", "local")

    assert (done.code, done.stdout, done.stderr) == (2, "", NOT_SET_UP)
    assert panpan.session_files() == []


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({"failure": "failed to load model"}, "could not be started: RuntimeError: failed to load model"),
        ({"signal": "SIGKILL"}, "could not be started: it was killed, most likely for want of memory"),
    ],
)
def test_failed_server_start_is_reported_in_one_line(panpan: Panpan, order: dict[str, str], said: str) -> None:
    weights_of(panpan, **order)

    done = panpan.run("-p", "hi", "--model", "local")

    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.removeprefix(BANNER).splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_server_ends_however_panpan_ends(panpan: Panpan, number: signal.Signals) -> None:
    weights = weights_of(panpan, replies=["never"])
    process = panpan.start("-p", "hi", "--model", "local")
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    wait_until(lambda: weights.conversations, timeout_s=60)

    process.send_signal(number)
    done = finished(process)

    assert done.code == (-9 if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: are_gone(weights))


def test_server_ends_if_panpan_is_killed_while_it_starts(panpan: Panpan) -> None:
    weights = weights_of(panpan, never_reads=True)
    process = panpan.start("-p", "hi", "--model", "local", stdin=None)
    wait_until(lambda: len(weights.requests) == 1, timeout_s=60)

    process.kill()
    finished(process)

    wait_until(lambda: are_gone(weights))


def test_project_cannot_replace_the_users_model(panpan: Panpan) -> None:
    weights = weights_of(panpan)
    (panpan.workspace / ".panpan").mkdir()
    (panpan.workspace / ".panpan" / "settings.toml").write_text('model = "local"\n')
    assert panpan.run("trust", "add").code == 0

    with serving([say("I am large.")]) as server:
        panpan.use(server)
        with_key = panpan.run("-p", "hi")
    assert (with_key.stdout, weights.starts) == ("I am large.\n", [])

    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        del panpan.env[name]
    without = panpan.run("-p", "hi")
    assert (without.code, without.stdout) == (0, "Hello.\n")


def test_session_of_a_large_model_gets_the_small_models_prompt(panpan: Panpan) -> None:
    weights = weights_of(panpan)
    with serving([say("It is swordfish.")]) as server:
        panpan.use(server)
        assert panpan.run("-p", "what is in the notes?").code == 0

    done = panpan.run("-c", "-p", "and now?", "--model", "local")

    assert (done.code, done.stdout) == (0, "Hello.\n")
    (messages,) = weights.conversations
    assert messages[0] == {"role": "system", "content": PROFILE.model.system_prompt}
    assert "It is swordfish." in json.dumps(messages)
    tools = [request["body"].get("tools") for request in weights.requests][-1]
    assert [tool["function"]["name"] for tool in tools] == list(PROFILE.model.tools or {})


def test_session_of_the_small_model_gets_the_full_prompt(panpan: Panpan) -> None:
    weights_of(panpan)
    assert panpan.run("-p", "what is in the notes?", "--model", "local").code == 0
    with serving([say("I have more tools."), say("Still.")]) as server:
        panpan.use(server)
        first = panpan.run("-c", "-p", "and now?")
        second = panpan.run("-c", "-p", "go on")

    assert "gets panpan's full system prompt and all tools, unlike the model before" in first.stderr
    assert (second.code, second.stderr) == (0, "")
    one, two = (request.body for request in server.requests)
    assert "Bash" in [tool["name"] for tool in one["tools"]]
    assert "Patch" in [tool["name"] for tool in one["tools"]]
    assert one["system"][0]["text"] != PROFILE.model.system_prompt
    assert (two["tools"], two["system"]) == (one["tools"], one["system"])


def renaming(project: str = ".") -> list[object]:
    """Replies of a model that renames the function of the sample project."""
    steps: list[object] = []
    for name in ("schedule.py", "test_schedule.py"):
        path = f"{project}/{name}"
        change = {"old_string": "learning_rate", "new_string": "rate_at", "replace_all": True}
        steps += [["Read", {"file_path": path}], ["Edit", {"file_path": path, **change}]]
    return [*steps, "Renamed."]


def test_demo_lets_the_local_model_work_and_checks_the_files(panpan: Panpan, tmp_path: Path) -> None:
    weights = weights_of(panpan, replies=[*renaming(), ["Bash", {"command": "python3 -m unittest"}], "They pass."])
    panpan.env |= {"TMPDIR": str(tmp_path), "PANPAN_MAX_ROUNDS": "1", "ANTHROPIC_API_KEY": "sk-ant-test-0123456"}

    done = panpan.run("demo", "--local")

    assert done.code == 0, done.stderr
    assert "❯ Rename the function learning_rate to rate_at" in done.stdout
    assert "❯ Run the tests with python3 -m unittest." in done.stdout
    assert "+def rate_at(" in done.stdout.replace("+ ", "+")
    assert "python3 -m unittest says 'OK'" in done.stdout
    assert len(weights.conversations) == 7
    assert are_gone(weights)
    assert not panpan.home.exists()
    assert list(tmp_path.glob("panpan-demo-*")) == []


def test_demo_fails_if_the_function_was_not_renamed(panpan: Panpan, tmp_path: Path) -> None:
    weights_of(panpan, replies=["I renamed it, and all tests pass."])
    panpan.env["TMPDIR"] = str(tmp_path)

    done = panpan.run("demo", "--local")

    assert done.code == 1
    assert "The work is not done: schedule.py still calls the function learning_rate." in done.stderr


def test_demo_fails_if_the_model_ran_no_tests(panpan: Panpan, tmp_path: Path) -> None:
    weights_of(panpan, replies=[*renaming(), "All tests pass."])
    panpan.env["TMPDIR"] = str(tmp_path)

    done = panpan.run("demo", "--local")

    assert done.code == 1
    assert "python3 -m unittest says 'OK'" in done.stdout
    assert "The work is not done: the model ran no tests." in done.stderr


def test_demo_plays_the_tape_without_the_weights(panpan: Panpan, tmp_path: Path) -> None:
    panpan.env |= {
        "TMPDIR": str(tmp_path),
        "HF_ENDPOINT": f"http://127.0.0.1:{closed_port()}",
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": "/dev/null",
    }

    done = panpan.run("demo", "--local", "--fast")

    assert done.code == 0, done.stderr
    before, said, after = done.stdout.partition("A hand-written recording is played instead.")
    assert said
    assert "The small model is unavailable: Qwen2.5-Coder-1.5B-Instruct (Q4_K_M) could not be fetched" in before
    assert "The model's words come from a tape" in after
    assert "python3 -m unittest says 'OK'" in after
