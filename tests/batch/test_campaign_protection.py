"""An attempt changes its workspace and what it is given, and nothing else of the campaign's folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from panpan.batch.attempts.protection import protecting_flags
from tests.e2e.conftest import Panpan
from tests.model_server import ToolCall, calls, say, serving
from tests.prepared_command import PREPARED

FILES = (
    "campaign.toml",
    "tasks.jsonl",
    "results.jsonl",
    "state/0123456789abcdef/attempt-1/result.json",
    "state/0123456789abcdef/attempt-1/receipts.jsonl",
    "state/0123456789abcdef/attempt-2/result.json",
    "state/0123456789abcdef/attempt-2/workspace/a.txt",
)

EVIL = """
import os, sys
folder, attempt = sys.argv[1:]
os.symlink(f"{folder}/tasks.jsonl", "soft")
for name in (f"{folder}/campaign.toml", f"{folder}/new", f"{attempt}/cancel", "../result.json", "soft"):
    try:
        open(name, "w").write("evil")
    except OSError:
        print("refused")
for change in (
    lambda: os.link(f"{folder}/campaign.toml", "hard"),
    lambda: os.rename(f"{attempt}/result.json", f"{attempt}/other"),
    lambda: os.rename(os.getcwd(), f"{attempt}/moved"),
    lambda: os.unlink(f"{folder}/results.jsonl"),
):
    try:
        change()
    except OSError:
        print("refused")
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign's folder whose name needs quotes, with two attempts."""
    folder = tmp_path / 'a "campaign" é'
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("kept\n")
    return folder


@pytest.fixture
def panpan(campaign: Path, tmp_path: Path) -> Iterator[Panpan]:
    attempt = campaign / "state" / "0123456789abcdef" / "attempt-1"
    for name in ("workspace", "venv"):
        (attempt / name).mkdir()
    command = Panpan(attempt / "workspace", tmp_path / "user" / ".panpan", prepared=PREPARED)
    command.home.parent.mkdir()
    yield command
    command.stop_all()


def shell(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command})


def write(path: object) -> ToolCall:
    return ToolCall("Write", {"file_path": str(path), "content": "evil\n"})


def run(panpan: Panpan, campaign: Path, tries: list[ToolCall], *flags: str) -> list[str]:
    """Run calls one after the other, with every permission that flags can give, and return their results."""
    venv = panpan.workspace.parent / "venv"
    with serving([*(calls(one) for one in tries), say("Done.")]) as server:
        panpan.use(server)
        rights = ("--permission-mode", "bypassPermissions", "--yes", "--allowedTools", "Bash, Write, Edit")
        done = panpan.run("-p", "go", *rights, *protecting_flags(campaign), "--add-dir", str(venv), *flags)
    assert done.stdout == "Done.\n", done.stderr
    results = [
        block for message in server.requests[-1].messages for block in message["content"] if isinstance(block, dict)
    ]
    return [str(block["content"]) for block in results if block["type"] == "tool_result"]


def attempts_to_change(campaign: Path) -> list[ToolCall]:
    toml, other = campaign / "campaign.toml", campaign / FILES[-1]
    return [
        write(toml),
        write("../new.json"),
        write(other),
        ToolCall("Edit", {"file_path": str(toml), "old_string": "kept", "new_string": "evil"}),
        shell(f"echo evil > '{toml}'"),
        shell("echo evil >> ../receipts.jsonl"),
        shell(f"ln -s '{toml}' link && echo evil > link"),
        shell(f"ln '{toml}' hard && echo evil > hard"),
        shell("mv ../../attempt-2 stolen"),
        shell(f"rm -rf '{campaign}'"),
        shell(f"git diff --output='{campaign}/results.jsonl' --no-index /etc/hostname /etc/passwd"),
    ]


@pytest.mark.parametrize("flags", [(), ("--sandbox", "off")], ids=["sandbox", "gate alone"])
def test_no_permission_opens_the_campaign_to_its_attempt(
    panpan: Panpan, campaign: Path, flags: tuple[str, ...]
) -> None:
    tries = attempts_to_change(campaign)

    results = run(panpan, campaign, tries, *flags)

    assert len(results) == len(tries)
    refused = (
        "protected_directories",
        "Read-only file system",
        "Permission denied",
        "cross-device link",
    )  # by the gate, or the sandbox
    assert [result for result in results if not any(word in result for word in refused)] == []
    assert unchanged(campaign)


def test_attempt_works_in_its_workspace_and_reads_the_others(panpan: Panpan, campaign: Path) -> None:
    venv = panpan.workspace.parent / "venv"
    tries = [
        write("own.txt"),
        shell(f"echo x > sub.txt && echo x > '{venv}/pyvenv.cfg'"),
        write(venv / "written"),
        ToolCall("Read", {"file_path": str(campaign / FILES[-1])}),
        shell(f"echo 'import sys; print(open(sys.argv[1]).read())' > show.py; python3 show.py '{campaign / FILES[0]}'"),
    ]

    results = run(panpan, campaign, tries)

    assert ["kept" in result for result in results[-2:]] == [True, True]
    assert sorted(path.name for path in (*venv.iterdir(), *panpan.workspace.iterdir())) == [
        "own.txt",
        "pyvenv.cfg",
        "show.py",
        "sub.txt",
        "written",
    ]
    assert unchanged(campaign)


@pytest.mark.parametrize("flags", [(), ("--sandbox", "off")], ids=["sandbox", "gate alone"])
def test_linked_data_is_read_unasked_and_never_changed(
    panpan: Panpan, campaign: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    data = tmp_path / "data [1]"
    data.mkdir()
    (data / "one.csv").write_text("1,2\n")
    (panpan.workspace / "data").symlink_to(data)
    tries = [ToolCall("Read", {"file_path": "data/one.csv"}), write("data/one.csv"), shell("echo x > data/new")]

    with serving([*(calls(one) for one in tries), say("Done.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", *protecting_flags(campaign, [data]), "--allowedTools", "Bash, Write", *flags)
    assert done.stdout == "Done.\n", done.stderr

    (read,) = [
        block
        for message in server.requests[1].messages
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    assert "1,2" in str(read["content"])
    assert [path.name for path in data.iterdir()] == ["one.csv"]
    assert (data / "one.csv").read_text() == "1,2\n"


def test_code_of_an_attempt_changes_nothing_of_the_campaign(panpan: Panpan, campaign: Path) -> None:
    (panpan.workspace / "evil.py").write_text(EVIL)
    around = ("--add-dir", str(campaign.parent))

    (result,) = run(panpan, campaign, [shell(f"python3 evil.py '{campaign}' ..")], *around)

    assert result.count("refused") == 9
    assert unchanged(campaign)


def unchanged(campaign: Path) -> bool:
    """True if all files of the campaign are what they were, and none came outside of the workspace and venv."""
    own = ("attempt-1/workspace", "attempt-1/venv")
    found = [path for path in campaign.rglob("*") if path.is_file() and not any(one in str(path) for one in own)]
    assert sorted(str(path.relative_to(campaign)) for path in found) == sorted(FILES)
    return {path.read_text() for path in found} == {"kept\n"}
