"""Commands of the installed program run in the sandbox: what was allowed is bounded, and only a person opens it."""

import errno
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from panpan.system.sandbox.choice import PLACES, find_sandbox
from tests.e2e.conftest import COMMAND, Panpan
from tests.model_server import ToolCall, calls, say, serving


@pytest.fixture(autouse=True)
async def _needs_sandbox() -> None:
    choice = await find_sandbox()
    if choice.sandbox is None:
        pytest.skip("; ".join(choice.passed_over))


def bash(command: str, **arguments: object) -> ToolCall:
    return ToolCall("Bash", {"command": command, **arguments})


def run(panpan: Panpan, call: ToolCall, *flags: str) -> str:
    """Let the model make one call, and return what it was told."""
    with serving([calls(call), say("done")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", *flags)
    (result,) = server.requests[-1].messages[-1]["content"]
    content = result["content"]
    told = content if isinstance(content, str) else "".join(block["text"] for block in content)
    assert (done.stdout, done.code) == ("done\n", 5 if told.startswith("Bash was not run") else 0)
    return told


def test_sandbox_bounds_commands_allowed_by_yes(panpan: Panpan) -> None:
    (panpan.workspace / "sub").mkdir()
    outside = panpan.workspace.parent / "outside.txt"
    script = f"f={outside}; echo inside >sub/a.txt; echo x >$f"
    told = run(panpan, bash(script), "--yes")
    assert (panpan.workspace / "sub" / "a.txt").read_text() == "inside\n"
    assert not outside.exists()
    assert "The sandbox lets this command change files only in" in told


@pytest.mark.parametrize("sandbox", ["off", "network"])
@pytest.mark.parametrize("flags", [("--yes",), ("--permission-mode", "bypassPermissions"), ("--allowedTools", "Bash")])
def test_sandbox_cannot_be_left_by_a_call_whatever_the_flags(
    panpan: Panpan, sandbox: str, flags: tuple[str, ...]
) -> None:
    told = run(panpan, bash("touch made", sandbox=sandbox), *flags)
    assert not (panpan.workspace / "made").exists()
    assert told.startswith("Bash was not run.")
    assert "sandbox" in told


def test_outside_setting_of_the_user_lets_a_command_out(panpan: Panpan) -> None:
    outside = panpan.workspace.parent / "outside.txt"
    panpan.home.mkdir(exist_ok=True)
    (panpan.home / "settings.toml").write_text('[sandbox]\noutside = ["sh -c *"]\n')
    run(panpan, bash(f"sh -c 'echo x >{outside}'", sandbox="off"), "--yes")
    assert outside.read_text() == "x\n"


def test_sandbox_cannot_be_disabled_by_a_project(panpan: Panpan) -> None:
    outside = panpan.workspace.parent / "outside.txt"
    (panpan.workspace / ".panpan").mkdir()
    settings = f'[sandbox]\nmode = "off"\nnetwork = true\nwritable = ["{outside.parent}"]\noutside = ["*"]\n'
    (panpan.workspace / ".panpan" / "settings.toml").write_text(settings)
    run(panpan, bash(f"f={outside}; echo x >$f"), "--yes", "--trust")
    assert not outside.exists()


def test_sandbox_off_in_settings_lets_commands_write_outside(panpan: Panpan) -> None:
    outside = panpan.workspace.parent / "outside.txt"
    panpan.home.mkdir(exist_ok=True)
    (panpan.home / "settings.toml").write_text('[sandbox]\nmode = "off"\n')
    run(panpan, bash(f"f={outside}; echo x >$f"), "--yes")
    assert outside.read_text() == "x\n"


def test_sandbox_leaves_nothing_in_the_workspace(panpan: Panpan) -> None:
    told = run(panpan, bash("echo $TMPDIR; sleep 600 & true"), "--yes")
    folder = told.splitlines()[0]
    assert folder.rpartition("/")[2].startswith("panpan-")
    assert [path.name for path in panpan.workspace.iterdir()] == []


NO_LANDLOCK = b"".join(
    struct.pack("<HBBI", *instruction)
    for instruction in (
        (0x20, 0, 0, 0),  # load the number of the call
        (0x15, 0, 1, 444),  # landlock_create_ruleset, the same everywhere
        (0x06, 0, 0, 0x00050000 | errno.ENOSYS),
        (0x06, 0, 0, 0x7FFF0000),
    )
)
"""A filter (seccomp(2)) under which the kernel seems to have no Landlock."""


def run_where_none_works(panpan: Panpan, call: ToolCall, *flags: str) -> tuple[str, str]:
    """Let the model make one call where neither sandbox can be had; return what it was told, and standard error."""
    bubblewrap = shutil.which("bwrap", path=PLACES)
    if bubblewrap is None:
        pytest.skip("bubblewrap, which makes the test's own surroundings, is not installed")
    fd = os.memfd_create("no-landlock")
    os.write(fd, NO_LANDLOCK)
    os.lseek(fd, 0, os.SEEK_SET)
    around = [bubblewrap, "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--ro-bind", "/dev/null", bubblewrap]
    with serving([calls(call), say("done")]) as server:
        panpan.use(server)
        command = [*around, "--seccomp", str(fd), str(COMMAND), "-p", "go on", *flags]
        done = subprocess.run(
            command,
            cwd=panpan.workspace,
            env=panpan.environment(),
            pass_fds=[fd],
            capture_output=True,
            text=True,
            timeout=120,
        )
    os.close(fd)
    (result,) = server.requests[-1].messages[-1]["content"]
    assert done.returncode == (5 if "Bash was not run" in str(result["content"]) else 0), done.stderr
    return str(result["content"]), done.stderr


def test_placeholders_of_a_sandbox_are_hidden_and_not_counted(panpan: Panpan) -> None:
    rounds = [
        calls(bash("touch made; sleep 600", run_in_background=True)),
        calls(bash("ls -a; touch other"), ToolCall("LS", {"path": "."})),
        say("done"),
    ]
    with serving(rounds) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", "--yes", "--output-format", "json")
    in_box, by_tool = (str(message["content"]) for message in server.requests[-1].messages[-1]["content"])
    assert ".vscode" in in_box or "Landlock" in done.stderr
    assert ".vscode" not in by_tool
    assert {change["path"] for change in json.loads(done.stdout)["files_changed"]} <= {"made", "other"}
    assert not (panpan.workspace / ".vscode").exists()


@pytest.mark.parametrize("flags", [(), ("--allowedTools", "Bash(touch made)"), ("--yes",)])
def test_gate_decides_alone_with_a_warning_without_a_sandbox(panpan: Panpan, flags: tuple[str, ...]) -> None:
    told, errors = run_where_none_works(panpan, bash("touch made"), *flags)
    assert ("Bash was not run" in told) is not bool(flags)
    assert (panpan.workspace / "made").exists() is bool(flags)
    assert "no sandbox works here, so allowed commands run with all your rights: bubblewrap cannot be used:" in errors
    assert "this kernel has no Landlock" in errors


def test_sandbox_disabled_by_the_user_needs_no_warning(panpan: Panpan) -> None:
    panpan.home.mkdir(exist_ok=True)
    (panpan.home / "settings.toml").write_text('[sandbox]\nmode = "off"\n')
    (panpan.workspace / "a.txt").write_text("")
    told, errors = run_where_none_works(panpan, bash("ls"))
    assert "a.txt" in told
    assert "sandbox" not in errors


class Hello(BaseHTTPRequestHandler):
    """Answers every request with a word."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from outside")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def hello() -> Iterator[str]:
    """Host and port of a server on this machine's loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


FETCH = "python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read())' http://{}/"


def test_granted_host_is_reached_and_no_other(panpan: Panpan, hello: str) -> None:
    panpan.home.mkdir(exist_ok=True)
    (panpan.home / "settings.toml").write_text(f'[sandbox]\ndomains = ["{hello}"]\n')
    assert "hello from outside" in run(panpan, bash(FETCH.format(hello)), "--yes")
    told = run(panpan, bash(FETCH.format("example.org")), "--yes")
    assert "example.org" in told
    assert "sandbox.domains" in told


def test_host_without_a_grant_is_not_reached(panpan: Panpan, hello: str) -> None:
    told = run(panpan, bash(FETCH.format(hello)), "--yes")
    assert "hello from outside" not in told
    assert "exit code 1" in told


def test_grant_that_is_no_host_is_an_error_with_its_name(panpan: Panpan) -> None:
    panpan.home.mkdir(exist_ok=True)
    (panpan.home / "settings.toml").write_text('[sandbox]\ndomains = ["https://pypi.org/simple"]\n')
    with serving([]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on")
    assert done.code == 2
    assert "https://pypi.org/simple" in done.stderr


def skill(panpan: Panpan) -> str:
    """Write a skill with a script that writes, and return the script's path."""
    folder = panpan.home / "skills" / "mine"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: mine\ndescription: d\n---\nRun go.sh.")
    (folder / "go.sh").write_text("echo it ran; echo x > $(dirname $0)/made")
    return "~/.panpan/skills/mine/go.sh"


def test_script_of_a_skill_runs_and_cannot_change_the_skill(panpan: Panpan) -> None:
    told = run(panpan, bash(f"sh {skill(panpan)}"), "--yes")

    assert "it ran" in told
    assert not (panpan.home / "skills/mine/made").exists()


@pytest.mark.parametrize(
    "command",
    [
        "echo x > ~/.panpan/skills/mine/made",
        "cp README.md ~/.panpan/skills/mine/made",
        "git add -A && git archive -o ~/.panpan/skills/mine/made HEAD",
        "git worktree add ~/.panpan/skills/mine/made",
        "rm -rf ~/.panpan/skills/mine",
    ],
)
def test_skill_is_not_written_without_a_question(panpan: Panpan, command: str) -> None:
    skill(panpan)
    panpan.home.joinpath("settings.toml").write_text('[sandbox]\noutside = ["git *"]\n')

    told = run(panpan, bash(command), "--allowedTools", "Bash(git *)", "--yes")

    assert told.startswith("Bash was not run.")
    assert sorted(path.name for path in (panpan.home / "skills/mine").iterdir()) == ["SKILL.md", "go.sh"]


def test_plugin_in_use_is_not_written_without_a_question(panpan: Panpan) -> None:
    folder = panpan.workspace / "plug" / "hooks"
    folder.mkdir(parents=True)
    (folder / "hooks.json").write_text("{}")

    told = run(panpan, bash("echo x > plug/hooks/hooks.json"), "--yes", "--plugin-dir", "plug")

    assert "belongs to a plug-in that is on" in told
    assert (folder / "hooks.json").read_text() == "{}"
