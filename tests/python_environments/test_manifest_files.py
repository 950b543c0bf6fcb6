import codecs
from pathlib import Path

import pytest

from panpan.python_environments.project_files import MAX_BYTES
from tests.python_environments.projects import files_of


@pytest.mark.parametrize(
    ("mark", "coding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_text_is_read_in_the_encoding_of_its_mark(mark: bytes, coding: str, tmp_path: Path) -> None:
    files = files_of(tmp_path, {"requirements.txt": mark + "numpy # für\n".encode(coding)})

    assert files.text("requirements.txt") == "numpy # für\n"


def test_too_large_file_is_reported_and_not_read_in_part(tmp_path: Path) -> None:
    files = files_of(tmp_path, {"most.txt": "#" * MAX_BYTES, "more.txt": "#" * (MAX_BYTES + 1)})

    assert files.text("most.txt") == "#" * MAX_BYTES
    assert files.text("more.txt") is None
    assert [(one.source, one.why) for one in files.unread] == [
        ("more.txt", "it has more than 1,000,000 bytes and is not read")
    ]


def test_file_is_read_once_and_a_missing_one_is_not_reported(tmp_path: Path) -> None:
    files = files_of(tmp_path, {"a/b.txt": "x"})

    assert files.text("a/b.txt") == "x"
    assert files.text("a/../a/b.txt") is None
    assert files.text("setup.cfg") is None
    assert files.unread == []
