"""A server's edits become exactly the text that it means, in whatever it counts, or are refused as a whole."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.language_servers.code_queries import FileChanges, TextChange
from panpan.capabilities.language_servers.lsp import plan_code_rename
from panpan.capabilities.language_servers.wire import Encoding, lines_of, units
from panpan.errors import ToolError
from tests.fakes.context import context_in

ENCODINGS: Sequence[Encoding] = ("utf-8", "utf-16", "utf-32")
PIECES = st.lists(
    st.sampled_from(
        ["alpha", "🎉", "é", "e\u0301", "漢字", " ", "\u2028", "\t", "\f", "\n", "\r\n", "x", "👩\u200d🚀"]
    ),
    max_size=25,
)


def changes_in(path: Path, text: str, encoding: Encoding) -> FileChanges:
    """Return the edits that make beta of each alpha, as a server would count them."""
    found = []
    for number, line in enumerate(lines_of(text)):
        at = line.find("alpha")
        while at >= 0:
            start, end = units(line[:at], encoding), units(line[: at + 5], encoding)
            found.append(TextChange(number, start, number, end, "beta"))
            at = line.find("alpha", at + 5)
    return FileChanges(path, found[::-1], encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=30)
@given(pieces=PIECES)
def test_code_rename_changes_each_place_and_no_other_byte(encoding: Encoding, pieces: list[str]) -> None:
    text = "".join([*pieces, "alpha"])
    with TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "a.py"
        path.write_bytes(text.encode())

        plan = plan_code_rename("alpha", "beta", [changes_in(path, text, encoding)], context_in(path.parent))

    assert [change.after for change in plan.changes] == [text.replace("alpha", "beta").encode()]


@pytest.mark.parametrize(
    "change",
    [
        TextChange(0, 1, 0, 7, "beta"),  # from the middle of the first character
        TextChange(0, 2, 0, 99, "beta"),
        TextChange(9, 0, 9, 5, "beta"),
        TextChange(0, 7, 0, 2, "beta"),
        TextChange(0, 0, 0, 1, "beta"),
        TextChange(0, 2, 0, 7, "gamma"),
    ],
)
def test_senseless_edit_refuses_all(tmp_path: Path, change: TextChange) -> None:
    path = tmp_path.resolve() / "a.py"
    path.write_text("🎉alpha alpha", encoding="utf-8")
    right = TextChange(0, 8, 0, 13, "beta")

    with pytest.raises(ToolError):
        plan_code_rename("alpha", "beta", [FileChanges(path, [right, change], "utf-16")], context_in(path.parent))


def test_rename_of_nothing_or_too_many_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "a.py"
    path.write_text("alpha")
    one = changes_in(path, "alpha", "utf-8")

    for files in ([], [one] * 201):
        with pytest.raises(ToolError):
            plan_code_rename("alpha", "beta", files, context_in(path.parent))


def test_code_rename_keeps_the_encoding_which_bounds_the_name(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "a.py"
    path.write_bytes("# coding: latin-1\né = alpha".encode("latin-1"))
    good, bad = (TextChange(1, 4, 1, 9, name) for name in ("beta", "β"))

    plan = plan_code_rename("alpha", "beta", [FileChanges(path, [good], "utf-16")], context_in(path.parent))

    assert plan.changes[0].after == "# coding: latin-1\né = beta".encode("latin-1")
    with pytest.raises(ToolError):
        plan_code_rename("alpha", "β", [FileChanges(path, [bad], "utf-16")], context_in(path.parent))
