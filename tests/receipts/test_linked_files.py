"""A link counts as read with the file that it leads to."""

from pathlib import Path

from panpan.receipts.inputs import MOST_LINKS
from panpan.receipts.receipt import Receipt
from tests.receipts.recorded import Workspace, inputs_of, workspace_at


async def changed(work: Workspace, receipt: Receipt) -> list[str]:
    return list((await work.recorder.freshness(receipt)).changed)


async def test_link_to_another_file_makes_a_receipt_stale(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("v1/a", "1")
        work.write("v2/a", "2")
        (work.top / "now").symlink_to("v1")
        (work.top / "other").symlink_to("v2")
        receipt = await work.run("cat now/a")
        assert inputs_of(receipt) == {"now": "link", "v1/a": "whole"}
        assert await changed(work, receipt) == []
        (work.top / "now").unlink()
        (work.top / "now").symlink_to("v2")
        assert await changed(work, receipt) == ["now"]
        (work.top / "now").unlink()
        assert await changed(work, receipt) == ["now"]
        (work.top / "now").mkdir()
        assert await changed(work, receipt) == ["now"]


async def test_link_that_came_between_two_commands_counts(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a", "1")
        await work.run("true")
        (work.top / "b").symlink_to("a")
        assert inputs_of(await work.run("cat b")) == {"a": "whole", "b": "link"}


async def test_link_that_changes_meanwhile_is_stale(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("v1", "1")
        work.write("v2", "2")
        made = await work.run("ln -s v1 now; cat now")
        changed_after = await work.run("cat now v2; ln -sfn v2 now")
    assert inputs_of(made) == {"v1": "whole", "now": "link"}
    assert inputs_of(changed_after) == {"v1": "whole", "v2": "whole", "now": "changed"}


async def test_file_outside_goes_stale_by_its_time(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("1")
    async with workspace_at(tmp_path) as work:
        work.write("a", "1")
        (work.top / "b").symlink_to(outside)
        receipt = await work.run("cat a b")
        assert inputs_of(receipt) == {"a": "whole", "b": "link"}
        assert await changed(work, receipt) == []
        outside.write_text("2")
        assert await changed(work, receipt) == ["b"]


async def test_folder_of_many_links_brings_all_files(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a", "1")
        for number in range(MOST_LINKS + 1):
            (work.top / str(number)).symlink_to("a")
        receipt = await work.run("cat a")
        assert receipt.inputs_are == "all"
        (work.top / "7").unlink()
        (work.top / "7").symlink_to("b")
        assert await changed(work, receipt) == ["7"]
