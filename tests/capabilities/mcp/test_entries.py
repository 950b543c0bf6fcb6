import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.mcp.entries import (
    GivenServers,
    KnownServers,
    ServerEntry,
    read_entries,
    read_entry,
)
from panpan.capabilities.mcp.settings import PROJECT_FILE, McpServerSettings
from panpan.config.places import Places
from panpan.config.project_files import ProjectFiles
from panpan.config.trust import ProjectTrust, Trusted, Untrusted
from panpan.errors import ConfigError

PROGRAM = {"command": "server", "args": ["-v"]}


def project(data: bytes, *, is_trusted: bool = True) -> Places:
    files = ProjectFiles(Path("/p"), {PROJECT_FILE: data})
    return Places(trust=ProjectTrust(files, Trusted() if is_trusted else Untrusted()))


def of_project(servers: object, **environment: str) -> KnownServers:
    return read_entries(
        {}, project(json.dumps({"mcpServers": servers}).encode()), GivenServers(), environment, Path("/p")
    )


def entry(**keys: Any) -> ServerEntry:
    return read_entry("a", {**PROGRAM, **keys}, {}, "here")


def test_project_counts_only_if_trusted() -> None:
    data = json.dumps({"mcpServers": {"a": PROGRAM}}).encode()

    trusted, untrusted = (
        read_entries({}, project(data, is_trusted=is_trusted), GivenServers(), {}, Path("/p"))
        for is_trusted in (True, False)
    )

    assert list(trusted.entries) == ["a"]
    assert trusted.entries["a"].needs_approval
    assert trusted.entries["a"].is_boxed
    assert untrusted.entries == {}


AGENT = b"""---
name: weather
description: Looks at the weather.
tools: Read
mcpServers:
  - docs
  - sky: {command: sky-server, env: {A: b}}
---
Look up.
"""


@pytest.mark.parametrize("is_trusted", [True, False])
def test_agent_brings_a_server_that_needs_a_yes(is_trusted: bool) -> None:
    files = ProjectFiles(Path("/p"), {".claude/agents/weather.md": AGENT})
    places = Places(trust=ProjectTrust(files, Trusted() if is_trusted else Untrusted()))

    found = read_entries({}, places, GivenServers(), {}, Path("/p")).entries

    assert list(found) == (["sky"] if is_trusted else [])
    assert not is_trusted or (found["sky"].needs_approval and found["sky"].place == ".claude/agents/weather.md")


@pytest.mark.parametrize("servers", [b"{", b"[5, [a]]", b"&a [*a]", b"'a, b'"])
def test_odd_servers_of_an_agent_cost_nothing_else(servers: bytes) -> None:
    data = b"---\nname: a\ndescription: b\nmcpServers: " + servers + b"\n---\nPrompt.\n"
    places = Places(trust=ProjectTrust(ProjectFiles(Path("/p"), {".claude/agents/a.md": data}), Trusted()))

    assert read_entries({"own": McpServerSettings(command="x")}, places, GivenServers(), {}, Path("/p")).entries


def test_stronger_place_counts_and_the_other_is_told() -> None:
    places = project(json.dumps({"mcpServers": {"a": {"command": "project"}, "b": {"command": "project"}}}).encode())
    own = {"a": McpServerSettings(command="user"), "c": McpServerSettings(command="user")}
    flag = GivenServers((json.dumps({"c": {"command": "flag"}}),))

    found = read_entries(own, places, flag, {}, Path("/p"))

    assert {name: one.title for name, one in found.entries.items()} == {"c": "flag", "a": "user", "b": "project"}
    assert found.asides == [
        "[mcp.c] of your settings: the server c is also in --mcp-config, which counts",
        ".mcp.json: the server a is also in [mcp.a] of your settings, which counts",
    ]


def test_strict_command_line_leaves_all_others_out() -> None:
    places, own = project(b'{"b": {"command": "x"}}'), {"a": McpServerSettings(command="user")}

    found = read_entries(own, places, GivenServers((), is_strict=True), {}, Path("/"))

    assert found.entries == {}


@pytest.mark.parametrize("twin", ["a_b", "A-B"])
def test_name_that_is_hard_to_tell_from_another_is_left_out(twin: str) -> None:
    found = of_project({"a-b": PROGRAM, twin: PROGRAM})

    assert list(found.entries) == ["a-b"]
    assert found.asides == [f".mcp.json: the server {twin} is hard to tell from a-b in .mcp.json, which counts"]


@pytest.mark.parametrize("name", ["", "a b", "a__b", "ä", "a/b", "_a", "-a", "a_", "x" * 65, "a" * 60 + "!"])
def test_name_that_no_tool_may_have_is_refused(name: str) -> None:
    found = of_project({name: PROGRAM, "good": PROGRAM})

    assert list(found.entries) == ["good"]
    assert "a name has letters, digits, - and single _" in found.problems[0]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ([], "is no object"),
        ({}, 'it has neither a "command" nor a "url"'),
        ({"type": "http"}, '"url" names no address'),
        ({"type": "stdio"}, '"command" names no program'),
        ({"type": "ws", "url": "wss://x"}, "there is no type ws; there are stdio, http, streamable-http, sse"),
        ({"command": "a", "type": ["stdio"]}, "there is no type ['stdio']"),
        ({"command": "a", "type": {}}, "there is no type {}"),
        ({"command": ["a"]}, "command: input should be a valid string"),
        ({"command": "a", "args": "b"}, "args: input should be a valid tuple"),
        ({"command": "a", "env": {"A": 1}}, "env.A: input should be a valid string"),
        ({"url": "nowhere"}, "url: value error, is not an address"),
        ({"command": "a", "url": "https://example.org"}, "it has both a command and an address"),
        ({"command": "${GONE}"}, "the variable GONE is not set"),
    ],
)
def test_wrong_entry_costs_that_server_alone(written: object, why: str) -> None:
    found = of_project({"bad": written, "good": PROGRAM})

    assert list(found.entries) == ["good"]
    assert len(found.problems) == 1
    assert found.problems[0].startswith(".mcp.json: the server bad ")
    assert why in found.problems[0]


@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b'{"mcpServers": []}', b"[" * 100_000, b"\xff"])
def test_broken_file_costs_its_servers_and_not_the_session(data: bytes) -> None:
    found = read_entries({}, project(data), GivenServers(), {}, Path("/p"))

    assert found.entries == {}
    assert len(found.problems) == 1


def test_unknown_keys_are_told_once_and_the_server_counts() -> None:
    found = of_project({"a": {**PROGRAM, "oauth": {"other": 1}, "nonsense": 1, "description": "fine"}})

    assert list(found.entries) == ["a"]
    assert found.asides == [
        ".mcp.json: of the server a these keys have no effect: nonsense",
        ".mcp.json: of the server a these keys have no effect: oauth.other",
    ]


def test_logins_of_other_agents_count() -> None:
    oauth = {"clientId": "mine", "clientSecret": "${HUSH}", "callbackPort": 8080, "scopes": "read write"}
    found = of_project({"a": {"url": "https://example.org/mcp", "oauth": oauth}}, HUSH="hunter2").entries["a"]

    settings = found.settings
    assert (settings.client_id, settings.callback_port, settings.scopes) == ("mine", 8080, ("read", "write"))
    assert settings.client_secret is not None
    assert settings.client_secret.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("oauth", [5, [], {"scopes": 5}, {"clientId": ["a"]}, {"callbackPort": 0}])
def test_odd_logins_cost_at_most_that_server(oauth: object) -> None:
    found = of_project({"a": {"url": "https://example.org/mcp", "oauth": oauth}, "good": PROGRAM})

    assert "good" in found.entries
    assert ("a" in found.entries) == (not found.problems)


def test_variables_are_filled_in_and_named_but_not_shown() -> None:
    found = of_project(
        {"a": {"url": "https://${HOST:-example.org}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}},
        TOKEN="hunter2",
    ).entries["a"]

    assert found.settings.url == "https://example.org/mcp"
    assert found.settings.headers["Authorization"].get_secret_value() == "Bearer hunter2"
    assert list(found.variables) == ["TOKEN"]
    assert found.without_values("x hunter2 y") == "x ${TOKEN} y"
    assert "hunter2" not in f"{found!r} {list(found.described())}"


def test_secret_in_an_argument_is_not_in_the_title() -> None:
    found = of_project({"a": {"command": "server", "args": ["--token", "${TOKEN}"]}}, TOKEN="secret").entries["a"]

    assert found.settings.args == ("--token", "secret")
    assert found.title == "server --token ${TOKEN}"


def test_keys_of_other_agents_are_understood() -> None:
    found = of_project({
        "a": {**PROGRAM, "timeout": 5000, "alwaysLoad": True},
        "b": {**PROGRAM, "disabled": True},
        "c": {"type": "streamable-http", "url": "http://localhost:8000/mcp"},
    }).entries  # fmt: skip

    assert (found["a"].settings.call_s, found["a"].settings.exposure) == (5.0, "direct")
    assert not found["b"].settings.enabled
    assert (found["c"].transport, found["c"].silence_s, found["a"].silence_s) == ("http", 300.0, 1800.0)


@pytest.mark.parametrize(
    "change",
    [
        {"command": "other"}, {"args": ["-w"]}, {"env": {"A": "1"}}, {"cwd": "sub"}, {"write": ["out"]},
        {"network": ["example.org"]},
    ],
)  # fmt: skip
def test_digest_differs_with_all_that_decides_what_runs(change: Mapping[str, Any]) -> None:
    assert entry(**change).digest != entry().digest


def test_digest_is_that_of_the_values_behind_variables() -> None:
    written = {"command": "server", "env": {"A": "${A}"}}

    one, two = (read_entry("a", written, {"A": value}, "here").digest for value in ("1", "2"))

    assert one != two


@pytest.mark.parametrize(
    ("keys", "box"),
    [
        ({}, "in the sandbox: writes nowhere, has no network"),
        ({"write": ["out"], "network": ["example.org"]}, "in the sandbox: writes in /p/out, reaches example.org"),
    ],
)
def test_box_of_a_project_is_described(keys: Mapping[str, Sequence[str]], box: str) -> None:
    assert list(of_project({"a": {**PROGRAM, **keys}}).entries["a"].described()) == ["runs: server -v", box]


def test_folder_of_a_project_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    root, victim = tmp_path.resolve() / "p", tmp_path.resolve() / "victim"
    for folder in (root, victim):
        folder.mkdir()
    data = json.dumps({"a": {**PROGRAM, "write": ["out"]}}).encode()
    places = Places(trust=ProjectTrust(ProjectFiles(root, {PROJECT_FILE: data}), Trusted()))

    before = read_entries({}, places, GivenServers(), {}, root)
    (root / "out").symlink_to(victim)
    after = read_entries({}, places, GivenServers(), {}, root)

    assert before.entries["a"].folders == (str(root / "out"),)
    assert after.entries == {}
    assert "write: out leads out of the project" in after.problems[0]


@pytest.mark.parametrize("config", ["{", "/no/such/file.json", '{"mcpServers": {"a": {"type": "ws"}}}'])
def test_wrong_command_line_is_refused_at_once(config: str) -> None:
    with pytest.raises(ConfigError):
        read_entries({}, Places(), GivenServers((config,)), {}, Path("/"))


def test_file_of_the_command_line_is_relative_to_the_folder(tmp_path: Path) -> None:
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"a": PROGRAM}}))

    found = read_entries({}, Places(), GivenServers(("servers.json",)), {}, tmp_path)

    assert list(found.entries) == ["a"]
    assert not found.entries["a"].needs_approval


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=10), JSON | st.fixed_dictionaries({"command": JSON, "args": JSON})))
def test_no_entry_breaks_the_reader(servers: Mapping[str, Any]) -> None:
    found = of_project(servers)

    assert all(one.settings.command or one.settings.url for one in found.entries.values())
    assert len(found.entries) + len(found.problems) + len(found.asides) >= len(servers)
