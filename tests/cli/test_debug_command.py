"""`panpan debug`, driven as a process: rows in, rows out."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from panpan.cli.debug_command import MAX_ROW_BYTES
from tests.prepared_command import PREPARED


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "settings.toml").write_text('permission.deny = ["Bash(rm *)"]\n')
    return tmp_path


def start(folder: Path, *words: str) -> "subprocess.Popen[bytes]":
    env = {"PATH": os.environ["PATH"], "PANPAN_HOME": str(folder / "home"), "HOME": str(folder)}
    return subprocess.Popen(
        PREPARED.argv("debug", *words, "--jsonl", env=env),
        cwd=folder / "project",
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def answers(folder: Path, what: str, *rows: object) -> list[dict[str, object]]:
    data = b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)
    process = start(folder, what)
    out, err = process.communicate(data, timeout=60)
    assert process.returncode == 0, err
    assert err == b""
    return [json.loads(line) for line in out.splitlines()]


def call(tool: str, mode: str = "default", **args: object) -> dict[str, object]:
    return {"mode": mode, "tool": tool, "args": args}


def test_debug_permission_answers_each_row_with_a_decision(folder: Path) -> None:
    rows = [
        (call("Bash", command="git status && ls | head"), "allow"),
        (call("Bash", "plan", command="git status && ls | head"), "allow"),
        (call("Bash", command="make"), "ask"),
        (call("Bash", "plan", command="make > x"), "deny"),
        (call("Bash", "bypassPermissions", command="make"), "allow"),
        (call("Bash", "bypassPermissions", command="make; rm x"), "deny"),
        (call("Bash", "bypassPermissions", command="echo x > .git/config"), "ask"),
        (call("Write", "acceptEdits", file_path="a.py", content=""), "allow"),
        (call("Write", "acceptEdits", file_path="../a.py", content=""), "ask"),
        (call("Read", file_path="a.py"), "allow"),
        (call("Read", "dontAsk", file_path="/etc/passwd"), "deny"),
        ({"tool": "Read", "args": {"file_path": "a.py"}}, "allow"),
        (call("Nothing"), "deny"),
        (call("Read", path="a.py"), "deny"),
    ]

    found = answers(folder, "permission", *(row for row, _ in rows))

    assert [row["decision"] for row in found] == [decision for _, decision in rows]
    assert all(row["reason"] == row["because"]["text"] for row in found)  # type: ignore[index]
    assert found[5]["because"]["rule"] == "Bash(rm *)"  # type: ignore[index]
    assert list((folder / "project").iterdir()) == [folder / "project" / ".git"], "nothing was run"


BAD = [
    b"no json", b"[]", b"null", b"3", b"{}", b'{"tool": "Bash"}', b'{"tool": 3, "args": {}}',
    b'{"tool": "Bash", "args": []}',
    b'{"mode": "yolo", "tool": "Bash", "args": {}}', b'{"mode": 1, "tool": "Bash", "args": {}}', b"\xff\xfe",
    b"[" * 100_000, b'{"tool": "' + b"x" * (MAX_ROW_BYTES + 10) + b'", "args": {}}',
    b'{"tool": "Read", "args": {"a": NaN',
]  # fmt: skip


def test_debug_permission_denies_an_unreadable_row_and_goes_on(folder: Path) -> None:
    good = call("Bash", command="ls")

    found = answers(folder, "permission", *(row for bad in BAD for row in (bad, good)), b"", b"  ", good)

    assert [row["decision"] for row in found] == ["deny", "allow"] * len(BAD) + ["allow"]
    for number, row in enumerate(found[: 2 * len(BAD) : 2]):
        assert row["error"] is True
        assert str(row["reason"]).startswith(f"row {2 * number + 1}: ")


@pytest.mark.parametrize("text", ["\ud800", "\0", "\x1b]0;x\x07", "a" * 200_000])
def test_debug_permission_answers_odd_arguments_in_one_line(folder: Path, text: str) -> None:
    rows = [call("Bash", command=text), call("Read", file_path=text), call(text), call("Grep", pattern=text, path=text)]

    found = answers(folder, "permission", *rows)

    assert len(found) == len(rows)
    assert found[0]["decision"] != "allow"


def test_debug_permission_answers_rows_as_they_come(folder: Path) -> None:
    process = start(folder, "permission")
    assert process.stdin is not None
    assert process.stdout is not None
    for command, decision in (("ls", "allow"), ("make", "ask")):
        process.stdin.write(json.dumps(call("Bash", command=command)).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["decision"] == decision
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()


def test_debug_url_allows_only_public_addresses(folder: Path) -> None:
    def rows() -> Iterator[tuple[object, str]]:
        yield {"url": "https://example.org/", "resolves": ["93.184.216.34"]}, "allow"
        yield {"url": "https://example.org/", "resolves": ["93.184.216.34", "::1"]}, "deny"
        yield {"url": "https://example.org/", "resolves": []}, "deny"
        yield {"url": "https://example.org/"}, "deny"
        yield {"url": "http://0x7f.1/", "resolves": ["93.184.216.34"]}, "deny"
        yield {"url": "file:///etc/passwd", "resolves": []}, "deny"
        yield {"url": "http://8.8.8.8/", "resolves": []}, "allow"
        yield {"url": 3}, "deny"
        yield {"url": "https://example.org", "resolves": "1.1.1.1"}, "deny"
        yield {"url": "https://example.org", "resolves": [1]}, "deny"
        yield b"no json", "deny"

    found = answers(folder, "url", *(row for row, _ in rows()))

    assert [row["decision"] for row in found] == [decision for _, decision in rows()]
    assert found[0]["dial"] == ["93.184.216.34"]
    assert all(row["reason"] for row in found)


def test_debug_with_a_wrong_setting_exits_2_without_traceback(folder: Path) -> None:
    (folder / "home" / "settings.toml").write_text('permission.allow = ["Bsh(ls)"]\n')

    process = start(folder, "permission")
    out, err = process.communicate(b"{}\n", timeout=60)

    assert (process.returncode, out) == (2, b"")
    assert b"Traceback" not in err
