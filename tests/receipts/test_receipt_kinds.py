"""The kind of a command comes from what it wrote."""

from pathlib import Path

import pytest

from tests.receipts.recorded import workspace_at


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a.out", b"\x7fELF\x02", "build"),
        ("lib.a", b"!<arch>\n", "build"),
        ("m.wasm", b"\0asm\x01", "build"),
        ("A.class", b"\xca\xfe\xba\xbe", "build"),
        ("a.exe", b"MZ\x90", "build"),
        ("p-1-py3-none-any.whl", b"PK\x03\x04", "build"),
        ("paper.pdf", b"%PDF-1.7", "build"),
        ("data.zip", b"PK\x03\x04", "run"),
        ("notes.txt", b"MZ is no program", "run"),
        ("results.csv", b"a,b\n", "run"),
    ],
)
async def test_kind_comes_from_what_was_written(tmp_path: Path, name: str, head: bytes, kind: str) -> None:
    (tmp_path / "head").write_bytes(head + bytes(100))
    async with workspace_at(tmp_path) as work:
        receipt = await work.run(f"cat ../head > {name}")
    assert receipt.kind == kind


async def test_copy_of_a_program_is_no_build(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a", b"\x7fELF")
        receipt = await work.run("cp a b")
    assert receipt.kind == "run"


async def test_program_that_git_checks_out_is_no_build(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("a", b"\x7fELF")
        await work.run("git init -q && git add a && rm a")
        receipt = await work.run("git checkout -q -- a")
    assert [one.path for one in receipt.outputs] == ["a"]
    assert receipt.kind == "run"


async def test_printed_words_make_no_test_run(tmp_path: Path) -> None:
    event = '{"Action":"run","Package":"p","Test":"T"}'
    async with workspace_at(tmp_path) as work:
        for line in (
            "echo '12 passed'",
            f'echo \'{event}\'; echo \'{event.replace("run", "pass")}\'; echo \'{{"Action":"pass","Package":"p"}}\'',
            "echo '<testsuite><testcase name=\"a\"/></testsuite>' > report.xml",
        ):
            receipt = await work.run(line)
            assert (receipt.kind, receipt.tests) == ("run", ())
