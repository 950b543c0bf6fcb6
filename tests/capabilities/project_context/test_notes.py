"""Notes of the user: where they go, that nothing is lost, and that the model hears of them."""

from pathlib import Path

import pytest

from panpan.capabilities.project_context import notes
from panpan.capabilities.project_context.notes import append_note, file_for_notes
from panpan.errors import ConfigError


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ([], "AGENTS.md"),
        (["CLAUDE.md"], "CLAUDE.md"),
        (["AGENTS.md", "CLAUDE.md"], "AGENTS.md"),
        (["AGENTS.md", "AGENTS.override.md"], "AGENTS.override.md"),
    ],
)
def test_note_goes_where_the_model_looks(tmp_path: Path, there: list[str], taken: str) -> None:
    for name in there:
        (tmp_path / name).touch()

    assert file_for_notes(tmp_path).name == taken


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, "- Use uv.\n"), ("", "- Use uv.\n"), ("# A\n", "# A\n- Use uv.\n"), ("# A", "# A\n- Use uv.\n")],
)
async def test_note_is_a_list_item_at_the_end(tmp_path: Path, before: str | None, after: str) -> None:
    file = tmp_path / "new" / "AGENTS.md"
    if before is not None:
        file.parent.mkdir()
        file.write_text(before)

    await append_note(" Use\nuv. ", file, tmp_path)

    assert file.read_text() == after


async def test_note_follows_no_link_out_of_the_project(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("mine")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "AGENTS.md").symlink_to(outside)

    with pytest.raises(ConfigError, match="leads out"):
        await append_note("x", tmp_path / "p" / "AGENTS.md", tmp_path / "p")

    assert outside.read_text() == "mine"
    await append_note("x", tmp_path / "p" / "AGENTS.md", None)
    assert outside.read_text() == "mine\n- x\n"


@pytest.mark.parametrize("target", [".git/config", ".env", "notes.txt"])
async def test_note_follows_no_link_to_another_kind_of_file(tmp_path: Path, target: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / target).write_text("mine")
    (tmp_path / "AGENTS.md").symlink_to(target)

    with pytest.raises(ConfigError, match="takes no notes"):
        await append_note("x", tmp_path / "AGENTS.md", tmp_path)

    assert (tmp_path / target).read_text() == "mine"


@pytest.mark.parametrize("target", ["x" * 300, "AGENTS.md"])
async def test_note_in_a_link_that_leads_nowhere_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "AGENTS.md").symlink_to(target)

    with pytest.raises(ConfigError):
        await append_note("x", file_for_notes(tmp_path), tmp_path)


async def test_note_keeps_line_ends_and_refuses_what_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_bytes(b"# A\r\n")
    await append_note("x", file, tmp_path)
    assert file.read_bytes() == b"# A\r\n- x\r\n"

    file.write_bytes("# A".encode("utf-16"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        await append_note("x", file, tmp_path)
    assert file.read_bytes() == "# A".encode("utf-16")


@pytest.mark.parametrize("note", ["\ud800", "", " \n", "x" * (notes.MAX_CHARS + 1)])
async def test_empty_or_endless_note_is_refused(tmp_path: Path, note: str) -> None:
    with pytest.raises(ConfigError, match="a note has from 1 to"):
        await append_note(note, tmp_path / "AGENTS.md", tmp_path)

    assert not (tmp_path / "AGENTS.md").exists()
