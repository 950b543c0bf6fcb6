"""Output for programs: shapes, the last line, and the exit code."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.e2e.conftest import Panpan
from tests.model_server import HttpError, Reply, Stall, Text, Thinking, Tokens, ToolCall, call, calls, say, serving


def test_text_output_is_the_answer_alone(panpan: Panpan) -> None:
    with serving([say("Hello,\nworld")]) as server:
        panpan.use(server)
        done = panpan.run(stdin="hi")

    assert (done.stdout, done.stderr, done.code) == ("Hello,\nworld\n", "", 0)


def test_json_output_is_the_result_object_alone(panpan: Panpan) -> None:
    with serving([say("42", tokens=Tokens(input=100, output=7, cache_read=50, cache_write=20))]) as server:
        panpan.use(server)
        done = panpan.run("-p", "6*7", "-f", "json")

    (result,) = done.lines
    assert (
        result
        | {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "num_turns": 1,
            "result": "42",
            "stop_reason": "end_turn",
            "permission_denials": [],
            "usage": {
                "input_tokens": 100,
                "output_tokens": 7,
                "cache_read_input_tokens": 50,
                "cache_creation_input_tokens": 20,
            },
        }
        == result
    )
    assert {"duration_ms", "duration_api_ms", "session_id", "total_cost_usd", "modelUsage", "uuid"} <= result.keys()
    assert result["total_cost_usd"] > 0
    assert [path.stem for path in panpan.session_files()] == [result["session_id"]]


def test_stream_json_begins_with_init_and_ends_with_the_result(panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("a\n")
    with serving([calls(ToolCall("Read", {"file_path": "a.txt"}), text="Let me see."), say("It says a.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "read a.txt", "-f", "stream-json")

    kinds = [(line["type"], line.get("subtype")) for line in done.lines]
    assert kinds == [
        ("system", "init"),
        ("system", "system_reminder"),
        ("assistant", None),
        ("user", None),
        ("assistant", None),
        ("result", "success"),
    ]
    init, _, asks, answers, _, _ = done.lines
    assert {
        "session_id",
        "uuid",
        "cwd",
        "tools",
        "mcp_servers",
        "model",
        "permissionMode",
        "apiKeySource",
    } <= init.keys()
    assert init["cwd"] == str(panpan.workspace)
    assert [block["type"] for block in asks["message"]["content"]] == ["text", "tool_use"]
    (tool_result,) = answers["message"]["content"]
    assert tool_result["tool_use_id"] == asks["message"]["content"][1]["id"]
    assert {line["session_id"] for line in done.lines} == {init["session_id"]}
    assert all(line["parent_tool_use_id"] is None for line in (asks, answers))


@pytest.mark.parametrize("dialect", ["anthropic", "openai"])
def test_partial_messages_are_events_of_the_messages_api(panpan: Panpan, dialect: str) -> None:
    reply = Reply((Thinking("hm"), Text("Hello there, world"), ToolCall("LS", {})))
    with serving([reply, say("done")]) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "hi", "-f", "stream-json", "--include-partial-messages")

    events = [line["event"] for line in done.lines if line["type"] == "stream_event"]
    first = events[: [event["type"] for event in events].index("message_stop") + 1]
    assert first[0]["type"] == "message_start"
    assert first[0]["message"]["role"] == "assistant"
    kinds = [event["content_block"]["type"] for event in first if event["type"] == "content_block_start"]
    assert kinds == ["thinking", "text", "tool_use"]
    text = "".join(e["delta"].get("text", "") for e in first if e["type"] == "content_block_delta")
    assert text == "Hello there, world"
    assert first[-2]["delta"]["stop_reason"] == "tool_use"
    signed = [event["delta"]["type"] for event in first if "signature" in event.get("delta", {})]
    assert signed == (["signature_delta"] if dialect == "anthropic" else [])


def test_stream_json_has_a_result_for_each_turn(panpan: Panpan) -> None:
    def message(text: str) -> str:
        return f'{{"type":"user","message":{{"role":"user","content":{text}}}}}\n'

    with serving([say("one"), say("two")]) as server:
        panpan.use(server)
        done = panpan.run(
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            stdin=message('"first"') + message('[{"type":"text","text":"second"}]'),
        )

    assert [line["result"] for line in done.lines if line["type"] == "result"] == ["one", "two"]
    assert sum(line["type"] == "system" and line["subtype"] == "init" for line in done.lines) == 1
    assert [message["role"] for message in server.requests[1].messages] == ["user", "assistant", "user"]


def test_input_line_that_is_no_message_is_named(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        done = panpan.run(
            "--input-format", "stream-json", "-f", "stream-json",
            stdin='{"type":"user","message":{"role":"user","content":"hi"}}\nnot json\n',
        )  # fmt: skip

    assert done.code == 2
    assert "line 2 of the input" in done.stderr
    assert done.result["is_error"]


ERRORS: list[tuple[str, list[Any], list[str], int, str]] = [
    ("a refused request", [HttpError(400, "max_tokens: too large")], [], 1, "error_during_execution"),
    ("a wrong key", [HttpError(401)], [], 1, "error_during_execution"),
    ("too many rounds", [call("LS", {"path": "."}), call("LS", {}), say("x")], ["--max-turns", "2"], 3,
     "error_max_turns"),
    ("a spent budget", [call("LS", {}, tokens=Tokens(input=10**6)), say("x")], ["--max-budget-usd", "0.01"], 4,
     "error_max_budget_usd"),
    ("spent tokens", [call("LS", {}, tokens=Tokens(input=60_000)), say("x")], ["--max-tokens", "60000"], 4,
     "error_max_budget_usd"),
    ("spent time", [say("x", faults=(Stall("text"),))], ["--max-seconds", "0.5"], 4, "error_max_budget_usd"),
    ("an unknown price", [], ["--max-budget-usd", "1", "--model", "openai/unheard-of"], 4, "error_max_budget_usd"),
    ("an unknown session", [], ["-r", "nope"], 2, "error_during_execution"),
    ("a cassette that is not there", [], ["--model", "cassette:nope.toml"], 2, "error_during_execution"),
    ("a folder that is not there", [], ["--cwd", "nope"], 2, "error_during_execution"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "args", "code", "subtype"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS]
)
def test_error_ends_with_a_result_object_one_line_and_its_code(
    panpan: Panpan, script: list[Any], args: list[str], code: int, subtype: str
) -> None:
    with serving(script) as server:
        panpan.use(server)
        panpan.env |= {"OPENAI_API_KEY": "sk-test-0123456789"}
        done = panpan.run("-p", "go", "-f", "json", *args)

    assert done.code == code, done.stderr
    assert (done.result["is_error"], done.result["subtype"]) == (True, subtype)
    assert done.stderr.startswith("panpan: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert done.result["errors"] == [done.stderr.removeprefix("panpan: ").rstrip("\n")]


@pytest.mark.parametrize("args", [["two words"], ["-p", "--quiet", "two words"], ["two words", "--quiet"]])
def test_prompt_without_p_is_answered_without_a_terminal(panpan: Panpan, args: list[str]) -> None:
    with serving([say("Yes.")]) as server:
        panpan.use(server)
        done = panpan.run(*args, stdin="and a pipe")

    assert (done.code, done.stdout) == (0, "Yes.\n")
    said = server.requests[0].messages[0]["content"]
    assert [block["text"] for block in said[:2]] == ["two words", "and a pipe"]


WRONG_USAGE: Sequence[tuple[list[str], str]] = [
    (["--no-such-flag"], "no such option '--no-such-flag'"),
    (["--modle", "x"], "no such option '--modle'; did you mean '--model'? See panpan --help"),
    (
        ["serve", "--model", "x"],
        "those of sessions stand before serve: panpan --model … serve; see panpan serve --help",
    ),
    (["acp", "-c"], "no such option '-c'"),  # no option of acp, and none that stands before it
    (["acp", "--effort", "low"], "those of sessions stand before acp: panpan --effort … acp; see panpan acp --help"),
    (["serve", "--prot", "1"], "no such option '--prot'; did you mean '--host' or '--port'? See panpan serve --help"),
    (["doctor", "--jso"], "did you mean '--json'? See panpan doctor --help"),
    (["-f", "yaml"], "invalid value for '-f' / '--output-format'"),
    (["--max-turns", "0"], "--max-turns"),
    (["-c", "-r", "x"], "exclude each other"),
    (["--include-partial-messages", "-p", "x"], "goes with --output-format stream-json"),
    (["--session-mirror"], "--session-mirror goes with --input-format stream-json"),
    (["--max-turns", "3", "demo"], "--max-turns does not go with the command demo; see panpan --help"),
    (["--model", "x", "doctor"], "--model does not go with the command doctor"),
    (["--no-thinking", "sessions"], "--no-thinking does not go with the command sessions"),
    (["-p", "x", "config", "show"], "-p / --print does not go with the command config"),
    (["-q", "config", "show"], "-q / --quiet does not go with the command config"),
    (["doctr", "--json"], "there is no command 'doctr'; did you mean `panpan doctor`?"),
    (["sesions"], "there is no command 'sesions'; did you mean `panpan sessions`?"),
    (["frob"], "there is no command 'frob'; the commands are acp, agents, attach, batch, capabilities, ci, commit"),
    (["comit", "-q"], "If it is a prompt: panpan -p comit -q"),
    (["statuss"], "or `panpan -p /status`?"),
    (["mpc", "list"], "there is no command 'mpc', and a prompt of several words needs quotes"),
    (["-f", "text", "signin"], "there is no command 'signin'"),
    (["mend", "the", "test"], "a prompt of several words needs quotes"),
    (["-p", "fix", "the test"], "there are two prompts"),
    (["-r", "-p", "x"], "-r needs the id or title of a session"),
    (["-r"], "-r needs the id or title of a session"),
    (["-p", "x", "-c", "--resume=y"], "-c and -r exclude each other"),
]


def test_wrong_usage_is_exit_two_and_says_what(panpan: Panpan) -> None:
    for args, said in WRONG_USAGE:
        done = panpan.run(*args)
        assert done.code == 2, args
        assert said in done.stderr
        assert done.stdout == "", args
        assert done.stderr.startswith("panpan: "), args
        assert done.stderr.count("\n") == 1, args


def test_wrong_usage_is_told_to_programs_as_a_result(panpan: Panpan) -> None:
    lines = [
        ["-f", "json", "--modle", "x"],
        ["--modle", "x", "--output-format=stream-json"],
        ["-qfjson", "fix", "the", "test"],
        ["-f", "text", "-c", "-f", "json", "-r", "x"],
        ["-f", "json", "doctor"],
        ["--input-format", "stream-json", "-f", "stream-json", "fix it"],
    ]

    for args in lines:
        done = panpan.run(*args)
        assert done.code == 2, args
        assert done.result["is_error"], args
        assert done.result["errors"] == [done.stderr.removeprefix("panpan: ").rstrip("\n")], args


def test_wrong_usage_that_asks_for_no_json_gets_none(panpan: Panpan) -> None:
    lines = [["-f", "text", "--modle"], ["--modle", "--", "-f", "json"], ["-f", "jason"]]

    assert [panpan.run(*line).stdout for line in lines] == ["", "", ""]


def test_config_show_takes_the_options_of_a_run(panpan: Panpan) -> None:
    (panpan.workspace / "sub").mkdir()
    flags = ["--cwd", "sub", "--add-dir", "extra", "--permission-mode", "plan", "--model", "gpt-5", "--api-key", "sk-1"]

    done = panpan.run(*flags, "config", "show", "--show-origin")

    assert done.code == 0
    assert 'permission.mode = "plan"  # --permission-mode\n' in done.stdout
    assert 'model = "gpt-5"  # --model\n' in done.stdout
    assert f'"{panpan.workspace / "extra"}",  # --add-dir\n' in done.stdout, "it is a path of the caller's"
    assert "sk-1" not in done.stdout


def test_paths_of_options_are_relative_to_the_callers_folder(panpan: Panpan) -> None:
    (panpan.workspace / "sub").mkdir()
    (panpan.workspace / "extra").mkdir()
    (panpan.workspace / "extra" / "a.txt").write_text("found it\n")
    (panpan.workspace / "tape.toml").write_text(
        'version = 1\n[[reply]]\n[[reply.tool_use]]\nname = "Read"\ninput = { file_path = "../extra/a.txt" }\n'
        '[[reply]]\ntext = "Read."\n'
    )

    done = panpan.run("-p", "go", "--cwd", "sub", "--add-dir", "extra", "--model", "cassette:tape.toml")

    assert (done.code, done.stderr) == (0, "")
    assert "found it" in str(panpan.records())


def test_missing_prompt_is_an_error(panpan: Panpan) -> None:
    panpan.env["ANTHROPIC_API_KEY"] = "sk-ant-test-0123456789"

    done = panpan.run(stdin="")

    assert done.code == 2
    assert "there is no prompt" in done.stderr


def test_missing_key_names_the_variable_and_the_demo(panpan: Panpan) -> None:
    done = panpan.run("-p", "hi")

    assert done.code == 2
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "panpan demo" in done.stderr
    assert len(done.stderr.splitlines()) <= 4


def test_misspelt_setting_names_file_and_line(panpan: Panpan) -> None:
    panpan.home.mkdir()
    (panpan.home / "settings.toml").write_text('# mine\nmodle = "smart"\n')

    done = panpan.run("-p", "hi")

    assert done.code == 2
    assert f"{panpan.home / 'settings.toml'}:2" in done.stderr
    assert "model" in done.stderr


def test_key_is_nowhere_but_in_the_request(panpan: Panpan) -> None:
    with serving([call("Bash", {"command": "env; cat /proc/self/environ"}), HttpError(400, "bad key {key}")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "-y", "-f", "stream-json", "--debug")

    key = panpan.env["ANTHROPIC_API_KEY"]
    kept = "".join(path.read_text(errors="replace") for path in panpan.home.rglob("*") if path.is_file())
    assert server.requests[0].headers["x-api-key"] == key
    assert key not in done.stdout + done.stderr + kept
    assert key not in server.requests[1].raw.decode()


def test_thinking_is_requested_and_sent_back(panpan: Panpan) -> None:
    reply = Reply((Thinking("The folder first.", "c2VhbA=="), ToolCall("LS", {})))
    with serving([reply, say("Empty.")]) as server:
        panpan.use(server)
        done = panpan.run(
            "-p", "look", "--model", "claude-sonnet-4-5", "--thinking-budget", "2048", "--effort", "high"
        )  # fmt: skip

    assert done.code == 0, done.stderr
    first, second = (request.body for request in server.requests)
    assert first["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert first["max_tokens"] > 2048
    assert second["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "The folder first.",
        "signature": "c2VhbA==",
    }
