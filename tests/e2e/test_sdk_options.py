"""Options of programs on the Claude Agent SDK, in its spelling: each does what it says."""

import json
from pathlib import Path

import pytest

from panpan.version import __version__
from tests.e2e.conftest import Panpan
from tests.model_server import HttpError, call, say, serving
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Step


def tools_in(request: RecordedRequest) -> set[str]:
    """Return the names of the tools that the model gets."""
    return {tool.get("function", tool)["name"] for tool in request.body.get("tools", ())}


def texts_in(request: RecordedRequest, role: str) -> list[str]:
    """Return the texts of all messages of a role, `system` in either dialect included."""
    body = request.body
    messages = [*request.messages, *([{"role": "system", "content": body["system"]}] if "system" in body else [])]
    contents = [message["content"] for message in messages if message["role"] == role]
    return [
        text
        for content in contents
        for text in ([content] if isinstance(content, str) else [part["text"] for part in content if "text" in part])
    ]


DIALECTS = pytest.mark.parametrize("dialect", ["anthropic", "openai"])


@DIALECTS
def test_tools_are_only_those_that_are_named(panpan: Panpan, dialect: str) -> None:
    with serving([say("one"), say("two"), say("three")]) as server:
        panpan.use(server, dialect=dialect)
        panpan.run("-p", "hi", "--tools", "Read,grep")
        panpan.run("-p", "hi", "--tools", "")
        panpan.run("-p", "hi", "--tools=default")

    few, none, every = (tools_in(request) for request in server.requests)
    assert few == {"Read", "Grep"}
    assert none == set()
    assert every > {"Read", "Grep", "Bash"}


def test_call_of_a_tool_that_is_not_named_does_nothing(panpan: Panpan) -> None:
    with serving([call("Bash", {"command": "touch made"}), say("I cannot.")]) as server:
        panpan.use(server)
        panpan.run("-p", "hi", "--tools", "Read", "--permission-mode", "bypassPermissions")

    assert not (panpan.workspace / "made").exists()


def test_unknown_tool_is_named_once(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "hi", "--tools", "Read,Hammer")

    assert done.stderr == "panpan: --tools names tools that this panpan does not have: Hammer\n"
    assert done.code == 0


def test_system_prompts_come_from_files(panpan: Panpan, tmp_path: Path) -> None:
    (panpan.workspace / "role.md").write_text("You are a sailor.\n")
    (tmp_path / "more.md").write_text("Speak briefly.")
    with serving([say("one")]) as server:
        panpan.use(server)
        panpan.run(
            "-p", "hi", "--system-prompt-file", "role.md", "--append-system-prompt-file", str(tmp_path / "more.md")
        )

    (request,) = server.requests
    assert texts_in(request, "system") == ["You are a sailor.\n\nSpeak briefly."]


@DIALECTS
def test_empty_system_prompt_is_none(panpan: Panpan, dialect: str) -> None:
    with serving([say("one")]) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "hi", "--system-prompt", "")

    assert (done.code, texts_in(server.requests[0], "system")) == (0, [])


@pytest.mark.parametrize("text", [None, b"\xff\xfe"])
def test_unreadable_system_prompt_is_named(panpan: Panpan, text: bytes | None) -> None:
    if text is not None:
        (panpan.workspace / "role.md").write_bytes(text)

    done = panpan.run("-p", "hi", "--system-prompt-file", "role.md")

    assert done.code == 2
    assert done.stderr.startswith("panpan: --system-prompt-file: ")
    assert "role.md" in done.stderr


THINKING = [
    (["--thinking", "disabled"], None),
    (["--no-thinking"], None),
    (["--max-thinking-tokens", "0"], None),
    (["--thinking", "adaptive"], 10_000),
    (["--thinking=enabled"], 10_000),
    (["--thinking"], 10_000),
    (["--max-thinking-tokens=4000"], 4_000),
    (["--max-thinking-tokens", "10"], 1_024),
]


def test_thinking_is_asked_for_in_every_spelling(panpan: Panpan) -> None:
    with serving([say("one") for _ in THINKING]) as server:
        panpan.use(server)
        for options, _ in THINKING:
            assert panpan.run(*options, "-p", "hi", "--model", "claude-sonnet-4-5").code == 0, options

    budgets = [request.body.get("thinking", {}).get("budget_tokens") for request in server.requests]
    assert budgets == [budget for _, budget in THINKING]


def test_prompt_behind_thinking_is_a_prompt(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        done = panpan.run("--thinking", "hello there")

    assert done.stdout == "one\n"
    assert texts_in(server.requests[0], "user")[0] == "hello there"


def test_value_behind_an_equals_sign_is_never_a_flag(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        done = panpan.run("--print=--yes is what?")
        unknown = panpan.run("-p", "hi", "--resume=--dangerously-skip-permissions")

    assert done.stdout == "one\n"
    assert texts_in(server.requests[0], "user")[0] == "--yes is what?"
    assert unknown.code == 2
    assert "there is no session '--dangerously-skip-permissions'" in unknown.stderr


def test_mode_manual_is_default(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "hi", "-f", "stream-json", "--permission-mode", "manual")

    assert done.lines[0]["permissionMode"] == "default"


def test_debug_log_goes_where_it_is_wanted(panpan: Panpan) -> None:
    with serving([say("one"), say("two")]) as server:
        panpan.use(server)
        first = panpan.run("-p", "hi", "--debug-to-stderr")
        second = panpan.run("-p", "hi", "--debug-file", "log.jsonl")

    assert '"message": "reply"' in first.stderr
    assert (second.stdout, second.stderr) == ("two\n", "")
    assert '"message": "reply"' in (panpan.workspace / "log.jsonl").read_text()
    assert not list(panpan.home.glob("debug/*"))


@DIALECTS
def test_fallback_model_answers_for_an_overloaded_one(panpan: Panpan, dialect: str) -> None:
    def answer(request: RecordedRequest) -> Step:
        is_first = request.body["model"] in ("claude-opus-4-5", "gpt-5")
        return HttpError(529, headers={"retry-after": "0.01"}) if is_first else say("here")

    first, second = (
        ("claude-opus-4-5", "claude-sonnet-4-5") if dialect == "anthropic" else ("openai/gpt-5", "openai/gpt-5-mini")
    )
    with serving(answer) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "hi", "-f", "stream-json", "--model", first, "--fallback-model", second)

    assert done.result["result"] == "here"
    assert [request.body["model"] for request in server.requests] == [first.rpartition("/")[2]] * 3 + [
        second.rpartition("/")[2]
    ]
    (reply,) = [line for line in done.lines if line["type"] == "assistant"]
    assert reply["message"]["model"] == second.rpartition("/")[2]


def test_fallback_model_that_is_not_there_is_named(panpan: Panpan) -> None:
    with serving([]) as server:
        panpan.use(server)
        done = panpan.run("-p", "hi", "--fallback-model", "nowhere/x")

    assert done.code == 2
    assert "nowhere" in done.stderr


def test_task_budget_betas_and_display_reach_the_messages_api(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        options = ["--task-budget", "50000", "--betas", "context-1m-2025-08-07", "--thinking-display", "omitted"]
        done = panpan.run("-p", "hi", "--model", "claude-opus-5", "--thinking", "adaptive", "--effort", "low", *options)

    (request,) = server.requests
    assert request.body["output_config"] == {"effort": "low", "task_budget": {"type": "tokens", "total": 50_000}}
    assert request.body["thinking"] == {"type": "adaptive", "display": "omitted"}
    assert request.headers["anthropic-beta"] == "context-1m-2025-08-07,task-budgets-2026-03-13"
    assert done.stderr == ""


def test_options_without_effect_are_told(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server, dialect="openai")
        done = panpan.run("-p", "hi", "--task-budget", "50000", "--betas", "x")

    assert "so --task-budget has no effect; use --max-tokens for a limit" in done.stderr
    assert "so --betas has no effect" in done.stderr
    assert "task_budget" not in str(server.requests[0].body)


def test_setting_sources_choose_the_files_that_count(panpan: Panpan) -> None:
    panpan.home.mkdir()
    (panpan.home / "settings.toml").write_text('permission.deny = ["WebFetch"]\nmax_rounds = 7\n')
    (panpan.home / "AGENTS.md").write_text("The user speaks.\n")
    (panpan.workspace / ".panpan").mkdir()
    (panpan.workspace / ".panpan/settings.toml").write_text('permission.deny = ["Glob"]\n')
    (panpan.workspace / "AGENTS.md").write_text("The project speaks.\n")
    cases = {"user,project,local": "both", "user": "The user", "project": "The project", "": "none"}
    with serving([say("one") for _ in cases]) as server:
        panpan.use(server)
        for kinds in cases:
            assert panpan.run("-p", "hi", f"--setting-sources={kinds}").code == 0

    for (kinds, speaks), request in zip(cases.items(), server.requests, strict=True):
        assert ("The user speaks" in str(request.body)) == (speaks in ("both", "The user")), kinds
        assert ("The project speaks" in str(request.body)) == (speaks in ("both", "The project")), kinds
        assert ("WebFetch" not in tools_in(request)) == (speaks in ("both", "The user")), kinds
        assert ("Glob" not in tools_in(request)) == (speaks in ("both", "The project")), kinds


def test_place_of_the_models_counts_without_setting_sources(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.home.mkdir()
        provider = f'kind = "anthropic"\nbase_url = "{server.url}"\napi_key = "k-123456789"\nmodels = ["m"]\n'
        (panpan.home / "settings.toml").write_text(f'model = "lab/m"\nmax_rounds = 1\n[providers.lab]\n{provider}')
        (panpan.home / "settings.toml").chmod(0o600)
        done = panpan.run("-p", "hi", "--setting-sources=")

    assert (done.stdout, done.stderr, done.code) == ("one\n", "", 0)


def test_unknown_setting_source_is_named(panpan: Panpan) -> None:
    done = panpan.run("-p", "hi", "--setting-sources", "user,global")

    assert done.code == 2
    assert "'global' is none of them" in done.stderr


def line(text: str, **fields: object) -> str:
    """Return a message of the user as a line of the input."""
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}, **fields}) + "\n"


ID, OTHER_ID = "11111111-2222-4333-8444-555555555555", "11111111-2222-4333-8444-666666666666"
STREAM = ("--input-format", "stream-json", "--output-format", "stream-json")


def test_user_messages_are_replayed_with_their_ids(panpan: Panpan) -> None:
    with serving([say("one"), say("two")]) as server:
        panpan.use(server)
        done = panpan.run(*STREAM, "--replay-user-messages", stdin=line("first", uuid=ID) + line("second"))

    replayed = [one for one in done.lines if one.get("isReplay")]
    assert [one["message"]["content"][0]["text"] for one in replayed] == ["first", "second"]
    assert replayed[0]["uuid"] == ID
    first, second = (one for one in done.lines if one["type"] == "result")
    assert (first["user_message_uuid"], first["user_message_uuids"]) == (ID, [ID])
    assert "user_message_uuid" not in second
    answers = [one.get("user_message_uuid") for one in done.lines if one["type"] == "assistant"]
    assert answers == [ID, None]


def test_message_that_comes_twice_counts_once(panpan: Panpan) -> None:
    with serving([say("one"), say("two")]) as server:
        panpan.use(server)
        twice = line("first", uuid=ID) * 2
        first = panpan.run(*STREAM, stdin=twice)
        second = panpan.run(*STREAM, "-c", stdin=twice + line("second", uuid=OTHER_ID))

    assert [one["result"] for done in (first, second) for one in done.lines if one["type"] == "result"] == [
        "one",
        "two",
    ]


def test_composed_message_is_taken_word_for_word(panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("secret words\n")
    with serving([say("one"), say("two")]) as server:
        panpan.use(server)
        panpan.run(*STREAM, stdin=line("/cost @a.txt", client_composed=True) + line("see @a.txt"))

    first, second = (str(request.messages) for request in server.requests)
    assert "/cost @a.txt" in first
    assert "secret words" not in first
    assert "secret words" in second


def test_init_and_result_have_the_fields_of_the_sdk(panpan: Panpan) -> None:
    with serving([say("one"), HttpError(400, "no")]) as server:
        panpan.use(server)
        done = panpan.run(*STREAM, stdin=line("first") + line("second"))

    init = done.lines[0]
    assert tuple(map(int, init["claude_code_version"].split("."))) >= (2, 1, 248)
    assert init["panpan_version"] == __version__
    assert init["fast_mode_state"] == "off"
    good, bad = (one for one in done.lines if one["type"] == "result")
    assert (good["terminal_reason"], bad["terminal_reason"], bad["api_error_status"]) == ("completed", "api_error", 400)
