import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from panpan.capabilities.mcp.entries import read_entry
from panpan.capabilities.mcp.logs import ServerLog
from panpan.cli.main import cli
from panpan.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path.resolve()


def panpan(folder: Path, *words: str, **env: str) -> Result:
    own = {"PANPAN_HOME": str(folder / "home"), "HOME": str(folder), "PATH": os.environ["PATH"]}
    cleared = {name: None for name in os.environ}
    return CliRunner().invoke(
        cli, ["--cwd", str(folder / "project"), *words], env={**cleared, **own, **env}, standalone_mode=False
    )


def settings(folder: Path) -> dict[str, object]:
    return tomllib.loads((folder / "home" / "settings.toml").read_text())


def refusal(result: Result) -> str:
    assert isinstance(result.exception, ConfigError)
    return str(result.exception)


def test_add_writes_a_program_into_the_users_settings(folder: Path) -> None:
    (folder / "home" / "settings.toml").write_text("# mine\nmodel = 'fast'\n")

    result = panpan(folder, "mcp", "add", "-e", "A=${B}", "git", "--", "uvx", "mcp-git", "-v", "--flag")

    assert result.exception is None
    assert settings(folder)["mcp"] == {
        "git": {"command": "uvx", "args": ["mcp-git", "-v", "--flag"], "env": {"A": "${B}"}}
    }
    assert (folder / "home" / "settings.toml").read_text().startswith("# mine\nmodel = 'fast'\n")
    assert result.stdout.splitlines()[1:] == [
        "  runs: uvx mcp-git -v --flag",
        "  with the variables: A",
        "  gets from your environment: B",
        "  outside the sandbox",
    ]


def test_add_tells_how_to_get_the_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = panpan(folder, "mcp", "add", "git", "sh")
    monkeypatch.setitem(sys.modules, "mcp", None)  # as if it were not installed
    missing = panpan(folder, "mcp", "add", "web", "https://example.org/mcp")

    assert there.stderr == ""
    assert "'mcp>=2.3,<3'" in missing.stderr
    assert missing.exit_code == 0


@pytest.mark.parametrize(
    ("target", "note"),
    [
        ("no-such-program", "there is no program no-such-program on this machine\n"),
        (
            "example.org/mcp",
            "there is no program example.org/mcp on this machine; for an address, begin it with https://\n",
        ),
    ],
)
def test_add_names_a_program_that_is_not_there(folder: Path, target: str, note: str) -> None:
    assert panpan(folder, "mcp", "add", "a", target).stderr == f"panpan: note: {note}"


def test_keys_without_effect_are_told_when_they_are_added(folder: Path) -> None:
    entry = {"url": "https://example.org/mcp", "oauth": {"clientID": "x", "callbackPort": "80", "clientSecret": "y"}}
    (folder / ".claude.json").write_text(json.dumps({"mcpServers": {"a": {**entry, "foo": 1}}}))

    added = panpan(folder, "mcp", "add-json", "b", json.dumps(entry)).stderr.splitlines()
    taken = panpan(folder, "mcp", "import", "claude", "a").stderr.splitlines()

    assert [line.partition(": of the server ")[2] for line in added] == [
        "b these keys have no effect: oauth.clientID",
        "b these keys cannot be used: oauth.callbackPort",
        "b the secret has no effect without a client id",
    ]
    assert "a these keys have no effect: foo" in taken[0]


def test_add_takes_an_address_with_headers(folder: Path) -> None:
    panpan(folder, "mcp", "add", "-H", "Authorization: Bearer ${T}", "-t", "sse", "web", "https://example.org/sse")

    assert settings(folder)["mcp"] == {
        "web": {"url": "https://example.org/sse", "type": "sse", "headers": {"Authorization": "Bearer ${T}"}}
    }


def test_add_replaces_a_server_only_by_force(folder: Path) -> None:
    panpan(folder, "mcp", "add", "a", "one")
    panpan(folder, "mcp", "add", "b", "other")

    assert "there is a server a already; --force replaces it" in refusal(panpan(folder, "mcp", "add", "a", "two"))
    panpan(folder, "mcp", "add", "--force", "a", "two", "x")

    assert settings(folder)["mcp"] == {"a": {"command": "two", "args": ["x"]}, "b": {"command": "other"}}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add", "a b", "x"), "a name has letters, digits"),
        (("add", "a", "https://example.org", "x"), "an address takes no further words"),
        (("add", "-e", "A", "a", "x"), "--env A: write NAME=VALUE"),
        (("add", "a", "-e", "A=b", "--", "x"), "-e is no program; options stand before the name"),
        (("add", "-t", "http", "a", "x"), '"url" names no address'),
        (("add-json", "a", "{"), "the entry is not JSON"),
        (("add-json", "a", "[]"), "is no object"),
        (("add-json", "a", '{"type": "ws"}'), "there is no type ws"),
        (("remove", "a"), "there is no [mcp.a] in your settings"),
        (("remove", "-s", "project", "a"), "there is no server a in"),
        (("get", "a"), "there is no MCP server a; there are: none"),
        (("approve", "a"), "there is no MCP server a; there are: none"),
    ],
)
def test_wrong_words_change_nothing(folder: Path, words: tuple[str, ...], why: str) -> None:
    assert why in refusal(panpan(folder, "mcp", *words))
    assert not (folder / "home" / "settings.toml").exists()
    assert not (folder / "project" / ".mcp.json").exists()


def test_json_of_other_agents_becomes_settings(folder: Path) -> None:
    panpan(folder, "mcp", "add-json", "a", '{"command": "x", "timeout": 5000, "alwaysLoad": true, "type": "stdio"}')

    assert settings(folder)["mcp"] == {"a": {"command": "x", "type": "stdio", "call_s": 5.0, "exposure": "direct"}}


def test_server_of_the_project_is_added_trusted_and_approved(folder: Path) -> None:
    file = folder / "project" / ".mcp.json"
    file.write_text('{"mcpServers": {"old": {"command": "o"}}, "other": 1}')

    added = panpan(folder, "mcp", "add", "-s", "project", "db", "server")
    untrusted = panpan(folder, "mcp", "list").stdout
    early = refusal(panpan(folder, "mcp", "approve", "db"))
    panpan(folder, "trust", "add")
    waiting = panpan(folder, "mcp", "list").stdout
    approved = panpan(folder, "mcp", "approve", "db")
    after = json.loads(panpan(folder, "mcp", "list", "--json").stdout)["servers"]
    panpan(folder, "mcp", "remove", "-s", "project", "db")

    assert "It runs once you trust the project and approve it" in added.stdout
    assert "wait until you trust the project: panpan trust add" in early
    assert "  in the sandbox: writes nowhere, has no network" in added.stdout
    assert "db" not in untrusted
    assert "db   waits for your yes: server (.mcp.json)" in waiting
    assert approved.stdout.splitlines()[-1] == "db may run in this project, exactly so"
    assert {row["name"]: row["status"] for row in after} == {"db": "may run", "old": "waits for your yes"}
    assert json.loads(file.read_text()) == {"mcpServers": {"old": {"command": "o"}}, "other": 1}


def test_changed_server_of_the_project_waits_again(folder: Path) -> None:
    file = folder / "project" / ".mcp.json"
    for variable, status in (("1", "may run"), ("2", "waits for your yes")):
        file.write_text('{"mcpServers": {"db": {"command": "server", "env": {"A": "${A}"}}}}')
        panpan(folder, "trust", "add")
        if variable == "1":
            panpan(folder, "mcp", "approve", "db", A=variable)

        assert f"db  {status}: server" in panpan(folder, "mcp", "list", A=variable).stdout


def test_own_server_needs_no_approval(folder: Path) -> None:
    panpan(folder, "mcp", "add", "a", "x")

    assert "needs no approval" in refusal(panpan(folder, "mcp", "approve", "a"))


def test_secrets_are_shown_nowhere(folder: Path) -> None:
    panpan(folder, "mcp", "add", "-e", "A=hunter2", "-H", "X: hunter2", "a", "x")
    panpan(folder, "mcp", "add", "b", "x", "--token", "${TOKEN}")

    shown = [panpan(folder, *words, TOKEN="hunter2").output for words in (("mcp", "list"), ("mcp", "get", "a"),
             ("mcp", "get", "b"), ("config", "show"), ("mcp", "list", "--json"), ("doctor",))]  # fmt: skip

    assert "hunter2" not in "".join(shown)
    assert "--token ${TOKEN}" in "".join(shown)


def test_problems_are_told_and_the_others_listed(folder: Path) -> None:
    (folder / "project" / ".mcp.json").write_text(
        '{"mcpServers": {"a": {"type": "ws"}, "b": {"command": "x", "y": 1}}}'
    )
    panpan(folder, "trust", "add")

    result = panpan(folder, "mcp", "list")

    assert result.stdout == "b  waits for your yes: x (.mcp.json)\n"
    assert result.stderr.splitlines() == [
        "panpan: warning: .mcp.json: the server a is left out: there is no type ws; there are stdio, http, "
        "streamable-http, sse",
        "panpan: note: .mcp.json: of the server b these keys have no effect: y",
    ]


CLAUDE = {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-git"]}}, "projects": {}}
CODEX = """
[mcp_servers.docs]
url = "https://example.org/mcp"
bearer_token_env_var = "DOCS_TOKEN"
tool_timeout_sec = 5
scopes = ["read"]

[mcp_servers.local]
command = "server"
env_vars = ["HOME_DIR"]
env = { A = "b" }
enabled = false
"""
OPENCODE = """{
  // my servers
  "mcp": {
    "one": {"type": "local", "command": ["npx", "-y", "one"], "environment": {"KEY": "{env:ONE_KEY}"}},
    "two": {"type": "remote", "url": "https://example.org/two", /* off */ "enabled": false,
            "oauth": {"clientId": "mine"}},
  },
}"""
VSCODE = """{"servers": {"pg": {
  "type": "stdio", "command": "${workspaceFolder}/pg", "env": {"P": "${input:db-password}", "Q": "${env:QUIET}"}
}}}"""


@pytest.mark.parametrize(
    ("source", "file", "text", "expected"),
    [
        ("claude", ".claude.json", json.dumps(CLAUDE), {"git": {"command": "uvx", "args": ["mcp-git"]}}),
        (
            "codex",
            ".codex/config.toml",
            CODEX,
            {
                "docs": {
                    "url": "https://example.org/mcp",
                    "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"},
                    "call_s": 5.0,
                    "scopes": ["read"],
                },
                "local": {"command": "server", "env": {"HOME_DIR": "${HOME_DIR}", "A": "b"}, "enabled": False},
            },
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            OPENCODE,
            {
                "one": {"command": "npx", "args": ["-y", "one"], "env": {"KEY": "${ONE_KEY}"}},
                "two": {"url": "https://example.org/two", "enabled": False, "client_id": "mine"},
            },
        ),
        (
            "vscode",
            "project/.vscode/mcp.json",
            VSCODE,
            {"pg": {"type": "stdio", "command": "./pg", "env": {"P": "${DB_PASSWORD}", "Q": "${QUIET}"}}},
        ),
    ],
)
def test_servers_of_other_agents_are_taken(
    folder: Path, source: str, file: str, text: str, expected: dict[str, object]
) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)

    shown = panpan(folder, "mcp", "import", source)
    is_unchanged = not (folder / "home" / "settings.toml").exists()
    taken = panpan(folder, "mcp", "import", source, "--all")
    again = panpan(folder, "mcp", "import", source, "--all")

    assert shown.exception is None
    assert "none is taken yet" in shown.stderr
    assert is_unchanged
    assert (taken.return_value, again.return_value) == (0, 1)
    assert settings(folder)["mcp"] == expected


@pytest.mark.parametrize("text", ["{", "[1]", '{"mcpServers": 5}', '{"mcpServers": {"a": 5, "b c": {"command": "x"}}}'])
def test_odd_file_of_another_agent_changes_nothing(folder: Path, text: str) -> None:
    (folder / ".claude.json").write_text(text)

    panpan(folder, "mcp", "import", "claude", "--all")

    assert not (folder / "home" / "settings.toml").exists()


def test_import_names_what_is_missing(folder: Path) -> None:
    assert "there is none of the files" in refusal(panpan(folder, "mcp", "import", "codex"))
    (folder / ".claude.json").write_text(json.dumps(CLAUDE))
    assert "claude has no server x; it has: git" in refusal(panpan(folder, "mcp", "import", "claude", "x"))


def test_flat_file_of_the_project_keeps_its_servers(folder: Path) -> None:
    file = folder / "project" / ".mcp.json"
    file.write_text('{"old": {"command": "legacy"}}')

    panpan(folder, "mcp", "add", "-s", "project", "new", "x")

    assert json.loads(file.read_text()) == {"mcpServers": {"old": {"command": "legacy"}, "new": {"command": "x"}}}


@pytest.mark.parametrize("text", ['mcp = { a = { command = "x" } }\n', 'mcp.a.command = "x"\n'])
def test_settings_that_cannot_be_changed_stay(folder: Path, text: str) -> None:
    (folder / "home" / "settings.toml").write_text(text)

    result = panpan(folder, "mcp", "add", "b", "y")

    if result.exception is not None:
        assert "is laid out in a way that panpan cannot change" in refusal(result)
        assert (folder / "home" / "settings.toml").read_text() == text
    else:
        assert settings(folder)["mcp"] == {"a": {"command": "x"}, "b": {"command": "y"}}


def test_serve_tells_how_to_get_the_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)  # as if it were not installed

    assert "install it: " in refusal(panpan(folder, "mcp", "serve"))


def test_serve_says_where_options_of_sessions_stand(folder: Path) -> None:
    result = panpan(folder, "mcp", "serve", "--model", "fast")

    assert "those of sessions stand before mcp: panpan --model … mcp serve" in str(result.exception)


def test_serve_refuses_servers_for_one_run(folder: Path) -> None:
    result = panpan(folder, "--mcp-config", "{}", "mcp", "serve")

    assert "--mcp-config does not go with mcp serve" in str(result.exception)


def log(folder: Path, name: str = "git") -> ServerLog:
    file = folder / "home" / "mcp" / "logs" / f"{name}.log"
    return ServerLog(file, read_entry(name, {"command": "x"}, {}, "here"))


def test_logs_show_the_last_lines_of_a_server(folder: Path) -> None:
    panpan(folder, "mcp", "add", "git", "uvx")
    log(folder).take(b"".join(b"line %d\n" % number for number in range(60)))

    shown = [panpan(folder, "mcp", "logs", "git", *words) for words in ((), ("-n", "2"), ("-n", "0"))]

    assert [len(result.stdout.splitlines()) for result in shown] == [50, 2, 0]
    assert [line.partition(" ")[2] for line in shown[1].stdout.splitlines()] == ["stderr: line 58", "stderr: line 59"]


def test_logs_without_a_name_are_those_of_all_servers_by_time(folder: Path) -> None:
    for name in ("git", "database"):
        panpan(folder, "mcp", "add", name, "uvx")
    logs = folder / "home" / "mcp" / "logs"
    logs.mkdir(parents=True)
    (logs / "git.log").write_text("2026-01-01T10:00:00+00:00 panpan: a\n2026-01-01T10:00:05+00:00 panpan: c\n")
    (logs / "database.log").write_text("2026-01-01T10:00:02+00:00 panpan: b\n")

    shown = panpan(folder, "mcp", "logs").stdout.splitlines()

    assert [(line.split()[0], line.split()[-1]) for line in shown] == [("git", "a"), ("database", "b"), ("git", "c")]


def test_logs_of_another_hand_drive_no_terminal(folder: Path) -> None:
    panpan(folder, "mcp", "add", "git", "uvx")
    log(folder).note("starts")
    file = folder / "home" / "mcp" / "logs" / "git.log"
    file.write_bytes(b"2026-01-01T10:00:00+00:00 stderr: \x1b[2Jred\rpanpan: well\n")

    (line,) = panpan(folder, "mcp", "logs", "git").stdout.splitlines()

    assert line.endswith(r"stderr: \x1b[2Jred\rpanpan: well")


def test_logs_of_a_server_that_is_none_are_refused(folder: Path) -> None:
    panpan(folder, "mcp", "add", "git", "uvx")

    assert refusal(panpan(folder, "mcp", "logs", "../git")) == "there is no MCP server ../git; there are: git"
    assert "there is no log yet" in panpan(folder, "mcp", "logs", "git").stderr


def test_logs_that_are_followed_show_what_is_added(folder: Path) -> None:
    panpan(folder, "mcp", "add", "git", "uvx")
    log(folder).note("starts")
    env = {"PANPAN_HOME": str(folder / "home"), "HOME": str(folder), "PATH": os.environ["PATH"]}
    argv = [sys.executable, "-m", "panpan", "--cwd", str(folder / "project"), "mcp", "logs", "-f", "git"]

    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        log(folder).note("was ended")
        second = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=20)

    assert [line.partition(" ")[2] for line in (first, second)] == ["panpan: starts\n", "panpan: was ended\n"]
    assert (rest, "Traceback" in errors, process.returncode) == ("", False, 130)
