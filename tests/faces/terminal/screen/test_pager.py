"""The pager gets every word and colour, and nothing else that a terminal would obey."""

import re
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.screen.external_program import page, pager_command, strip_escapes
from panpan.faces.terminal.screen.theme import Theme

SEQUENCES = [
    "\x1b[2J",
    "\x1b[31m",
    "\x1b[0m",
    "\x1b]52;c;QUJD\x07",
    "\x1b]0;T\x1b\\",
    "\x9b5A",
    "\x1bc",
    "\r",
    "\u202e",
]
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


def test_words_and_colours_pass() -> None:
    painted = Theme("dark").paint("strong", "Bash ls") + " und Grüße\t漢字"

    assert strip_escapes(painted) == painted


@given(st.lists(st.sampled_from(SEQUENCES) | st.text(max_size=4)).map("".join))
def test_pager_text_keeps_only_colours_of_terminal_sequences(text: str) -> None:
    rest = COLOUR.sub("", strip_escapes(text))

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rest)


def test_less_has_colours_and_begins_where_it_is_told() -> None:
    assert pager_command({"PAGER": "less"}, "12") == ["less", "-R", "+12"]
    assert pager_command({"PAGER": "less"}) == ["less", "-R"]


async def test_pager_gets_the_lines_cleaned(tmp_path: Path) -> None:
    got, script = tmp_path / "got", tmp_path / "pager.py"
    script.write_text(f"import shutil, sys\nshutil.copy(sys.argv[-1], {str(got)!r})\n")

    await page(
        ["one \x1b]52;c;QUJD\x07two", "\x1b[1mthree\x1b[0m"], {"PAGER": f"{sys.executable} {script}"}, lambda: "G"
    )

    assert got.read_text() == "one two\n\x1b[1mthree\x1b[0m\n"
