import os
import sys
from pathlib import Path

import pytest

from panpan.cli_kit.failures import crash_line, report_crash
from panpan.system.text.redact import Redactor

SECRET = "hunter2-hunter2"


def crash(message: str = f"cannot use {SECRET}") -> Exception:
    def where_it_failed() -> None:
        api_key = SECRET  # noqa: F841  a local that must not be in the report
        try:
            raise KeyError(message)
        except KeyError as exc:
            raise RuntimeError(message) from exc

    with pytest.raises(RuntimeError) as caught:
        where_it_failed()
    return caught.value


def test_crash_report_is_private_and_names_the_place(tmp_path: Path) -> None:
    path = report_crash(crash("odd"), tmp_path / "home", Redactor())

    text = path.read_text()
    assert path.parent == tmp_path / "home" / "crashes"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "where_it_failed" in text
    assert "KeyError: 'odd'" in text
    assert "RuntimeError: odd" in text
    assert "panpan: " in text
    assert "python: " in text


def test_crash_report_and_line_hold_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shaped = "sk-" + "a1" * 12
    monkeypatch.setattr(sys, "argv", ["panpan", "-p", f"use {SECRET} and {shaped}"])

    line = crash_line(crash(), tmp_path, Redactor([SECRET]))

    [report] = (tmp_path / "crashes").iterdir()
    assert SECRET not in line + report.read_text()
    assert shaped not in report.read_text()
    assert "[redacted]" in line
    assert str(report) in line


def test_crash_reports_of_the_same_second_are_kept_apart(tmp_path: Path) -> None:
    assert report_crash(crash(), tmp_path, Redactor()) != report_crash(crash(), tmp_path, Redactor())


@pytest.mark.parametrize("is_file", [True, False])
def test_crash_line_is_printed_if_nothing_can_be_written(tmp_path: Path, is_file: bool) -> None:
    home = tmp_path / "home"
    if is_file:
        home.touch()
    else:
        home.mkdir()
        (home / "crashes").symlink_to("crashes")

    line = crash_line(crash("odd\x1b[2J\nsecond line"), home, Redactor())

    assert line.startswith("unexpected RuntimeError: odd\\u001b[2J; no report could be written (")
    assert line.isprintable()


def test_crash_report_covers_an_error_that_cannot_be_shown(tmp_path: Path) -> None:
    class UnshowableError(Exception):
        def __str__(self) -> str:
            raise ValueError("no")

    line = crash_line(UnshowableError(), tmp_path, Redactor())

    assert line.startswith("unexpected UnshowableError; this is a fault in panpan")


def test_crash_report_is_bounded_and_takes_any_text(tmp_path: Path) -> None:
    path = report_crash(crash("x" * 1_000_000 + "\ud800"), tmp_path, Redactor())

    assert path.stat().st_size < 500_000
    assert "characters left out" in path.read_text()


def test_crash_report_holds_all_errors_of_a_group(tmp_path: Path) -> None:
    group = ExceptionGroup("two", [ValueError("first"), OSError(5, os.strerror(5))])

    text = report_crash(group, tmp_path, Redactor()).read_text()

    assert "first" in text
    assert os.strerror(5) in text
