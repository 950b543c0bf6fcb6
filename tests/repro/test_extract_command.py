"""`panpan repro extract`: a document is read in the sandbox, and claims are added to a file."""

import json
import os
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import pytest

from panpan.errors import ConfigError
from panpan.repro.claims.claims_file import load_claims
from panpan.repro.papers.extract_command import document_bytes, extract, read_document
from panpan.repro.papers.tables import ReadPaper, kind_of, read_paper
from panpan.repro.papers.worker import read_tables
from panpan.system.sandbox.choice import SandboxChoice
from panpan.system.sandbox.command_sandbox import CommandSandbox
from tests.prepared_command import PREPARED
from tests.repro.pdf_writer import Page, encrypted, pdf_of, scan

README = "Table 1: Errors.\n\n| m | e |\n|---|---|\n| a | 1.5 |\n| b | 2.5 / 3 |\n"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANPAN_HOME", str(tmp_path / "home"))


def paper() -> bytes:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    page.table([110, 235, 305], 98, [["Method", "Acc.", "F1"], ["Mean", "81.2", "80.0"], ["Huber", "85.9", "84.1"]])
    return pdf_of(page)


def extracted(folder: Path, name: str, data: bytes, form: str = "text", **given: object) -> int:
    """Extract from a file in a folder, and return the exit code."""
    (folder / name).write_bytes(data)
    options: Mapping[str, object] = {"output": Path("claims.toml"), "tables": (), "writes_example": False, **given}
    return anyio.run(partial(extract, Path(name), folder, form, options, read=read_here))


async def read_here(path: Path) -> ReadPaper:
    """Read a document as the worker does, in this process."""
    data = document_bytes(path)
    kind = kind_of(path.name, data)
    return ReadPaper(read_tables(kind, data, path.name), "a" * 64, kind)


def test_pdf_becomes_claims_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(paper())
    env = {**os.environ, "PANPAN_HOME": str(tmp_path / "home")}
    argv = PREPARED.argv("repro", "extract", "paper.pdf", env=env)
    ended = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Table 1, page 1: 4 numbers" in ended.stdout
    assert "4 claims added, which nobody has confirmed" in ended.stdout
    claims = load_claims(tmp_path).claims
    assert claims.paper.source == "paper.pdf"
    assert {claim.id: claim.value for claim in claims.claim} == {
        "table-1/mean/acc": "81.2",
        "table-1/mean/f1": "80.0",
        "table-1/huber/acc": "85.9",
        "table-1/huber/f1": "84.1",
    }


def test_document_without_tables_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = Page()
    page.prose(60, 80, 490, 20)
    assert extracted(tmp_path, "paper.pdf", pdf_of(page)) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "paper.pdf has no tables with numbers; write claims by hand\n")
    assert not (tmp_path / "claims.toml").exists()


def test_example_is_written_only_when_asked(tmp_path: Path) -> None:
    assert extracted(tmp_path, "README.md", b"# no tables", writes_example=True) == 0
    assert load_claims(tmp_path).claims.claim == ()
    before = (tmp_path / "claims.toml").read_bytes()
    with pytest.raises(ConfigError, match="has changed meanwhile; nothing was written"):
        extracted(tmp_path, "README.md", b"# no tables", writes_example=True)
    assert (tmp_path / "claims.toml").read_bytes() == before


def test_scan_says_that_its_text_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extracted(tmp_path, "paper.pdf", scan()) == 0
    err = capsys.readouterr().err
    assert "paper.pdf has scans without text: pages 1; recognise their text first" in err


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (encrypted(paper()), r"paper\.pdf is encrypted; a copy without a password can be read"),
        (b"", r"paper\.pdf is empty"),
        (b"\x00\x01\x02\xff" * 100, r"paper\.pdf is no text; name a PDF"),
    ],
)
def test_unreadable_document_is_one_sentence(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=problem):
        anyio.run(read_document, path)


def test_missing_document_is_one_sentence(tmp_path: Path) -> None:
    options = {"output": Path("claims.toml"), "tables": (), "writes_example": False}
    with pytest.raises(ConfigError, match="the paper cannot be read"):
        anyio.run(extract, Path("nothing.pdf"), tmp_path, "text", options)


def test_json_tells_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extracted(tmp_path, "README.md", README.encode())
    claims = (tmp_path / "claims.toml").read_text().replace('"1.5"', '"1.7"')
    (tmp_path / "claims.toml").write_text(claims)
    capsys.readouterr()
    extracted(tmp_path, "README.md", README.encode(), "json")
    facts = json.loads(capsys.readouterr().out)
    assert facts == {
        "file": str(tmp_path / "claims.toml"),
        "added": 0,
        "known": 1,
        "differing": ["table-1/a"],
        "left_out": 1,
        "tables": [{"name": "Table 1", "page": None, "claims": 1}],
    }
    assert (tmp_path / "claims.toml").read_text() == claims


def test_dash_prints_claims_and_writes_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extracted(tmp_path, "README.md", README.encode(), output=Path("-"))
    out, err = capsys.readouterr()
    assert '[[claim]]\nid = "table-1/a"' in out
    assert "1 cell is left out" in err
    assert not (tmp_path / "claims.toml").exists()


@pytest.mark.parametrize("output", ["claims.toml", "."])
def test_link_out_of_the_folder_is_not_written_through(tmp_path: Path, output: str) -> None:
    """A repository may bring a link to a file that a shell reads at its start."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "claims.toml").symlink_to(tmp_path / ".bash_profile")
    with pytest.raises(ConfigError, match=r"is a link that leads to .*\.bash_profile; name that file with -o"):
        extracted(folder, "README.md", README.encode(), output=Path(output))
    assert not (tmp_path / ".bash_profile").exists()


def test_folder_as_output_gets_a_claims_file(tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    extracted(tmp_path, "README.md", README.encode(), output=Path("into"))
    assert load_claims(tmp_path / "into").claims.paper.source == "README.md"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("x", b"%PDF-1.4", "pdf"),
        ("x.HTML", b"a", "html"),
        ("x", b"<!DOCTYPE html>", "html"),
        ("x.tex", b"a", "latex"),
        ("x.txt", b"\\documentclass{article}", "latex"),
        ("README", b"a", "markdown"),
    ],
)
def test_kind_is_that_of_content_or_name(name: str, data: bytes, kind: str) -> None:
    assert kind_of(name, data) == kind


def test_reader_that_takes_too_long_is_ended() -> None:
    async def none() -> SandboxChoice:
        return SandboxChoice(None)

    async def read() -> None:
        await read_paper(b"# text", "README.md", CommandSandbox(find=none), within_s=0.001)

    with pytest.raises(ConfigError, match=r"takes more than 0\.001 s to read; write claims\.toml by hand"):
        anyio.run(read)
