"""A receipt is stale once an input is another one, and unknown inputs are said to be."""

import os
from pathlib import Path

from panpan.receipts.digests import MB, WHOLE_BYTES
from panpan.receipts.receipt import Receipt
from tests.receipts.recorded import Workspace, inputs_of, outputs_of, workspace_at


async def state(work: Workspace, receipt: Receipt) -> tuple[str, list[str]]:
    found = await work.recorder.freshness(receipt)
    return found.state, list(found.changed)


async def test_change_and_change_back_are_seen(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a", "1")
        work.write("b", "1")
        receipt = await work.run("cat a b > c")
        assert await state(work, receipt) == ("fresh", [])
        work.write("a", "2")
        assert await state(work, receipt) == ("stale", ["a"])
        (work.top / "b").unlink()
        assert await state(work, receipt) == ("stale", ["a", "b"])
        work.write("a", "1")
        work.write("b", "1")
        work.write("c", "outputs do not matter")
        work.write("d", "nor do others")
        assert await state(work, receipt) == ("fresh", [])


async def test_file_that_was_changed_meanwhile_is_stale(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a", "1")
        receipt = await work.run("cat a; echo 2 > a.new; mv a.new a; touch b")
        assert inputs_of(receipt)["a"] == "changed"
        assert (await state(work, receipt))[0] == "stale"


async def test_content_between_two_changes_is_stale(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a", "1")
        receipt = await work.run("cp a kept; echo 2 > a; cat a; cp kept a")
        assert inputs_of(receipt)["a"] == "changed"


async def test_file_that_moved_over_an_input_is_stale(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("sub/a", "1")
        receipt = await work.run("cat sub/a")
        (work.top / "sub").rename(work.top / "old")
        assert await state(work, receipt) == ("stale", ["sub/a"])


async def test_large_file_goes_stale_by_its_time(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        path = work.write("data", "")
        os.truncate(path, WHOLE_BYTES + MB)
        receipt = await work.run("head -c 1 data")
        assert inputs_of(receipt) == {"data": "parts"}
        assert await state(work, receipt) == ("fresh", [])
        with path.open("r+b") as file:  # between the samples
            file.seek(MB)
            file.write(b"x")
        assert await state(work, receipt) == ("stale", ["data"])


async def test_cut_receipt_is_unknown(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a", "1")
        receipt = (await work.run("cat a")).model_copy(update={"more_inputs": 1})
        assert (await state(work, receipt))[0] == "unknown"
        work.write("a", "2")
        assert (await state(work, receipt))[0] == "stale"


async def test_receipt_that_was_stored_says_the_same(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write(os.fsdecode(b"\xff.txt"), "1")
        receipt = Receipt.model_validate_json((await work.run("cat *.txt > out")).model_dump_json())
        assert inputs_of(receipt) == {"\\xff.txt": "whole"}
        assert await state(work, receipt) == ("fresh", [])
        work.write(os.fsdecode(b"\xff.txt"), "2")
        assert await state(work, receipt) == ("stale", ["\\xff.txt"])


async def test_many_inputs_are_compared_all_the_same(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        for number in range(2_100):
            (work.top / f"{number}").write_text("x")
        receipt = await work.run("cat * > /dev/null")
        assert receipt.inputs_are == "all"
        assert (len(receipt.inputs), receipt.more_inputs) == (2_000, 100)
        assert await state(work, receipt) == ("fresh", [])
        work.write("999", "y")
        assert (await state(work, receipt))[0] == "stale"


async def test_odd_files_of_a_workspace_hold_nothing_up(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        os.mkfifo(work.top / "fifo")
        (work.top / "outside").symlink_to("/etc/passwd")
        receipt = await work.run("(echo x > fifo &); cat fifo outside > out; ln -s out link")
    assert inputs_of(receipt) == {}
    assert outputs_of(receipt) == {"out": "whole"}
