import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from panpan.cli.trust_command import command
from panpan.config.project_files import ProjectFiles
from panpan.config.trust import TrustStore
from panpan.errors import ConfigError

RULES = 'permission.allow = ["Bash(npm *)"]\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "user" / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".panpan").mkdir()
    (folder / ".panpan" / "settings.toml").write_text(RULES)
    return folder


@pytest.fixture
def trust(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(project)
    env = {"PANPAN_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "user")}
    return lambda *args: CliRunner().invoke(command, args, env=env)


def said(result: Result) -> str:
    if isinstance(result.exception, ConfigError):
        return str(result.exception)
    assert result.exit_code == 0, result.exception
    return result.output


def test_trust_shows_adds_lists_and_removes(trust, project: Path) -> None:
    assert said(trust()).splitlines() == [
        f"{project} is not trusted. It has files that could run programs or configure panpan:",
        "  .panpan/settings.toml (says how panpan works and what runs without a question)",
        '    +permission.allow = ["Bash(npm *)"]',
    ]
    assert said(trust("list")) == "you have trusted no project\n"

    assert said(trust("add")).splitlines()[0] == f"{project} is trusted. These files count:"
    assert said(trust("list")) == f"{project}: trusted, with 1 file that could run or configure panpan\n"

    (project / ".mcp.json").write_text("{\x1b]0;x\x07}\n")
    assert said(trust()).splitlines() == [
        f"{project} changed since you trusted it:",
        "  .mcp.json (names servers that would be started or spoken to)",
        "    +{<U+001B>]0;x<U+0007>}",
    ]
    assert said(trust("list")) == f"{project}: not trusted: 1 of its files changed since you trusted it\n"

    assert said(trust("remove")) == f"{project} is not trusted any more\n"
    assert "you have never been asked about" in said(trust("remove"))
    assert said(trust()).startswith(f"{project} is not trusted. ")


def test_trust_takes_another_folder_even_one_that_is_gone(trust, project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    said(trust("add", str(other)))
    other.rmdir()

    assert said(trust("list")) == f"{other}: is gone\n"
    assert said(trust("remove", str(other))) == f"{other} is not trusted any more\n"


def test_trust_lists_and_removes_campaigns(trust, project: Path, tmp_path: Path) -> None:
    file = project / "campaign.toml"
    file.write_text("attempts = 3\n")
    TrustStore(tmp_path / "home").keep(ProjectFiles(file, {"campaign.toml": b"attempts = 3\n"}), is_trusted=True)

    assert said(trust("list")) == f"{file}: a campaign, trusted until its files change\n"
    assert said(trust()).startswith(f"{project} is not trusted. ")
    assert said(trust("remove", str(file))) == f"{file} is not trusted any more\n"
    assert said(trust("list")) == "you have trusted no project\n"


def test_trust_of_the_home_folder_needs_whole(trust, project: Path) -> None:
    home = project.parent

    assert f"{home} is your whole home folder: " in said(trust("add", str(home)))
    assert said(trust("list")) == "you have trusted no project\n"

    assert "This is your whole home folder: " in said(trust("add", "--whole", str(home)))
    assert said(trust("list")).startswith(f"{home}: trusted")
    assert said(trust()).startswith(f"{project} is not trusted. ")  # it is a repository of its own


def test_trust_refuses_unreadable_files(trust, project: Path) -> None:
    os.mkfifo(project / ".mcp.json")

    assert "cannot be trusted: .mcp.json: " in said(trust("add"))
    assert "is not trusted, since .mcp.json cannot be read whole: " in said(trust())
