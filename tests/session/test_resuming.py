import json
from pathlib import Path

import pytest

from panpan.session.log.fold import fold_records
from panpan.session.opening import EarlierModel, resume_log, resumed_mode
from panpan.types.permission import PermissionMode

HERE = Path("/work/here")


def resumed_with_notes(path: Path, *lines: str) -> list[str]:
    path.write_text("".join(f"{line}\n" for line in lines))
    notes: list[str] = []
    resume_log(path, cwd=HERE, warn=notes.append)
    return notes


def record(uuid: str, **fields: object) -> str:
    return json.dumps({"uuid": uuid, "type": "note", "cwd": str(HERE), **fields})


def test_unchanged_session_resumes_without_notes(tmp_path: Path) -> None:
    assert resumed_with_notes(tmp_path / "s.jsonl", record("1"), record("2")) == []


def test_empty_log_resumes_without_notes(tmp_path: Path) -> None:
    assert resumed_with_notes(tmp_path / "s.jsonl") == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (["spoilt"], "line 2 of the session's log cannot be read and counts for nothing"),
        (["spoilt", "{}"], "line 2 of the session's log and 1 further cannot be read and count for nothing"),
    ],
)
def test_resuming_reports_damaged_lines(tmp_path: Path, damage: list[str], said: str) -> None:
    path = tmp_path / "s.jsonl"

    assert resumed_with_notes(path, record("1"), *damage, record("2")) == [f"{said}: {path}"]


def test_resuming_reports_another_folder(tmp_path: Path) -> None:
    lines = [record("1", cwd="/work/there"), record("2", parentUuid="1")]

    assert resumed_with_notes(tmp_path / "s.jsonl", *lines) == [
        f"the session was begun in /work/there; its tools work in {HERE} now"
    ]


@pytest.mark.parametrize("cwd", [None, 7, ["/work/there"]])
def test_resuming_ignores_an_unreadable_first_folder(tmp_path: Path, cwd: object) -> None:
    assert resumed_with_notes(tmp_path / "s.jsonl", record("1", cwd=cwd)) == []


def test_resuming_reports_a_newer_format(tmp_path: Path) -> None:
    (note,) = resumed_with_notes(tmp_path / "s.jsonl", record("1", version=99))

    assert note.startswith("a newer panpan wrote the session")


@pytest.mark.parametrize(
    ("left_in", "settings", "is_option", "is_interactive", "goes_on_in", "word"),
    [
        (None, "default", False, True, "default", None),
        ("plan", "plan", False, False, "plan", None),
        ("plan", "default", False, False, "plan", "resumed in mode plan"),
        ("acceptEdits", "default", False, True, "acceptEdits", "resumed in mode acceptEdits"),
        ("acceptEdits", "default", False, False, "default", "resumed in mode default instead of acceptEdits"),
        ("default", "plan", False, False, "plan", "resumed in mode plan instead of default"),
        ("default", "plan", False, True, "default", "resumed in mode default"),
        ("bypassPermissions", "default", False, True, "default", "instead of bypassPermissions"),
        ("bypassPermissions", "bypassPermissions", False, True, "bypassPermissions", None),
        ("plan", "acceptEdits", True, True, "acceptEdits", None),
        ("bypassPermissions", "default", True, True, "default", None),
    ],
)
def test_resumed_mode_is_the_last_one_if_that_is_safe(
    left_in: PermissionMode | None,
    settings: PermissionMode,
    is_option: bool,
    is_interactive: bool,
    goes_on_in: PermissionMode,
    word: str | None,
) -> None:
    notes: list[str] = []

    mode = resumed_mode(left_in, settings, is_option=is_option, is_interactive=is_interactive, warn=notes.append)

    assert mode == goes_on_in
    assert len(notes) == (word is not None)
    assert word is None or word in notes[0]


@pytest.mark.parametrize(
    ("earlier", "now", "note"),
    [
        (EarlierModel("big", True), "big", ""),
        (EarlierModel("big", True), "small", "--model big or /model big switches back"),
        (EarlierModel("big", False), "small", "resumed with small instead of big"),
    ],
)
def test_resuming_with_another_model_says_so(earlier: EarlierModel, now: str, note: str) -> None:
    said = earlier.note(now)

    assert said.endswith(note)
    assert bool(said) is bool(note)
    assert ("--model" in said) is ("--model" in note)


def test_model_name_cannot_drive_the_terminal() -> None:
    assert "\x1b" not in EarlierModel("b\x1b[2Jig", True).note("small")


def reply(model: object, uuid: str = "a") -> dict[str, object]:
    return {"type": "assistant", "uuid": uuid, "message": {"model": model}}


def chosen(model: object) -> dict[str, object]:
    return {"type": "system", "subtype": "model", "uuid": "m", "model": model, "effort": None}


@pytest.mark.parametrize(
    ("records", "model"),
    [
        ([], None),
        ([reply("one")], "one"),
        ([reply("one"), chosen("two")], "two"),
        ([chosen("two"), reply("one")], "one"),
        ([reply("one"), chosen(5), chosen(""), reply([]), reply("")], "one"),
    ],
)
def test_resumed_model_is_the_last_one_asked_or_chosen(records: list[dict[str, object]], model: str | None) -> None:
    unlike = [{**record, "uuid": str(number)} for number, record in enumerate(records)]

    assert fold_records(unlike).model == model
