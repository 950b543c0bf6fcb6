"""Sources of a derived file count as read with it."""

from pathlib import Path

from tests.receipts.recorded import Workspace, inputs_of, workspace_at

ELF = b"\x7fELF"


async def is_fresh(work: Workspace, line: str) -> bool:
    return (await work.recorder.freshness(await work.run(line))).state == "fresh"


async def test_program_brings_its_sources(tmp_path: Path) -> None:
    (tmp_path / "elf").write_bytes(ELF)
    async with workspace_at(tmp_path) as work:
        work.write("a.c")
        work.write("notes.md")
        await work.run("cat a.c notes.md > /dev/null; cat ../elf > a")
        receipt = await work.run("cat a")
        assert inputs_of(receipt) == {"a": "whole", "a.c": "whole"}
        assert receipt.inputs_are == "opened"
        work.write("a.c", "changed")
        assert (await work.recorder.freshness(receipt)).changed == ["a.c"]
        again = await work.run("cat a")  # built of what is no more
        assert (await work.recorder.freshness(again)).changed == ["a.c"]
        await work.run("cat a.c > /dev/null; cat ../elf > a")
        assert await is_fresh(work, "cat a")


async def test_sources_are_found_over_several_steps(tmp_path: Path) -> None:
    (tmp_path / "elf").write_bytes(ELF)
    async with workspace_at(tmp_path) as work:
        work.write("a.c", "1")
        work.write("b.c", "2")
        await work.run("cat a.c b.c > /dev/null; cat ../elf > a.o; cat ../elf > b.o")
        await work.run("cat a.o b.o > app")
        assert inputs_of(await work.run("cat app")).keys() == {"a.c", "app", "b.c"}
        work.write("b.c", "3")
        await work.run("cat b.c > /dev/null; (cat ../elf; echo 3) > b.o; cat a.o b.o > app")
        assert await is_fresh(work, "cat app")


async def test_program_that_is_built_and_run_brings_no_others(tmp_path: Path) -> None:
    (tmp_path / "elf").write_bytes(ELF)
    async with workspace_at(tmp_path) as work:
        work.write("a.c")
        work.write("b.c")
        receipt = await work.run("cat a.c > /dev/null; cat ../elf > a; cat a")
    assert receipt.inputs_are == "opened"
    assert inputs_of(receipt).keys() == {"a", "a.c"}


async def test_program_of_unknown_origin_brings_all_files(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a.c")
        work.write("app", ELF)
        receipt = await work.run("cat app")
        assert receipt.inputs_are == "all"
        assert inputs_of(receipt).keys() == {"a.c", "app"}
        assert (await work.recorder.freshness(receipt)).state == "fresh"
        work.write("new.c")
        assert (await work.recorder.freshness(receipt)).state == "stale"


async def test_tracked_program_brings_nothing(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a.c")
        work.write("tool.jar", ELF)
        await work.run("git init -q && git add tool.jar")
        receipt = await work.run("cat tool.jar")
    assert receipt.inputs_are == "opened"
    assert inputs_of(receipt) == {"tool.jar": "whole"}


async def test_ignored_text_brings_its_sources(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a.ts")
        work.write("b.ts")
        work.write(".gitignore", "dist\n")
        await work.run("git init -q && mkdir dist")
        await work.run("cat a.ts > dist/a.js; cat b.ts > b.js")
        receipt = await work.run("cat dist/a.js b.js")
    assert inputs_of(receipt).keys() == {"a.ts", "b.ts", "b.js", "dist/a.js"}
    assert receipt.inputs_are == "opened"


async def test_files_that_programs_keep_for_themselves_do_not_go_stale(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write(".gitignore", "state\n")
        work.write("state", "1")
        work.write("source", "1")
        await work.run("git init -q")
        assert await is_fresh(work, "cat state; echo 2 > state")
        assert not await is_fresh(work, "cat source; echo 2 > source")


async def test_use_of_a_cache_brings_all_files(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a.py")
        work.write(".mypy_cache/3.11/a.meta.json")
        receipt = await work.run("cat .mypy_cache/3.11/a.meta.json")
        assert receipt.inputs_are == "all"
        assert inputs_of(receipt).keys() == {"a.py"}


async def test_bytecode_elsewhere_brings_all_files(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a.py")
        receipt = await work.run("true", variables={"PYTHONPYCACHEPREFIX": "/tmp/bytecode"})
    assert inputs_of(receipt).keys() == {"a.py"}
