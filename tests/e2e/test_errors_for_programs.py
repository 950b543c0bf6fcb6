"""The result of a run that failed tells a program if starting it again may help."""

import json
import os
import signal
import subprocess

import pytest

from panpan.integrations.headless import result_of
from tests.e2e.conftest import Panpan, wait_until
from tests.model_server import Cut, HttpError, Reply, Text, ToolCall, calls, say, serving
from tests.model_server.script import Step

FAILURES: dict[str, tuple[Step, str, bool, float | None]] = {
    "rate limit": (HttpError(429, headers={"retry-after": "3600"}), "RateLimitError", True, 3600.0),
    "overloaded": (HttpError(529), "RetryableError", True, None),
    "cut": (Reply((Text("half of it"),), faults=(Cut(5),)), "StreamError", True, None),
    "key": (HttpError(401), "AuthenticationError", False, None),
    "request": (HttpError(400, "temperature is out of range"), "ProviderError", False, None),
}
SESSION = "0b6c2c5e-6c0e-4f7e-9a55-1d3c5f6f7a11"


@pytest.mark.parametrize(("step", "name", "may_pass", "wait_s"), FAILURES.values(), ids=FAILURES.keys())
def test_result_tells_failures_that_may_pass_from_others(
    panpan: Panpan, step: Step, name: str, may_pass: bool, wait_s: float | None
) -> None:
    panpan.home.mkdir()
    (panpan.home / "settings.toml").write_text("[retry]\nmax_tries = 1\n")
    with serving([step]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "-f", "json")

    result = result_of(done.stdout)
    assert result is not None
    assert (result.error_name, result.may_pass, result.retry_after_s, done.code) == (name, may_pass, wait_s, 1)


def test_good_result_names_no_error(panpan: Panpan) -> None:
    with serving([say("Hello.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "-f", "json")

    assert not {"error_name", "may_pass", "retry_after_s", "asked"} & done.result.keys()


def test_wrong_setting_does_not_pass(panpan: Panpan) -> None:
    done = panpan.run("-p", "go", "-f", "json", "--model", "no-such-provider/x")

    assert (done.code, done.result["may_pass"]) == (2, False)


def test_session_that_is_being_left_is_held_and_then_goes_on(panpan: Panpan) -> None:
    command = f"trap '' TERM; touch started; sleep 95.{os.getpid()}"
    words = ("--session-id", SESSION, "-f", "json", "-p")
    with serving([calls(ToolCall("Bash", {"command": command})), say("Went on.")]) as server:
        panpan.use(server)
        process = panpan.start(*words, "go", "--yes", stdin=subprocess.DEVNULL)
        wait_until((panpan.workspace / "started").exists)
        held = panpan.run(*words, "go on")
        process.send_signal(signal.SIGTERM)
        while (again := panpan.run(*words, "go on", "--unfinished", "unclear")).result.get("may_pass"):
            assert again.result["error_name"] == "SessionHeldError"
        stdout, _ = process.communicate()

    assert (held.code, held.result["error_name"], held.result["may_pass"]) == (2, "SessionHeldError", True)
    assert (process.returncode, json.loads(stdout)["subtype"]) == (143, "error_during_execution")
    assert (again.code, again.result["result"], again.result["session_id"]) == (0, "Went on.", SESSION)
    assert len(server.requests) == 2, "a held session asks nothing"
