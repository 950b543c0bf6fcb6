"""The Bash tool with the sandbox that works on this machine: what commands can do there, and what is said of it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import anyio
import pytest
import pytest_asyncio

from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.faces.terminal.rendering.messages import result_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.sandbox.bubblewrap import Bubblewrap
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.content import SummaryDisplay, ToolResultBlock
from panpan.types.events import Output
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import Opening, SandboxDenial
from tests.capabilities.shell.conftest import Shell

OWN_NETWORK = str(Path("/proc/self/ns/net").readlink())
"""Network namespace of the tests themselves."""


@pytest_asyncio.fixture
async def boxed(shell: Shell) -> AsyncGenerator[Shell]:
    sandbox = CommandSandbox(is_on=True)
    if await sandbox.is_missing():
        pytest.skip("; ".join((await sandbox.choice()).passed_over))
    yield Shell(shell.root, replace(shell.ctx, sandbox=sandbox))
    await shell.ctx.processes.end()
    await sandbox.aclose()


async def test_boxed_command_works_inside_and_keeps_its_folder(boxed: Shell) -> None:
    assert "[the working directory is now" in await boxed.text("mkdir -p src && cd src && echo hi >a.txt")
    assert await boxed.text("cat a.txt; pwd") == f"hi\n{boxed.root}/src"
    assert (boxed.root / "src" / "a.txt").read_text() == "hi\n"


async def test_forbidden_write_is_explained_with_the_way_to_ask(boxed: Shell) -> None:
    outside = boxed.root.parent / "outside.txt"
    text = await boxed.text(f"echo x >{outside}")
    assert not outside.exists()
    assert f"The sandbox lets this command change files only in {boxed.root} and {boxed.ctx.sandbox.temporary}." in text
    assert 'call again with sandbox "off"; the user is asked then' in text


async def test_sandbox_failure_says_how_to_let_it_run(boxed: Shell) -> None:
    outside = boxed.root.parent / "outside.txt"
    assert (await boxed.run(f"echo x >{outside}")).blocked == SandboxDenial(
        "the sandbox blocks changes outside the workspace", "off"
    )
    (boxed.root / ".git").mkdir()
    failed = await boxed.run("echo x >.git/config")
    assert failed.blocked == SandboxDenial("the sandbox blocks .git", "off")
    assert failed.display == SummaryDisplay(text="The sandbox blocks .git")
    assert (await boxed.run("false")).blocked is None
    assert (await boxed.run(f"echo x >{outside} || true")).blocked is None, "the line went well"


async def test_command_let_out_has_the_users_rights(boxed: Shell) -> None:
    outside = boxed.root.parent / "outside.txt"
    args = BashInput(command=f"echo x >{outside}", sandbox="off")
    async with aclosing(BashTool().run(args, boxed.ctx)) as yields:
        outputs = [one async for one in yields if isinstance(one, Output)]
    assert not outputs[0].is_error
    assert outside.read_text() == "x\n"


async def test_approved_path_is_open_in_the_sandbox(boxed: Shell) -> None:
    folder = boxed.root.parent / "results"
    folder.mkdir()
    opened = Shell(boxed.root, replace(boxed.ctx, paths=boxed.ctx.paths.approving(frozenset({folder / "out.txt"}))))
    assert not (await opened.run(f"echo x >{folder}/out.txt")).is_error
    assert (folder / "out.txt").read_text() == "x\n"


async def test_path_approved_for_reading_cannot_be_written(boxed: Shell) -> None:
    data = boxed.root.parent / "data.txt"
    data.write_text("data\n")
    opened = Shell(boxed.root, replace(boxed.ctx, paths=boxed.ctx.paths.approving(frozenset({data}))))
    # What `sort` reads is known, and what the script behind it does is not.
    assert (await opened.run(f"sort {data}; f={data}; echo x >$f")).is_error
    assert data.read_text() == "data\n"


async def test_network_is_closed_unless_requested(boxed: Shell) -> None:
    look = "readlink /proc/self/ns/net; true"
    args = BashInput(command=look, sandbox="network")
    async with aclosing(BashTool().run(args, boxed.ctx)) as yields:
        outputs = [one async for one in yields if isinstance(one, Output)]
    assert outputs[0].content == OWN_NETWORK
    if isinstance((await boxed.ctx.sandbox.choice()).sandbox, Bubblewrap):
        assert await boxed.text(look) != OWN_NETWORK
    failed = await boxed.run("python3 -c 'import socket; socket.create_connection((\"host.example\", 80))'")
    assert "The sandbox gives this command no network." in failed.text
    assert 'call again with sandbox "network"' in failed.text
    block = ToolResultBlock(tool_use_id="1", content=failed.blocks, is_error=failed.is_error)
    rows = result_lines(ToolResultMessage(result=block, display=failed.display), 80, Theme("plain"))
    assert "The sandbox blocks the network" in rows[0]
    assert "call again" not in "".join(rows)


async def test_read_only_command_changes_nothing_whatever_the_analysis(boxed: Shell) -> None:
    (boxed.root / "a.txt").write_text("a\n")
    before = {path: path.stat().st_mtime_ns for path in boxed.root.rglob("*")}
    assert await boxed.text("cat a.txt | sort; ls -la >/dev/null", runs_alone=False) == "a"
    assert {path: path.stat().st_mtime_ns for path in boxed.root.rglob("*")} == before


async def test_workspace_is_clean_after_a_command(boxed: Shell) -> None:
    await boxed.text("true && make -v >/dev/null; true")
    assert list(boxed.root.iterdir()) == []


async def test_background_job_runs_until_the_session_ends(boxed: Shell) -> None:
    text = await boxed.text("sleep 600 & echo started")
    assert "started" in text
    assert "still runs in the background" in text
    assert boxed.ctx.processes.members()
    assert await boxed.ctx.processes.end() == []
    await boxed.ctx.sandbox.aclose()
    assert list(boxed.root.iterdir()) == []


async def test_boxed_commands_time_is_bounded(boxed: Shell) -> None:
    text = await boxed.text("setsid sh -c 'trap \"\" TERM; sleep 600' & sleep 600", timeout=400)
    assert "timed out" in text
    assert boxed.ctx.processes.members() == []


@pytest.mark.parametrize(
    ("use", "title"),
    [("on", "make"), ("network", "make (with the network)"), ("off", "make (outside the sandbox)")],
)
def test_title_names_the_box(use: str, title: str) -> None:
    args = BashInput.model_validate({"command": "make", "sandbox": use})
    assert BashTool().title(args) == title


def test_command_outside_the_sandbox_is_not_read_only() -> None:
    assert BashTool().may_run_in_parallel(BashInput(command="ls"))
    assert not BashTool().may_run_in_parallel(BashInput(command="ls", sandbox="off"))
    assert not BashTool().may_run_in_parallel(BashInput(command="ls", sandbox="network"))


async def test_refusal_behind_a_pipe_is_reported(boxed: Shell) -> None:
    text = await boxed.text(f"echo x 2>&1 >{boxed.root.parent}/outside.txt | tail -1; true")
    assert "The sandbox lets this command change files only in" in text
    assert "Read-only" not in await boxed.text("echo all is well | tail -1")


FETCH = "python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())'"


class _Hello(BaseHTTPRequestHandler):
    """Says hello to whoever asks."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *args: object) -> None:
        pass


async def test_hosts_approved_for_one_command_are_open_to_it_alone(boxed: Shell) -> None:
    working = (await boxed.ctx.sandbox.choice()).sandbox
    if working is None or not working.can_grant_domains:
        pytest.skip("no sandbox works here that lets commands to single hosts")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hello) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        host = f"127.0.0.1:{server.server_port}"
        line = f"no_proxy= {FETCH} http://{host}/"
        opened = Shell(boxed.root, replace(boxed.ctx, opening=Opening("network", hosts=(host,))))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(boxed.ctx.sandbox.serve)
            await anyio.wait_all_tasks_blocked()
            said, before, after = await opened.text(line), await boxed.run(line), await boxed.run(line)
            tasks.cancel_scope.cancel()
        server.shutdown()

    assert said == "hello"
    assert before.is_error
    assert after.is_error


async def test_command_let_out_runs_outside(boxed: Shell) -> None:
    outside = boxed.root.parent / "outside.txt"
    opened = Shell(boxed.root, replace(boxed.ctx, opening=Opening("off")))

    assert not (await opened.run(f"echo x >{outside}")).is_error
    assert outside.read_text() == "x\n"
