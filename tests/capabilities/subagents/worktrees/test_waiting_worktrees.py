"""One line names all worktrees with changes that nobody merged."""

from pathlib import Path

from panpan.capabilities.subagents.host import Place
from panpan.capabilities.subagents.worktrees.session_worktrees import MAX_NAMED, unmerged_line
from panpan.session.log.agent_log import agents_folder
from tests.fakes.agent_logs import keep_turn


def place_in(folder: Path) -> Place:
    return Place("s1", folder, folder, "", "0")


def keep(folder: Path, session: str, agent_id: str, description: str) -> None:
    (folder / f"{session}.jsonl").touch()
    logs = agents_folder(folder, session)
    logs.mkdir(parents=True, exist_ok=True)
    keep_turn(logs, agent_id, "t1", description=description)


def test_unmerged_line_divides_own_from_earlier_worktrees(tmp_path: Path) -> None:
    keep(tmp_path, "s1", "00000001", "mend\x1b[2J it")
    keep(tmp_path, "s0", "00000002", "rename it")

    line = unmerged_line(["00000001", "00000002", "00000003"], place_in(tmp_path))

    assert line == (
        "3 worktrees hold changes that are not merged, of this session 00000001 (mend it); of earlier sessions "
        "00000002 (rename it), 00000003: ask the model to show, merge or discard them"
    )


def test_unmerged_line_counts_many(tmp_path: Path) -> None:
    line = unmerged_line([f"{number:08}" for number in range(MAX_NAMED + 2)], place_in(tmp_path))

    assert f"{MAX_NAMED - 1:08}, and 2 more: ask" in line
    assert f"{MAX_NAMED:08}" not in line


def test_unmerged_line_is_empty_without_worktrees(tmp_path: Path) -> None:
    assert unmerged_line([], place_in(tmp_path)) == ""
