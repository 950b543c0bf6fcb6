"""Windows of a search in an output, for lines too long to be shown whole."""

import sys
from pathlib import Path

import pytest

from panpan.capabilities.background.task_set import matching_lines
from panpan.system.text.redact import KnownKeys
from panpan.text_search.engine import MAX_COLUMNS

KEY = "sk-" + "".join(chr(ord("a") + number % 26) for number in range(60))
ENGINES = [str(Path(sys.executable).with_name("rg")), None]


@pytest.mark.parametrize("ripgrep", ENGINES, ids=["ripgrep", "Python"])
@pytest.mark.parametrize("before", [0, MAX_COLUMNS - 63, MAX_COLUMNS - 62, MAX_COLUMNS - 20, MAX_COLUMNS - 4])
async def test_cut_of_a_long_line_leaves_no_part_of_a_key(tmp_path: Path, before: int, ripgrep: str | None) -> None:
    output = tmp_path / "task.txt"
    output.write_text(f"{'=' * before}{KEY}{'=' * 500} end\nshort {KEY[:9]}\n")

    found = await matching_lines(output, "=|short", max_bytes=100_000, keys=KnownKeys([KEY]), ripgrep=ripgrep)

    long, short = found.text.split("\n")
    assert long.startswith(f"1:{'=' * before}")
    assert "sk-a" not in long
    assert short == f"2:short {KEY[:9]}"


@pytest.mark.parametrize("ripgrep", ENGINES, ids=["ripgrep", "Python"])
async def test_line_without_keys_is_shown_unchanged(tmp_path: Path, ripgrep: str | None) -> None:
    output = tmp_path / "task.txt"
    output.write_text("é \N{HIRAGANA LETTER A} [... 3 more]\n")

    found = await matching_lines(output, "more", max_bytes=100_000, keys=KnownKeys([KEY]), ripgrep=ripgrep)

    assert found.text == "1:é \N{HIRAGANA LETTER A} [... 3 more]"
