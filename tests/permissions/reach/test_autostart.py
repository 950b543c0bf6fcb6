"""Commands that have something run later, without the name of the place that they write."""

from pathlib import Path

import pytest

from panpan.types.permission import Allow, Ask
from tests.permissions.folder import Project, bash

WRITING = [
    "crontab jobs", "crontab -", "crontab", "crontab -r", "crontab -e", "sudo crontab -u me jobs", "echo x | crontab",
    "(crontab -l; echo '* * * * * x') | crontab -", "at now", "at -f jobs 12:00", "batch", "systemctl enable x",
    "systemctl --user enable --now x.service", "sudo systemctl link /tmp/x.service", "systemctl edit x",
    "systemctl $X y", "launchctl load x.plist", "launchctl bootstrap gui/501 x.plist", "update-rc.d x defaults",
    "chkconfig x on", "bash -c 'crontab jobs'", "make && crontab jobs", "crontab jobs &", "if true; then crontab x; fi",
]  # fmt: skip
LOOKING = [
    "crontab -l", "at -l", "systemctl status x", "systemctl --user list-units", "systemctl restart x", "launchctl list",
    "chkconfig --list", "man crontab", "echo crontab jobs", "which systemctl",
]  # fmt: skip


@pytest.mark.parametrize("line", WRITING)
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_autostart_command_needs_a_person(tmp_path: Path, line: str, mode: str) -> None:
    gate = Project(tmp_path).gate('[permission]\nallow = ["Bash"]\n')

    found = bash(gate, line, mode)  # type: ignore[arg-type]

    assert isinstance(found, Ask), line
    assert found.is_protected


@pytest.mark.parametrize("line", LOOKING)
def test_autostart_listing_is_nothing_special(tmp_path: Path, line: str) -> None:
    assert isinstance(bash(Project(tmp_path).gate(), line, "bypassPermissions"), Allow), line
