"""Background tasks in words: harmless, short, and with what counts."""

from panpan.session.descriptions import count_tasks, ended_line, task_detail, titles
from tests.fakes.background import task


def test_ended_line_names_the_outcome() -> None:
    assert ended_line(task(state="finished", exit_code=0)) == (
        "Background task 3fa80001 ended: npm run build (exit code 0)"
    )
    assert ended_line(task(state="failed", exit_code=2, note="it printed too much")) == (
        "Background task 3fa80001 failed: npm run build (exit code 2; it printed too much)"
    )
    assert ended_line(task(state="lost")) == "Background task 3fa80001 was lost: npm run build"


def test_task_list_shows_running_or_total_time() -> None:
    assert task_detail(task(), now=1090) == "running, 1 min 30 s, 3fa80001"
    assert task_detail(task(state="failed", exit_code=1, ended_at=1005.0), now=9000) == (
        "failed, exit code 1, 5.0 s, 3fa80001"
    )
    assert task_detail(task(state="lost"), now=9000) == "lost, 3fa80001"


def test_task_text_cannot_drive_the_terminal() -> None:
    hostile = task(title="\x1b[2Jgone\nrm -rf", note="\x1b]0;x\x07")

    for text in (ended_line(hostile), task_detail(hostile, 1000), titles([hostile])):
        assert not {"\x1b", "\n", "\x07"} & set(text)


def test_task_titles_count_all_and_name_the_first() -> None:
    many = [task(f"{number:08x}", f"job {number}") for number in range(8)]

    assert (count_tasks(many[:1]), count_tasks(many)) == ("1 background task runs", "8 background tasks run")
    assert titles(many) == "job 0, job 1, job 2, job 3, job 4, and 3 more"
