"""All files count where nobody sees which ones a command reads, or none are known."""

import os
from pathlib import Path

from panpan.receipts.workspace_files import MOST_FILES
from tests.receipts.recorded import OverflowingInotify, inputs_of, missing_inotify, outputs_of, workspace_at


async def test_lost_events_bring_all_files(tmp_path: Path) -> None:
    inotify = OverflowingInotify()
    async with workspace_at(tmp_path, open_inotify=lambda: inotify) as work:
        work.write("a")
        work.write("sub/b")
        await work.run("cat a")
        inotify.loses = "a"
        receipt = await work.run("cat a > c")
        assert receipt.inputs_are == "all"
        assert {"a", "sub/b"} <= inputs_of(receipt).keys()
        assert outputs_of(receipt).get("c") == "whole"
        assert (await work.recorder.freshness(receipt)).state == "fresh"
        work.write("sub/b", "2")
        assert (await work.recorder.freshness(receipt)).changed == ["sub/b"]
        assert (await work.run("cat a")).inputs_are == "opened"


async def test_system_without_inotify_brings_all_files(tmp_path: Path) -> None:
    async with workspace_at(tmp_path, open_inotify=missing_inotify) as work:
        work.write("a")
        work.write("ignored")
        work.write(".gitignore", "ignored\nout.pdf\n")
        await work.run("git init -q")
        receipt = await work.run("cat a > /dev/null; printf %s %PDF- > out.pdf")
        assert inputs_of(receipt).keys() == {".gitignore", "a"}
        assert outputs_of(receipt).keys() >= {"out.pdf"}
        assert receipt.kind == "build"
        assert (await work.recorder.freshness(receipt)).state == "fresh"
        work.write("new")
        assert (await work.recorder.freshness(receipt)).state == "stale"


async def test_command_that_only_looks_costs_no_search(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("app", b"\x7fELF")
        receipt = await work.run("cat app", only_looks=True)
        assert (receipt.kind, receipt.inputs_are, inputs_of(receipt)) == ("look", "opened", {"app": "whole"})
    async with workspace_at(tmp_path, open_inotify=missing_inotify) as work:
        receipt = await work.run("cat app", only_looks=True)
        assert (receipt.kind, receipt.inputs_are, inputs_of(receipt)) == ("look", "unknown", {})


async def test_source_that_changes_unseen_is_stale(tmp_path: Path) -> None:
    async with workspace_at(tmp_path, open_inotify=missing_inotify) as work:
        work.write("a")
        await work.run("git init -q && git add a")
        receipt = await work.run("cat a; echo 2 > a")
        assert inputs_of(receipt) == {"a": "changed"}


async def test_workspace_of_many_files(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        for folder in range(20):
            (work.top / str(folder)).mkdir()
            for number in range(MOST_FILES // 20):
                os.close(os.open(work.top / str(folder) / str(number), os.O_CREAT))  # twice as quick as Path.touch
        work.write("one.more")
        receipt = await work.run("cat 3/4 one.more")
        assert inputs_of(receipt).keys() == {"3/4", "one.more"}
    async with workspace_at(tmp_path, open_inotify=missing_inotify) as work:
        receipt = await work.run("cat 3/4 one.more")
        assert (receipt.inputs_are, receipt.inputs) == ("unknown", ())
        assert (await work.recorder.freshness(receipt)).state == "unknown"


async def test_files_and_folders_outside_belong_to_it_as_roots(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a").write_text("x")
    file = tmp_path / "file"
    file.write_text("x")
    async with workspace_at(tmp_path, more=[data, file]) as work:
        (work.top / "data").symlink_to(data)
        (work.top / "file").symlink_to(file)
        receipt = await work.run("cat data/a file")
        links = {"data": "link", "file": "link"}
        assert inputs_of(receipt) == {str(data / "a"): "whole", str(file): "whole", **links}
        assert (await work.recorder.freshness(receipt)).state == "fresh"
        file.write_text("y")
        assert (await work.recorder.freshness(receipt)).changed == [str(file)]
