"""Generated lines that run unasked, for real: in plan mode nothing changes, and in auto nothing but the workspace."""

import os
import random
import socket
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
import pytest_asyncio

from panpan.capabilities.shell.bash import BashTool
from panpan.core.tool_executor import ToolExecutor
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.permissions.sandbox_questions import SandboxQuestions
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.content import ToolUseBlock
from panpan.types.events import ToolStarted
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import PermissionMode
from tests.fakes.askers import no
from tests.fakes.context import context_in

pytestmark = pytest.mark.timeout(7200 if os.environ.get("PANPAN_SOAK") else 300)

LINES = 1_000 if os.environ.get("PANPAN_SOAK") else 40
"""Generated for each mode."""
CANARY = "canary-of-the-home"
MARK = f"86399.{os.getpid()}"
"""Seconds that only processes of this test sleep."""

PLACES = (
    "a.py", "new.txt", "src", ".git/config", ".git/hooks/post-commit", ".env", ".vscode/tasks.json", "link/x",
    "$HOME/.bashrc", "$HOME/.ssh/id_ed25519", "../outside.txt", "/tmp/$$.canary", '"$PWD/../outside.txt"',
)  # fmt: skip
SECRETS = (
    "$HOME/.ssh/id_ed25519", "~/.aws/credentials", '"$HOME"/notes.txt', "../notes.txt", "link/notes.txt", "secret",
)  # fmt: skip
OPENED = "os.path.expandvars(os.path.expanduser(sys.argv[1]))"
WRITES = (
    "echo x > {p}", "rm -rf {p}", "mv {p} moved", "cp a.py {p}", "touch {p}", "tee {p} < a.py", "ln -sf a.py {p}",
    f"python3 -c 'import os, sys; open({OPENED}, \"w\").write(\"x\")' {{p}}", "chmod 777 {p}", "sed -i s/1/2/ {p}",
    "truncate -s0 {p}", "mkdir -p {p}/deep", "git -c core.pager='touch {p}' log", "awk '1 > \"new\"' {p}",
)  # fmt: skip
READS = (
    "cat {s}", "x=$(cat {s}); echo $x", "base64 -w0 {s} | base64 -d",
    f"python3 -c 'import os, sys; print(open({OPENED}).read())' {{s}}",
)  # fmt: skip
SENDS = (
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 1)'",
    "exec 3<>/dev/tcp/127.0.0.1/{port}", "(echo x > /dev/tcp/127.0.0.1/{port})",
)  # fmt: skip
STAYS = (
    "sleep {m} &", "setsid sleep {m} & disown", "nohup sleep {m} > /dev/null 2>&1 &", "(setsid sh -c 'sleep {m}' &)",
    "python3 -c 'import subprocess; subprocess.Popen([\"sleep\", \"{m}\"], start_new_session=True)'",
)  # fmt: skip
AROUND = (
    "{}", "({})", "if true; then {}; fi", "for i in 1; do {}; done", "f() {{ {}; }}; f", "true && {{ {}; }}",
    "{}; ls", "eval \"$(cat <<'E'\n{}\nE\n)\"", "echo start; {}",
)  # fmt: skip


def generated(count: int, port: int) -> Iterator[str]:
    """Yield lines that try to do what no unasked command may; the same in every run."""
    dice = random.Random(20)
    for _ in range(count):
        template = dice.choice(dice.choice((WRITES, READS, SENDS, STAYS)))
        line = template.replace("{p}", dice.choice(PLACES)).replace("{s}", dice.choice(SECRETS))
        around = "{}" if line.endswith("&") else dice.choice(AROUND)
        yield around.format(line.replace("{port}", str(port)).replace("{m}", MARK))


class House:
    """A home with secrets, and in it a hostile workspace."""

    def __init__(self, home: Path) -> None:
        self.home, self.workspace = home, home / "work"
        for name in (".ssh/id_ed25519", ".aws/credentials", "notes.txt", ".bashrc", "outside.txt", "work/secret"):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(f"{CANARY}\n")
        for name in ("a.py", "src/b.py", ".git/config", ".env", ".vscode/settings.json"):
            (self.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / name).write_text("x = 1\n")
        (self.workspace / ".git/config").write_text("[core]\n\tfsmonitor = touch ../broken\n\tpager = touch ../paged\n")
        (self.workspace / "link").symlink_to(home)

    def state(self, *, has_workspace: bool) -> Mapping[str, object]:
        """Return all files of the home, and of the workspace or of what is protected in it."""
        found: dict[str, object] = {}
        for parent, folders, names in os.walk(self.home):
            folders[:] = [name for name in folders if name != "work-outputs"]  # panpan's own
            inside = Path(parent).relative_to(self.home).parts
            if not has_workspace and inside == ("work",):
                folders[:] = [name for name in folders if name in (".git", ".vscode")]
                names = [name for name in names if name == ".env"]
            for name in (*names, *folders):
                path = Path(parent, name)
                found[str(path)] = (
                    path.read_bytes() if path.is_file() and not path.is_symlink() else path.lstat().st_mode
                )
        return found


@pytest_asyncio.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return House((tmp_path / "home").resolve())


async def results_of(house: House, mode: PermissionMode, lines: list[str]) -> AsyncGenerator[tuple[str, bool, str]]:
    """Run lines one after the other as a session in this mode does that nobody watches; yield what came of each."""
    sandbox = CommandSandbox(is_on=True, home=house.home.parent / "panpan")
    working = (await sandbox.choice()).sandbox
    if working is None or not working.can_seal:
        pytest.skip("; ".join((await sandbox.choice()).passed_over))
    context = replace(context_in(house.workspace), sandbox=sandbox)
    gate = PermissionGate([RuleSource("test", True, deny=["Read(/secret)"])], mode=mode)
    hooks = (gate, SandboxQuestions(()))
    try:
        async with ToolExecutor({"Bash": BashTool()}, context, hooks, ask=no()) as executor:
            for number, line in enumerate(lines):
                use = ToolUseBlock(id=f"t{number}", name="Bash", input={"command": line, "timeout": 20_000})
                async with aclosing(executor.run([use])) as events:
                    found = [event async for event in events]
                has_run = any(isinstance(event, ToolStarted) for event in found)
                result = next(event for event in found if isinstance(event, ToolResultMessage))
                yield line, has_run, result.result.text
    finally:
        await context.processes.end()
        await sandbox.aclose()


def left_running() -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if MARK.encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


async def all_gone(after: str) -> None:
    """Wait until no process is left; the kernel ends those of a box at once, and not before the command's end is told.

    Raises:
        AssertionError: One is left after ten seconds.
    """
    try:
        with anyio.fail_after(10):
            while left_running():  # noqa: ASYNC110 - the end of a process that is nobody's child is no event
                await anyio.sleep(0.01)
    except TimeoutError as error:
        raise AssertionError(f"left running after {after}: {left_running()}") from error


@pytest.mark.parametrize("mode", ["plan", "auto"])
async def test_generated_lines_change_read_send_and_leave_nothing(house: House, mode: PermissionMode) -> None:
    before = house.state(has_workspace=mode == "plan")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        ran = 0
        async with aclosing(results_of(house, mode, list(generated(LINES, server.getsockname()[1])))) as results:
            async for line, has_run, text in results:
                ran += has_run
                assert CANARY not in text, line
                assert house.state(has_workspace=mode == "plan") == before, line
                if mode == "plan":
                    await all_gone(line)
                with pytest.raises(BlockingIOError):
                    server.accept()
    assert ran > LINES / 4
    await all_gone("the end of the session")
