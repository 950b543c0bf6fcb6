import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from panpan.shell_analysis.working_directory import DirectoryReport, find_shell, follow, shell_arguments
from panpan.system.files.paths import PathResolver


@pytest.mark.parametrize("shell", ["/bin/sh", find_shell()])
@pytest.mark.parametrize(
    ("command", "code", "directory"),
    [
        ("cd sub", 0, "sub"),
        ("cd sub; exit 3", 3, "sub"),
        ("set -e; cd sub; false; cd ..", 1, "sub"),
        ("cd sub; trap 'exit 5' EXIT", 5, "sub"),
        ("(cd sub; exit 4)", 4, "."),
        ("cd sub; exec false", 1, None),
        ("true", 0, "."),
    ],
)
def test_bash_and_sh_report_where_they_ended(
    tmp_path: Path, shell: str, command: str, code: int, directory: str | None
) -> None:
    root = tmp_path.resolve()
    (root / "sub").mkdir()

    with DirectoryReport(root / "private") as report:
        ran = subprocess.run(shell_arguments(command, report.file, shell=shell), cwd=root, check=False)
        ended_in = report.read()

    assert ran.returncode == code
    assert ended_in == (None if directory is None else str((root / directory).resolve()))
    assert report.file is not None
    assert not report.file.parent.exists()


def test_command_without_a_report_is_passed_unchanged() -> None:
    with DirectoryReport(None) as report:
        assert shell_arguments("ls", report.file, shell="/bin/sh") == ["/bin/sh", "-c", "ls"]
        assert report.read() is None


PUT_THERE: dict[str, Callable[[Path, Path], None]] = {
    "nothing": lambda _place, _elsewhere: None,
    "a FIFO": lambda place, _elsewhere: os.mkfifo(place),
    "a link": lambda place, elsewhere: place.symlink_to(elsewhere),
    "a folder": lambda place, _elsewhere: place.mkdir(),
    "a device": lambda place, _elsewhere: place.symlink_to("/dev/zero"),
    "too much": lambda place, _elsewhere: place.write_bytes(bytes(1_000_000)) and None,
}


@pytest.mark.parametrize("put", PUT_THERE.values(), ids=PUT_THERE.keys())
def test_report_replaced_by_a_command_is_not_read(tmp_path: Path, put: Callable[[Path, Path], None]) -> None:
    root = tmp_path.resolve()
    (root / "sub").mkdir()
    elsewhere = root / "elsewhere"
    elsewhere.write_text(f"{root / 'sub'}\n")
    paths = PathResolver(root)

    with DirectoryReport(root / "private") as report:
        assert report.file is not None
        report.file.unlink()
        put(report.file, elsewhere)
        notes = follow(report, paths)

    assert [note.partition(", ")[0] for note in notes] == [
        f"the working directory stays {root}: where the command ended is not known"
    ]
    assert str(report.file) in notes[0]
    assert paths.cwd == root


@pytest.mark.parametrize("has_report", [True, False])
def test_bash_starts_with_nothing_but_the_command(tmp_path: Path, has_report: bool) -> None:
    for name in (".bashrc", ".bash_profile", ".profile"):
        (tmp_path / name).write_text("ls() { echo PWNED; }\n")
    # Started by sshd, as bash sees it, it reads ~/.bashrc although it is not interactive.
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "SSH_CLIENT": "::1 1 2", "SSH2_CLIENT": "::1 1 2"}

    with DirectoryReport(tmp_path / "private" if has_report else None) as report:
        argv = shell_arguments("ls -a", report.file, shell=find_shell())
        ran = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)

    assert ".bashrc" in ran.stdout
    assert "PWNED" not in ran.stdout


def test_command_that_begins_like_an_option_is_no_shell_option() -> None:
    ran = subprocess.run(shell_arguments("-x", None, shell=find_shell()), capture_output=True, text=True, check=False)

    assert ran.returncode == 127
    assert "-x: command not found" in ran.stderr
