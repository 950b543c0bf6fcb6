import os
import socket
from pathlib import Path

import pytest

from panpan.config import project_files
from panpan.config.project_files import EXECUTABLE_SETTINGS, ProjectFiles, read_project_files, setting_of

NAMES = {
    ".panpan/settings.toml": ".panpan/settings.toml",
    ".panpan/hooks*": ".panpan/hooks.d/a/b.sh",
    ".claude/settings*.json": ".claude/settings.local.json",
    ".panpan/agents": ".panpan/agents/reviewer.md",
    ".claude/agents": ".claude/agents/team/reviewer.md",
    ".agents/agents": ".agents/agents/reviewer.md",
    ".opencode/agents": ".opencode/agents/reviewer.md",
    ".gemini/agents": ".gemini/agents/reviewer.md",
    "agents/*.md": "agents/reviewer.md",
    ".panpan/commands": ".panpan/commands/deep/er/x.md",
    ".claude/commands": ".claude/commands/x.md",
    ".panpan/skills": ".panpan/skills/x/SKILL.md",
    ".claude/skills": ".claude/skills/deep/x/SKILL.md",
    ".agents/skills": ".agents/skills/x/SKILL.md",
    ".panpan/output-styles": ".panpan/output-styles/brief.md",
    ".claude/output-styles": ".claude/output-styles/brief.md",
    ".panpan/capabilities": ".panpan/capabilities/x.py",
    ".panpan/plugins": ".panpan/plugins/p/main.py",
    ".mcp.json": ".mcp.json",
    ".env": ".env",
}
"""A file for each row of the table."""

OTHERS = [
    "AGENTS.md", "src/.env", "src/.panpan/settings.toml", "src/.mcp.json", ".panpan/notes.md", ".env.example",
    ".panpan/settings.toml.bak", ".panpan/my-hooks", ".git/config", "mcp.json", ".claude/commands/x.sh",
    ".claude/skills/README.md", ".claude/skills/deep/x/scripts/run.py", "agents/team/x.md", "agents/x.py",
]  # fmt: skip


def write(root: Path, name: str, data: bytes = b"---") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read(root: Path) -> ProjectFiles:
    return read_project_files(root, root.parent / "home")


ONE_BY_ONE = [setting for setting in EXECUTABLE_SETTINGS if setting.names != "*"]
"""Rows of which a file that leads out of the project is left out, and the others count."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_executable_settings_have_an_example_and_a_reason() -> None:
    assert list(NAMES) == [setting.path for setting in EXECUTABLE_SETTINGS]
    for setting in EXECUTABLE_SETTINGS:
        assert setting_of(NAMES[setting.path]) is setting
        assert setting.reason


def test_project_files_include_exactly_the_listed_ones(root: Path) -> None:
    for name in [*NAMES.values(), *OTHERS]:
        write(root, name, f"---{name}".encode())

    files = read(root)

    assert files.content == {name: f"---{name}".encode() for name in NAMES.values()}
    assert not files.problems


def test_folder_without_project_files_has_none(root: Path) -> None:
    (root / ".panpan" / "agents").mkdir(parents=True)
    (root / ".env").mkdir()  # a virtual environment may be called so
    write(root, ".env/bin/python")

    assert read(root) == ProjectFiles(root)


@pytest.mark.parametrize("name", [*NAMES.values(), ".panpan"])
def test_link_out_of_the_project_is_not_followed(root: Path, tmp_path: Path, name: str) -> None:
    outside = write(tmp_path, "outside/settings.toml")
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).symlink_to(outside.parent if name == ".panpan" else outside)

    files = read(root)

    assert not files.content
    left = {**files.problems, **files.left_out}
    assert left
    assert all("leads out of the project" in problem for problem in left.values())
    assert bool(files.problems) is (name == ".panpan" or setting_of(name) not in ONE_BY_ONE)


def test_link_within_the_project_is_followed(root: Path) -> None:
    write(root, "shared/agents/a.md", b"one")
    write(root, "shared/mcp.json", b"two")
    (root / ".panpan").mkdir()
    (root / ".panpan" / "agents").symlink_to("../shared/agents")
    (root / ".mcp.json").symlink_to("shared/mcp.json")

    assert read(root).content == {".panpan/agents/a.md": b"one", ".mcp.json": b"two"}


def test_skill_is_one_file_whatever_lies_beside_it(root: Path) -> None:
    write(root, ".claude/skills/group/pdf/SKILL.md", b"one")
    write(root, ".claude/skills/group/pdf/inner/SKILL.md")
    write(root, "elsewhere/two/SKILL.md", b"two")
    (root / ".claude" / "skills" / "two").symlink_to("../../elsewhere/two")

    files = read(root)

    assert files.content == {".claude/skills/group/pdf/SKILL.md": b"one", ".claude/skills/two/SKILL.md": b"two"}
    assert not files.problems


def test_circular_links_end(root: Path) -> None:
    write(root, ".panpan/agents/a.md")
    (root / ".panpan" / "agents" / "again").symlink_to(".")
    (root / ".mcp.json").symlink_to(".mcp.json")

    assert set(read(root).problems) == {".panpan/agents/again", ".mcp.json"}


def test_link_that_leads_nowhere_is_no_file(root: Path) -> None:
    (root / ".mcp.json").symlink_to("missing")

    assert read(root) == ProjectFiles(root)


@pytest.mark.parametrize("name", [".mcp.json", ".panpan/settings.toml", ".panpan/plugins/p"])
def test_irregular_file_is_never_opened(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(root / name)
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(root, os.O_PATH)
        try:
            listener.bind(f"/proc/self/fd/{here}/.env")
        finally:
            os.close(here)

        files = read(root)

    assert set(files.problems) == {name, ".env"}
    assert not files.content


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", [".mcp.json", ".panpan", ".panpan/agents"])
def test_unreadable_file_is_a_problem(root: Path, name: str) -> None:
    write(root, ".panpan/agents/a.md")
    write(root, ".mcp.json")
    (root / name).chmod(0)
    try:
        assert read(root).problems
    finally:
        (root / name).chmod(0o700)


def test_too_large_file_is_a_problem_and_not_read_in_part(root: Path) -> None:
    write(root, ".mcp.json", b"x" * 1_000_000)
    write(root, ".panpan/settings.toml", b"x" * 256_001)

    files = read(root)

    assert list(files.content) == [".mcp.json"]
    assert "too large" in files.problems[".panpan/settings.toml"]


@pytest.mark.parametrize(
    ("limit", "value"), [("MAX_FILES", 3), ("MAX_BYTES", 30), ("MAX_DEPTH", 0), ("_MAX_ENTRIES", 3)]
)
def test_project_files_are_bounded_together(
    root: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(project_files, limit, value)
    for number in range(5):
        write(root, f".panpan/plugins/{'d/' * (limit == 'MAX_DEPTH')}{number}", b"x" * 10)

    assert read(root).problems


def test_panpan_home_in_a_project_is_the_users_own(root: Path) -> None:
    write(root, ".panpan/settings.toml")
    write(root, ".panpan/agents/a.md")
    write(root, ".mcp.json")

    assert list(read_project_files(root, root / ".panpan").content) == [".mcp.json"]
