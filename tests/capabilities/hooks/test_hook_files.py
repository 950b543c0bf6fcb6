"""Files with hooks: what counts, in which order, and that each fault costs one hook and is told with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.hooks.actions import Command
from panpan.capabilities.hooks.configuration import Handler, read_hooks
from panpan.config.places import BroughtFile, Places


def file_of(hooks: Any, *, name: str = "hooks.json", is_users: bool = True, **more: Any) -> BroughtFile:
    return BroughtFile("hooks", name, json.dumps({"hooks": hooks, **more}, indent=1).encode(), is_users=is_users)


def one(hook: Any, *, event: str = "PreToolUse", matcher: Any = "") -> BroughtFile:
    return file_of({event: [{"matcher": matcher, "hooks": [hook]}]})


def handler(**keys: Any) -> Handler:
    (found,) = read_hooks([one({"type": "command", "command": "true", **keys})]).handlers
    return found


def test_hook_has_what_its_file_says() -> None:
    found = handler(timeout=5, onFailure="block", **{"if": "Bash(rm *)"})

    assert (found.title, found.timeout_s, found.is_guard, found.is_async) == ("true", 5, True, False)
    assert found.condition is not None
    assert found.condition.text == "Bash(rm *)"
    assert found.place == "hooks.json:9"
    assert handler(args=["a b", "c"]).action == Command(("true", "a b", "c"), is_line=False)
    assert handler().timeout_s == 600


@pytest.mark.parametrize(
    ("matcher", "meant", "others"),
    [
        ("", ["Bash", "Edit"], []),
        ("*", ["Bash"], []),
        ("Bash", ["Bash"], ["BashOutput", "bash"]),
        ("Edit|Write", ["Edit", "Write"], ["MultiEdit"]),
        ("Edit, Write", ["Edit", "Write"], ["MultiEdit"]),
        ("Multi.*", ["MultiEdit"], ["Edit"]),
        ("^(Edit|Write)$", ["Edit"], ["MultiEdit"]),
        ("mcp__.*__read", ["mcp__files__read"], ["Read"]),
    ],
)
def test_matcher_means_names(matcher: str, meant: list[str], others: list[str]) -> None:
    (found,) = read_hooks([one({"command": "true"}, matcher=matcher)]).handlers

    assert all(map(found.matches, meant))
    assert not any(map(found.matches, others))


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("true", "it is no object"),
        ({"type": "mcp"}, 'its type is "mcp"; panpan has command, http, mcp_tool, prompt, agent'),
        ({"type": "mcp_tool", "server": "a"}, "it has no server and tool"),
        ({"type": "mcp_tool", "server": "a", "tool": "b", "input": []}, "its input is no object"),
        ({"type": "prompt"}, "it has no prompt"),
        ({"type": []}, "its type is []"),
        ({"type": {}}, "its type is {}"),
        ({"type": "agent", "prompt": "x", "model": 3}, "its model is no text"),
        ({"type": "http"}, "it has no url that begins with"),
        ({"type": "http", "url": "file:///etc/passwd"}, "it has no url that begins with"),
        ({"type": "http", "url": "https://a", "headers": {"a": 1}}, "its headers are no object of texts"),
        ({"type": "http", "url": "https://a", "allowedEnvVars": "A"}, "its allowedEnvVars are no list of texts"),
        ({"type": "command"}, "it has no command"),
        ({"command": "a\0b"}, "it has no command"),
        ({"command": "true", "args": "x"}, "its args are no list of texts"),
        ({"command": "true", "timeout": 0}, "its timeout is 0; write seconds above 0"),
        ({"command": "true", "timeout": True}, "its timeout is true; write seconds above 0"),
        ({"command": "true", "onFailure": "stop"}, 'its onFailure is "stop"; write continue or block'),
        ({"command": "true", "guard": "yes"}, "its guard is neither true nor false"),
        ({"command": "true", "guard": True, "async": True}, "it is a guard and async"),
        ({"command": "true", "if": "(((("}, "its if is no permission rule"),
    ],
)
def test_faulty_hook_is_refused_alone(hook: Any, said: str) -> None:
    found = read_hooks([file_of({"PreToolUse": [{"hooks": [hook, {"command": "good"}]}]})])

    assert [one.title for one in found.handlers] == ["good"]
    (problem,) = found.problems
    assert said in problem
    assert problem.startswith("hooks.json:")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "it is no JSON"),
        (b"[]", "it holds no object"),
        (b'{"hooks": 1}', "hooks is no object of events"),
        (b'{"hooks": {"PreToolUse": 1}}', "PreToolUse is no list"),
        (b'{"hooks": {"PreToolUse": [1]}}', "an entry of PreToolUse has no list of hooks"),
        (b'{"hooks": {"Setup": []}}', "hooks of Setup never run: panpan has no such event"),
        (b'{"hooks": {"BeforeAll": []}}', "hooks of BeforeAll never run: there is no such event"),
        (b'{"hooks": {"Stop": [{"matcher": "(", "hooks": []}]}}', "is no regular expression"),
        (b'{"hooks": {"Stop": [{"matcher": 1, "hooks": []}]}}', "is no text"),
    ],
)
def test_fault_of_a_file_is_told_once_with_its_line(data: bytes, said: str) -> None:
    found = read_hooks([BroughtFile("hooks", "hooks.json", data, is_users=True), one({"command": "good"})])

    assert [one.title for one in found.handlers] == ["good"]
    (problem,) = found.problems
    assert said in problem


def test_unknown_key_is_told_and_the_hook_runs() -> None:
    found = read_hooks([one({"command": "true", "retries": 3})])

    assert len(found.handlers) == 1
    assert found.problems == (
        'hooks.json:9: a hook of PreToolUse has the key "retries", which is not known and not used',
    )


def test_hook_that_is_written_twice_counts_once() -> None:
    guard = {"command": "true", "guard": True}
    files = [one({"command": "true"}), one(guard), one({"command": "true"}, matcher="Bash"), one(guard)]

    found = read_hooks(files).handlers
    assert [(each.matcher, each.is_guard) for each in found] == [("", False), ("", True), ("Bash", False)]


def test_switch_of_the_user_ends_all_hooks() -> None:
    users = file_of({}, name="mine", disableAllHooks=True)
    projects = file_of(
        {"Stop": [{"hooks": [{"command": "true"}]}]}, name="theirs", is_users=False, disableAllHooks=True
    )

    assert read_hooks([users, one({"command": "true"})]).handlers == ()
    assert [found.title for found in read_hooks([one({"command": "own"}), projects]).handlers] == ["own"]


def test_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "home" / "hooks.json").mkdir(parents=True)
    told: list[str] = []

    assert list(Places(tmp_path / "home").files(["hooks"], told)) == []
    (problem,) = told
    assert "it is not used" in problem


def test_events_of_others_are_no_problem_of_their_files() -> None:
    hooks = {"Setup": [], "BeforeAll": []}
    shared = read_hooks([file_of(hooks, name="/home/me/.claude/settings.json")])
    own = read_hooks([file_of(hooks)])

    assert [one.partition(": ")[2][:22] for one in shared.asides] == ["hooks of Setup never r"]
    assert ["BeforeAll" in one for one in shared.problems] == [True]
    assert (len(own.problems), own.asides) == (2, ())
