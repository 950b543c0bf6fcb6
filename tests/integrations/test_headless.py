import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ConfigError, ToolError
from panpan.integrations import harbor_agent, inspect_agent
from panpan.integrations.headless import headless_command, require_result, result_of
from tests.e2e.conftest import Panpan, panpan, prepared  # noqa: F401 - fixtures
from tests.model_server import say, serving


def result_line(**fields: Any) -> str:
    return json.dumps({"type": "result", "result": "done", "session_id": "s1", "is_error": False, **fields})


@pytest.mark.parametrize("prompt", ["--help", "-p", "/etc/hosts is wrong", "two\nlines", "ends with \\"])
def test_prompt_is_one_word_whatever_it_begins_with(panpan: Panpan, prompt: str) -> None:  # noqa: F811
    with serving([say("seen")]) as server:
        panpan.use(server)
        argv = headless_command(prompt, command=(), model="anthropic/claude-test", system_prompt="Be brief.")
        done = panpan.run(*argv)

    found = require_result(done.stdout, done.stderr, done.code)
    assert (found.text, found.is_error) == ("seen", False)
    (said,) = [block for block in server.requests[0].messages[0]["content"] if block["text"] == prompt]
    assert said["type"] == "text"
    assert "Be brief." in json.dumps(server.requests[0].body["system"])
    assert server.requests[0].body["model"] == "claude-test"


def test_result_is_that_of_the_last_turn() -> None:
    output = "\n".join(("{}", "no json", result_line(result="one"), result_line(total_cost_usd=0.5), '{"type": "res'))

    found = result_of(output)

    assert found is not None
    assert (found.text, found.session_id, found.cost_usd) == ("done", "s1", 0.5)


@given(st.text())
def test_result_of_any_text_is_none(output: str) -> None:
    assert result_of(output) is None


@pytest.mark.parametrize("code", [3, 4, 5])
def test_run_that_ended_at_a_limit_has_a_result(code: int) -> None:
    assert require_result(result_line(is_error=True), "panpan: a limit", code).text == "done"


@pytest.mark.parametrize(
    ("output", "errors", "complaint"),
    [
        ("", "warned\npanpan: no key", "no key"),
        ("", "", "exit code 1"),
        (result_line(is_error=True, result="refused"), "", "refused"),
    ],
)
def test_failed_run_is_an_error_with_its_reason(output: str, errors: str, complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        require_result(output, errors, 1)


def test_harnesses_are_imported_when_they_are_used() -> None:
    with pytest.raises(ConfigError, match="inspect-ai"):
        _ = inspect_agent.panpan
    with pytest.raises(ConfigError, match="Harbor is not installed"):
        _ = harbor_agent.PanpanAgent
    with pytest.raises(AttributeError):
        _ = harbor_agent.nothing


@pytest.mark.parametrize("format_", ["text", "stream-json"])
def test_line_holds_whatever_ends_one_elsewhere(panpan: Panpan, format_: str) -> None:  # noqa: F811
    said = "one\u2028two\u0085three\u2029four\x0b\x0cfive"
    lines = '{"type": "user", "message": {"role": "user", "content": "go"}}\n'
    argv = headless_command("go", command=(), flags=("--input-format", format_))
    with serving([say(said)]) as server:
        panpan.use(server)
        done = panpan.run(*(argv if format_ == "text" else argv[:-2]), stdin="" if format_ == "text" else lines)

    assert require_result(done.stdout, done.stderr, done.code).text == said
    assert len(done.stdout.splitlines()) == done.stdout.count("\n")
    assert result_of(result_line(result=said)) is not None
    raw = json.dumps(json.loads(result_line(result=said)), ensure_ascii=False)
    assert result_of(raw) is not None
