"""No tool of a run reads the environment of another process, panpan's own included: it holds the user's keys.

The runs are as open as flags can make them. A refusal of one call says nothing about the next, so that each way is
tried by itself, and the requests to the model are searched for what only the environments hold.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from panpan.system.sandbox.choice import find_sandbox
from tests.e2e.conftest import Done, Panpan
from tests.model_server import Reply, ToolCall, calls, say, serving
from tests.model_server.recording import RecordedRequest

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only Linux shows environments in /proc"
)

OF_PANPAN = "belongs-to-panpan-7d1f"
OF_ANOTHER = "belongs-to-another-93ac"
MARKS = (OF_PANPAN, OF_ANOTHER)
ROUND = 12
"""Calls of one reply."""

OPEN = (
    ("--yes",),
    ("--yes", "--add-dir", "/proc"),
    ("--permission-mode", "bypassPermissions", "--add-dir", "/"),
    ("--allowedTools", "Read, Edit, Write, LS, Glob, Grep, NotebookEdit, Patch, LSP, Bash, uv, pip, Task"),
)
"""Flags that let calls run without a question."""


@pytest.fixture
def other_process() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], "OTHER": OF_ANOTHER})
    yield process
    process.kill()
    process.wait()


def places(pid: int, other: int) -> Sequence[str]:
    """Every way to write the path of an environment."""
    return (
        "/proc/self/environ",
        "/proc/thread-self/environ",
        "/proc/1/environ",
        f"/proc/{pid}/environ",
        f"/proc/{other}/environ",
        "/proc/self/task/../environ",
        f"/proc/self/task/{pid}/environ",
        f"/proc/{other}/task/{other}/environ",
        f"/proc/{other}/cwd/../proc/{other}/environ",
        f"/proc/{other}/root/proc/{other}/environ",
        "/proc/self/root/proc/self/environ",
        f"/dev/fd/../task/../../{other}/environ",
        f"/proc/./{other}//environ",
        f"//proc/{other}/environ",
        f"../../../../../../../../proc/{other}/environ",
        "/proc/self/mem",
        "own",
        "other",
        "folder/environ",
        f"processes/{other}/environ",
        f"processes/self/../{pid}/environ",
    )


def make_links(workspace: Path, other: int) -> None:
    (workspace / "own").symlink_to("/proc/self/environ")
    (workspace / "other").symlink_to(f"/proc/{other}/environ")
    (workspace / "folder").symlink_to(f"/proc/{other}")
    (workspace / "processes").symlink_to("/proc")


def run(
    panpan: Panpan, other: int, wanted: Callable[[int], Sequence[ToolCall]], *flags: str, prompt: str = "go on"
) -> tuple[Done, list[RecordedRequest]]:
    """Let the model make calls, which `wanted` returns for the id of the process, then read what runs on."""
    make_links(panpan.workspace, other)
    panpan.env |= {"OWN": OF_PANPAN}
    waiting: list[ToolCall] = []
    has_begun = has_asked = False

    def answer(request: RecordedRequest) -> Reply:
        nonlocal waiting, has_begun, has_asked
        if not has_begun:
            waiting, has_begun = list(wanted(process.pid)), True
        elif not waiting and not has_asked:
            tasks = [match[1] for told in results(request) if (match := re.search(r"as task (\w+);", told))]
            waiting = [ToolCall("TaskOutput", {"task_id": task, "timeout": 20_000}) for task in tasks]
            has_asked = True
        now, waiting = waiting[:ROUND], waiting[ROUND:]
        return calls(*now) if now else say("done")

    with serving(answer) as server:
        panpan.use(server)
        process = panpan.start("-p", prompt, "-f", "stream-json", "--max-turns", "200", *flags)
        stdout, stderr = process.communicate(b"", timeout=120)
    return Done(stdout.decode(), stderr.decode(), process.returncode), list(server.requests)


def results(request: RecordedRequest) -> list[str]:
    """Return what the model was told of each call."""
    return [
        json.dumps(block["content"])
        for message in request.messages
        if not isinstance(message["content"], str)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def assert_holds_no_mark(done: Done, requests: Sequence[RecordedRequest], least_calls: int) -> None:
    assert len(results(requests[-1])) >= least_calls, done.stderr
    assert not [mark for mark in MARKS for request in requests if mark in request.raw.decode()]
    assert not [mark for mark in MARKS if mark in done.stdout + done.stderr]


@pytest.mark.parametrize("flags", OPEN, ids=" ".join)
def test_file_tools_read_no_environment(
    panpan: Panpan, other_process: subprocess.Popen[bytes], flags: tuple[str, ...]
) -> None:
    def wanted(pid: int) -> Sequence[ToolCall]:
        return [
            call
            for path in places(pid, other_process.pid)
            for call in (
                ToolCall("Read", {"file_path": path}),
                ToolCall("Edit", {"file_path": path, "old_string": "belongs", "new_string": "longs"}),
                ToolCall("MultiEdit", {"file_path": path, "edits": [{"old_string": "belongs", "new_string": "l"}]}),
                ToolCall("NotebookEdit", {"file_path": path, "cell": "1", "source": "x"}),
                ToolCall("Patch", {"patch": f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-x\n+y\n"}),
                ToolCall("LSP", {"operation": "symbols", "file_path": path}),
                ToolCall("WebFetch", {"url": f"file://{path}", "prompt": ""}),
            )
        ]

    done, requests = run(panpan, other_process.pid, wanted, *flags)

    assert_holds_no_mark(done, requests, len(wanted(0)))


@pytest.mark.parametrize("flags", OPEN, ids=" ".join)
def test_searches_read_no_environment(
    panpan: Panpan, other_process: subprocess.Popen[bytes], flags: tuple[str, ...]
) -> None:
    other = other_process.pid

    def wanted(pid: int) -> Sequence[ToolCall]:
        whole = [*places(pid, other), f"/proc/{other}", "/proc/self", "folder", f"processes/{other}"]
        return [
            *(ToolCall("Grep", {"pattern": "belongs-to.*", "path": path, "output_mode": "content"}) for path in whole),
            *(ToolCall("Grep", {"pattern": "OWN|OTHER", "path": path, "output_mode": "count"}) for path in whole),
            *(
                ToolCall("Glob", {"pattern": "environ", "path": path})
                for path in ("/proc/self", f"/proc/{other}", "folder")
            ),
            ToolCall("Grep", {"pattern": "belongs-to.*", "glob": "**/environ", "output_mode": "content"}),
            ToolCall("Glob", {"pattern": f"/proc/{other}/environ"}),
            ToolCall("Read", {"file_path": f"/proc/{other}/env*"}),
        ]

    done, requests = run(panpan, other, wanted, *flags)

    assert_holds_no_mark(done, requests, len(wanted(0)))
    assert not [told for told in results(requests[-1]) if "environ:1" in told or told == '"1"']


COMMANDS = (
    "cat /proc/self/environ /proc/1/environ /proc/thread-self/environ",
    "cat /proc/$PPID/environ; cat /proc/{pid}/environ; cat /proc/{other}/environ",
    "cat /proc/*/environ /proc/*/task/*/environ",
    "cat own other folder/environ processes/{other}/environ",
    "grep -raho 'belongs-to[a-z0-9-]*' /proc/[0-9]*/environ",
    "strings -n 8 /proc/{other}/environ; tr '\\0' '\\n' </proc/{pid}/environ",
    "ps eww -A; ps auxe",
    "head -c 100000 /proc/{other}/mem; ls -l /proc/{other}/fd",
    "python3 -c \"import glob; [print(open(f, 'rb').read()) for f in glob.glob('/proc/[0-9]*/environ')]\"",
    "python3 -c \"print(open('/pro' + 'c/{other}/envi' + 'ron').read())\"",
    "python3 -c \"print(open('/pro' + 'c/{pid}/envi' + 'ron').read())\"",
    "p=$(printf /pr; printf oc); e=$(printf envi; printf ron); cat $p/{other}/$e $p/{pid}/$e $p/self/$e $p/*/task/*/$e",
    "echo 'cat /proc/*/environ' >look.sh; sh look.sh; sh -c \"$(cat look.sh)\"",
    'awk \'BEGIN {{ while ((getline line < ("/pr" "oc/{other}/environ")) > 0) print line }}\'',
    "p=/proc; for n in $p/[0-9]*; do cat $n/environ 2>/dev/null; done",
    "cp /proc/{other}/environ taken; cat taken; ln -s /proc/{other} again; cat again/environ",
    "find /proc -maxdepth 2 -name environ -exec cat {{}} + 2>/dev/null",
)


@pytest.mark.parametrize("flags", OPEN[:2], ids=" ".join)
@pytest.mark.parametrize("in_background", [False, True], ids=["foreground", "background"])
async def test_commands_read_no_environment(
    panpan: Panpan, other_process: subprocess.Popen[bytes], flags: tuple[str, ...], in_background: bool
) -> None:
    await needs_sandbox()

    def wanted(pid: int) -> Sequence[ToolCall]:
        lines = [command.format(pid=pid, other=other_process.pid) for command in COMMANDS]
        programs = [["cat", "/proc/self/environ", f"/proc/{pid}/environ", "own"], ["sh", "-c", lines[2]]]
        return [
            *(ToolCall("Bash", {"command": line, "run_in_background": in_background}) for line in lines),
            *(ToolCall("uv", {"operation": "run", "command": program}) for program in programs),
        ]

    done, requests = run(panpan, other_process.pid, wanted, *flags)

    ran_on = sum("as task" in told for told in results(requests[-1]))
    assert ran_on >= 5 or not in_background
    assert_holds_no_mark(done, requests, len(wanted(0)) + ran_on)


@pytest.mark.parametrize("flags", OPEN, ids=" ".join)
def test_mentions_and_memory_read_no_environment(
    panpan: Panpan, other_process: subprocess.Popen[bytes], flags: tuple[str, ...]
) -> None:
    other = other_process.pid
    mentioned = " ".join(f"@{path}" for path in places(1, other))
    imports = "".join(f"@{path}\n\n" for path in places(1, other))
    (panpan.workspace / "AGENTS.md").write_text(imports)
    (panpan.workspace / "sub").mkdir()
    (panpan.workspace / "sub" / "AGENTS.md").write_text(imports)
    (panpan.workspace / "sub" / "a.txt").write_text("a\n")

    done, requests = run(
        panpan,
        other,
        lambda _: [ToolCall("Read", {"file_path": "sub/a.txt"})],
        *flags,
        "--trust",
        prompt=f"look at {mentioned}",
    )

    assert_holds_no_mark(done, requests, 1)


@pytest.mark.parametrize("flags", OPEN[:2], ids=" ".join)
def test_subagents_read_no_environment(
    panpan: Panpan, other_process: subprocess.Popen[bytes], flags: tuple[str, ...]
) -> None:
    make_links(panpan.workspace, other_process.pid)
    panpan.env |= {"OWN": OF_PANPAN}
    paths = ("/proc/self/environ", f"/proc/{other_process.pid}/environ", "own", "other", "folder/environ")
    task = ToolCall("Task", {"description": "look", "prompt": "look", "subagent_type": "general-purpose"})
    reads = calls(*(ToolCall("Read", {"file_path": path}) for path in paths))
    with serving([calls(task), reads, say("seen"), say("done")]) as server:
        panpan.use(server)
        process = panpan.start("-p", "go on", "-f", "stream-json", *flags)
        stdout, stderr = process.communicate(b"", timeout=60)

    done = Done(stdout.decode(), stderr.decode(), process.returncode)
    assert len(server.requests) == 4, done.stderr
    assert not [mark for mark in MARKS for request in server.requests if mark in request.raw.decode()]
    assert not [mark for mark in MARKS if mark in done.stdout + done.stderr]


async def needs_sandbox() -> None:
    choice = await find_sandbox()
    if choice.sandbox is None:
        pytest.skip("; ".join(choice.passed_over))
