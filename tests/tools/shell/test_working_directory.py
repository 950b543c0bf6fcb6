import subprocess
from pathlib import Path

import pytest

from panpan.tools.shell.working_directory import DirectoryReport, find_shell, shell_arguments


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
def test_bash_and_sh_say_where_they_ended(
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


def test_without_a_report_the_command_is_passed_as_it_is() -> None:
    with DirectoryReport(None) as report:
        assert shell_arguments("ls", report.file, shell="/bin/sh") == ["/bin/sh", "-c", "ls"]
        assert report.read() is None
