"""Receipts name the subagent that ran the command, and the copy of the project that it ran in."""

from pathlib import Path

from tests.capabilities.receipts.receipt_fixtures import receipts_of
from tests.capabilities.subagents.test_subagent_sessions import Place, bash, replies_so_far, task, turn
from tests.fakes.askers import yes
from tests.fakes.campaign import make_repository
from tests.model_server import calls, say
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Step


def touches(request: RecordedRequest) -> Step:
    return say("done") if replies_so_far(request) else bash("touch made")


async def test_receipt_names_the_subagent(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    place = Place(tmp_path)
    with place.answering(calls(task("go", "general-purpose")), say("done"), child=touches):
        async with place.open(ask=yes()) as session:
            await turn(session)
            (one,) = await receipts_of(session)

    assert one.agent_id not in ("", session.info.id)
    assert one.root == tmp_path / "workspace"
    assert one.turn == 1


async def test_receipt_in_a_worktree_has_its_folder(tmp_path: Path) -> None:
    place = Place(tmp_path)
    make_repository(place.workspace, {"a.txt": "a"})
    asked = calls(task("go", "general-purpose", isolation="worktree"))
    with place.answering(asked, say("done"), child=touches):
        async with place.open(ask=yes()) as session:
            await turn(session)
            (one,) = await receipts_of(session)

    assert one.root != place.workspace
    assert one.receipt.cwd == "."
