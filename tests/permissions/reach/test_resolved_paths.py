"""Paths that a command reaches by a pattern or a link count as if they were named."""

from pathlib import Path

import pytest

from panpan.permissions.reach import argument_paths as reached
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionMode
from tests.fakes.every_tool import FolderGate
from tests.permissions.folder import Project, bash

LINES = ("cat aw*/x", "head */x", "cat links/*", "find links -exec cat {} +", "rm aw*/x", "echo a >aw*/x", "cp aw*/x a")
MODES: tuple[PermissionMode, ...] = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    for name in ("outside/x", "project/links/plain", "project/secret/x", "project/src/c.py", "project/.env"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (project.root / "away").symlink_to(tmp_path.resolve() / "outside")
    (project.root / "links" / "away").symlink_to(tmp_path.resolve() / "outside" / "x")
    return project


def reason_of(decision: Decision) -> tuple[str, str]:
    return decision.reason.kind, Path(decision.reason.path).name


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("mode", MODES)
def test_outside_path_is_denied_in_every_mode_by_the_setting(project: Project, line: str, mode: PermissionMode) -> None:
    decision = bash(project.gate('[permission]\nallow = ["Bash(*)"]\nexternal_directory = "deny"'), line, mode)

    assert isinstance(decision, Deny)
    assert reason_of(decision) == ("outside", "x")


@pytest.mark.parametrize("line", LINES)
def test_outside_path_asks_until_a_rule_or_the_setting_answers(project: Project, line: str) -> None:
    outside = project.root.parent / "outside"
    allowed = '[permission]\nallow = ["Bash(*)"'

    asked = bash(project.gate(f"{allowed}]"), line)
    opened = bash(project.gate(f'{allowed}, "Read(/{outside}/**)", "Edit(/{outside}/**)"]'), line)
    open_ = bash(project.gate(f'{allowed}]\nexternal_directory = "allow"'), line)
    bypassed = bash(project.gate(), line, "bypassPermissions")

    assert isinstance(asked, Ask)
    assert reason_of(asked) == ("outside", "x")
    assert not asked.is_protected
    opened_to_write = {outside / "x"} if line.startswith(("rm", "echo")) else set()
    assert asked.approved_paths == opened_to_write
    assert isinstance(opened, Allow)
    assert isinstance(open_, Allow)
    assert isinstance(bypassed, Allow)
    assert bypassed.approved_paths == opened_to_write


def test_always_saves_the_place_that_was_read(project: Project) -> None:
    decision = bash(project.gate(), "cat aw*/x")

    assert isinstance(decision, Ask)
    assert decision.rule == f"Read(/{project.root.parent}/outside/x)"


def test_outside_folder_with_many_matches_is_one_question(project: Project) -> None:
    outside = project.root.parent / "outside"
    (outside / "y").touch()

    decision = bash(project.gate(), f"cat {outside}/*")

    assert isinstance(decision, Ask)
    assert decision.approved_paths == {outside}
    assert decision.rule == f"Read(/{outside}/**)"


@pytest.mark.parametrize(
    "line", ["cat sec*/x", "cat s*/*", "cat */x", "wc -l [s]ec*/?", "cp sec*/x src", "cat <sec*/x"]
)
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_deny_rule_holds_for_matches_of_a_pattern(project: Project, line: str, mode: PermissionMode) -> None:
    decision = bash(project.gate('[permission]\ndeny = ["Read(/secret/**)"]'), line, mode)

    assert isinstance(decision, Deny)
    assert decision.reason.rule == "Read(/secret/**)"
    assert reason_of(decision) == ("rule", "x")


@pytest.mark.parametrize("line", ["ls *", "wc -l s*", "cat src/*", "cat S*/x"])
def test_listing_without_files_of_a_denied_folder_runs(project: Project, line: str) -> None:
    (project.root / "away").unlink()

    assert isinstance(bash(project.gate('[permission]\ndeny = ["Read(/secret/**)"]'), line), Allow)


@pytest.mark.parametrize("line", ["cat .e*; make", "cp .e* src", "cat aw*/x && touch y"])
def test_path_read_by_a_pattern_is_not_opened_to_other_parts(project: Project, line: str) -> None:
    decision = bash(project.gate(), line)

    assert isinstance(decision, Ask)
    assert decision.approved_paths == set()


@pytest.mark.parametrize("line", ["cat .e*", "find . -exec cat {} +", "rm .e*", "mv .e?? src"])
def test_protected_path_stays_protected(project: Project, line: str) -> None:
    decision = bash(project.gate(), line, "bypassPermissions")

    assert isinstance(decision, Ask)
    assert decision.is_protected


@pytest.mark.parametrize("line", ["cat {}", "rm -rf {}", "cp {} x", "rm -rf ~/{}"])
@pytest.mark.parametrize("pattern", ["*/../" * 10 + "nosuch", "*/" * 1_500])
def test_circular_pattern_comes_to_an_end(project: Project, line: str, pattern: str) -> None:
    assert not isinstance(bash(project.gate(), line.format(pattern)), Allow)


def test_pattern_below_a_long_missing_path_matches_nothing(project: Project) -> None:
    assert isinstance(bash(project.gate(), f"cat {'a/' * 1_500}*"), Allow)


@pytest.mark.parametrize("line", ["cat src/*", "rm src/*", "find src -exec cat {} +"])
def test_pattern_with_too_many_matches_asks(project: Project, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gate: FolderGate = project.gate()
    assert isinstance(bash(gate, line, "bypassPermissions"), Allow)
    for number in range(3):
        (project.root / "src" / f"link{number}").symlink_to("c.py")
    monkeypatch.setattr(reached, "MAX_PATHS", 2)

    decision = bash(gate, line, "bypassPermissions")

    assert isinstance(decision, Ask)
    assert "too many files" in decision.reason.text


@pytest.mark.parametrize("way", ["src", "short", "./src", "src/../src"])
@pytest.mark.parametrize(
    ("line", "rule"),
    [("wc -l {}/*", "Read(/src/c.py)"), ("wc -l {}/*.py", "Read(c.*)"), ("rm {}/*", "Edit(/src/c.py)")],
)
def test_rule_holds_for_each_of_many_files(project: Project, way: str, line: str, rule: str) -> None:
    (project.root / "short").symlink_to("src")
    for number in range(300):
        (project.root / "src" / f"b{number}.py").touch()
    settings = '[permission]\nallow = ["Bash(*)"]\n{} = ["{}"]'

    denied = bash(project.gate(settings.format("deny", rule)), line.format(way))
    asked = bash(project.gate(settings.format("ask", rule)), line.format(way))

    assert isinstance(denied, Deny)
    assert isinstance(asked, Ask)
    assert reason_of(denied) == reason_of(asked) == ("rule", "c.py")
    assert isinstance(bash(project.gate(settings.format("deny", "Read(/src/d.py)")), line.format(way)), Allow)


@pytest.mark.parametrize("line", ["cat src/*", "rm src/*"])
def test_protected_file_is_found_among_many(project: Project, line: str) -> None:
    for number in range(300):
        (project.root / "src" / f"b{number}.py").touch()
    (project.root / "src" / "id_rsa").touch()

    decision = bash(project.gate(), line, "bypassPermissions")

    assert isinstance(decision, Ask)
    assert decision.is_protected
    assert Path(decision.reason.path).name == "id_rsa"
