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


@pytest.mark.parametrize("note", ["", " \n", "x" * (notes.MAX_CHARS + 1)])
async def test_empty_or_endless_note_is_refused(tmp_path: Path, note: str) -> None:
    with pytest.raises(ConfigError, match="a note has from 1 to"):
        await append_note(note, tmp_path / "AGENTS.md", tmp_path)

    assert not (tmp_path / "AGENTS.md").exists()
