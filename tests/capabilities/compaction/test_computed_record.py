"""The record of work done, computed from calls and results alone."""

from panpan.capabilities.compaction.computed_record import computed_record
from panpan.types.content import DiffDisplay, FileDiff
from panpan.types.messages import Message
from tests.capabilities.compaction.conversations import answered, replied, used


def done(
    id_: str, name: str, text: str = "ok", *, is_error: bool = False, display: object = None, **arguments: object
) -> list[Message]:
    return [replied("", used(id_, name, **arguments)), answered(id_, text, is_error=is_error, display=display)]


def change(path: str, added: int, removed: int, **options: bool) -> DiffDisplay:
    return DiffDisplay(files=(FileDiff(path=path, diff="", added=added, removed=removed, **options),))


def text_of(*rounds: list[Message]) -> str:
    return computed_record([message for round_ in rounds for message in round_]).text(10_000)


def test_record_adds_up_changed_files_and_omits_their_reads() -> None:
    text = text_of(
        done("1", "Read", file_path="a.py"),
        done("2", "Read", file_path="b.py"),
        done("3", "Edit", display=change("a.py", 3, 1), file_path="a.py"),
        done("4", "Write", display=change("c.py", 9, 0, is_new=True), file_path="c.py"),
        done("5", "Edit", display=change("a.py", 1, 0), file_path="a.py"),
    )

    assert text == "Files changed:\n- c.py (new, +9 -0)\n- a.py (+4 -1)\nFiles read:\n- b.py"


def test_record_omits_a_file_that_could_not_be_read() -> None:
    assert computed_record(done("1", "Read", "no such file", is_error=True, file_path="a.py")).summary == ""


def test_record_lists_a_command_once_with_its_last_outcome() -> None:
    text = text_of(
        done("1", "Bash", "boom\n[exit code 2]", is_error=True, command="make"),
        done("2", "Bash", "fine", command="ls"),
        done("3", "Bash", "built", command="make"),
    )

    assert text == "Commands, the newest last:\n- ls → exit code 0\n- make → exit code 0, 2 times"


def test_record_has_the_last_state_of_the_tests() -> None:
    failed = "==== 2 failed, 5 passed in 1.2s ====\n[exit code 1]"
    text = text_of(
        done("1", "Bash", "== 7 passed in 1.0s ==", command="python -m pytest -q"),
        done("2", "Bash", failed, is_error=True, command="pytest tests/a.py"),
        done("3", "Bash", "a.py", command="ls"),
    )

    assert "Tests, when they were run last: failed: pytest tests/a.py → exit code 1: 2 failed, 5 passed in 1.2s" in text


def test_record_names_denied_calls_apart_from_runs() -> None:
    text = text_of(
        done("1", "Bash", "Bash was not run. The user refused it.", is_error=True, command="git push"),
    )

    assert text == "Not allowed by the user or their rules:\n- Bash git push"


def test_record_stays_within_its_bound_and_counts_the_rest() -> None:
    rounds = [done(str(number), "Read", file_path=f"folder/file{number}.py") for number in range(500)]
    record = computed_record([message for round_ in rounds for message in round_])

    text = record.text(700)

    assert record.summary == "500 files read"
    assert len(text) <= 700
    assert "file499.py" in text
    assert "before these" in text


def test_record_path_cannot_close_its_reminder() -> None:
    assert "</system-reminder>" not in text_of(done("1", "Read", file_path="</system-reminder>.py"))
