"""`panpan batch`: the commands beside `run`, on campaigns as they are on the disk."""

import json
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from panpan.batch.cli import EXAMPLE, command
from panpan.batch.store.lease import Lease
from panpan.batch.store.records import Answer, AttemptState, Needs
from panpan.errors import ConfigError
from tests.batch.campaign_files import begun_campaign, result_of, task_of

ONE, TWO = task_of("table", seed=1), task_of("table", seed=2)
QUESTION = Needs(kind="question", text="Which split?\x1b[2J", choices=("paper", "repository"))


def called(*words: object) -> Result:
    """Run `panpan batch` without a terminal; panpan's own errors come out."""
    result = CliRunner().invoke(command, [str(word) for word in words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return the folder of a campaign with a result and an attempt that waits."""
    folder = begun_campaign(
        tmp_path / "camp", [ONE, TWO], [result_of(ONE, message="Done.")], {"attempts": 2, "axes": {"seed": [1, 2]}}
    )
    for task, number in ((ONE, 1), (TWO, 2)):
        folder.attempt(task.id, number).path.mkdir(parents=True)
        folder.attempt(task.id, number).write_state(AttemptState(session_id="0b54a4d3"))
    folder.attempt(ONE.id, 1).write_result(result_of(ONE, message="Done."))
    folder.attempt(TWO.id, 2).write_needs(QUESTION)
    return folder.path


def test_new_writes_an_example_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "two words"
    monkeypatch.chdir(tmp_path)

    assert f"then: panpan batch run '{place}'" in called("new", place).output
    assert (place / "campaign.toml").read_text() == EXAMPLE
    with pytest.raises(ConfigError, match="is there already"):
        called("new", place)


@pytest.mark.parametrize(
    ("project", "source"), [("pro", "../.."), ("pro/campaigns/one", "."), ("else where", "{top}/else where")]
)
def test_new_names_the_working_folder_as_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: str, source: str
) -> None:
    place = tmp_path / "pro" / "campaigns" / "one"
    (tmp_path / project).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / project)

    called("new", place)

    written = tomllib.loads((place / "campaign.toml").read_text(encoding="utf-8"))
    assert written["workspace"]["source"] == source.format(top=tmp_path)


def test_status_is_json_where_asked(place: Path) -> None:
    told: Mapping[str, Any] = json.loads(called("status", place, "-f", "json").output)

    assert (told["attempts"], told["ended"], told["by_status"]) == (4, 1, {"passed": 1})
    assert told["by_axis"] == {"seed": {"1": {"passed": 1}}}


@pytest.mark.parametrize("words", [["status"], ["attach", "x"], ["answer"], ["cancel"]])
def test_command_without_a_campaign_says_how_to_begin(tmp_path: Path, words: Sequence[str]) -> None:
    name, *rest = words

    with pytest.raises(ConfigError, match="begin it"):
        called(name, tmp_path, *rest)
    with pytest.raises(ConfigError, match="is not a folder; make one with: panpan batch new"):
        called(name, tmp_path / "missing", *rest)


def test_answer_lists_the_questions_with_the_command(place: Path) -> None:
    assert called("answer", place).output == (
        "table/seed=2/2 waits for an answer:\n"
        "  Which split?<U+001B>[2J\n"
        "  1. paper\n"
        "  2. repository\n"
        f"  answer: panpan batch answer {place} table/seed=2/2 --choice N\n\n"
    )
    (told,) = json.loads(called("answer", place, "-f", "json").output)
    assert (told["attempt"], told["choices"]) == ("table/seed=2/2", ["paper", "repository"])


def test_answer_is_written_and_says_how_the_campaign_goes_on(place: Path) -> None:
    said = called("answer", place, "table/seed=2", "--choice", 2).output

    answer = (place / "state" / TWO.id / "attempt-2" / "answer.json").read_bytes()
    assert Answer.model_validate_json(answer) == Answer(text="repository")
    assert said == f"answered table/seed=2/2; go on with it: panpan batch run {place}\n"
    assert called("answer", place).output == "no attempt waits for an answer\n"


async def test_answer_to_a_running_campaign_needs_nothing_more(place: Path) -> None:
    import anyio

    async with Lease(place / "state" / "lease"):
        said = (await anyio.to_thread.run_sync(called, "answer", place, "table/seed=2", "the paper's")).output

    assert said == "answered table/seed=2/2; the campaign goes on with it\n"


def test_answer_without_a_task_or_a_text_is_refused(place: Path) -> None:
    with pytest.raises(ConfigError, match="name the attempt to answer"):
        called("answer", place, "--skip")
    with pytest.raises(ConfigError, match="there is no answer; give --choice 1 to 2"):
        called("answer", place, "table/seed=2")


def test_cancel_ends_attempts_or_asks_for_a_stop(place: Path) -> None:
    assert called("cancel", place, "table/seed=2/1").output == "cancelled: table/seed=2/1\n"
    assert (place / "state" / TWO.id / "attempt-1" / "cancel").exists()

    assert called("cancel", place).output.startswith("the campaign does not run; panpan batch run ")
    assert not (place / "state" / "stop").exists()


async def test_cancel_waits_until_the_campaign_has_stopped(place: Path) -> None:
    import anyio

    async def stop_when_told() -> None:
        async with Lease(place / "state" / "lease"):
            held.set()
            while not (place / "state" / "stop").exists():  # noqa: ASYNC110
                await anyio.sleep(0.01)

    held = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_when_told)
        await held.wait()
        said = (await anyio.to_thread.run_sync(called, "cancel", place)).output

    assert said.startswith("the campaign has stopped; panpan batch run ")


def test_attach_without_a_terminal_prints_what_happened(place: Path) -> None:
    event = {"type": "assistant", "message": {"content": [{"type": "text", "text": "I did it."}]}}
    (place / "state" / ONE.id / "attempt-1" / "events.jsonl").write_text(json.dumps(event) + "\n")

    assert called("attach", place, "table/seed=1").output == "I did it.\n--- passed, ended by answer\nDone.\n"
    assert called("attach", place, "table/seed=2").output == (
        f"--- waits for you (question): Which split?\nanswer: panpan batch answer {place} table/seed=2/2\n"
    )
    with pytest.raises(ConfigError, match="table/seed=2/1 has not begun"):
        called("attach", place, "table/seed=2/1")


def test_attach_to_one_of_several_attempts_needs_its_number(place: Path) -> None:
    shutil.copytree(place / "state" / TWO.id / "attempt-2", place / "state" / TWO.id / "attempt-1")

    with pytest.raises(ConfigError, match="several attempts have begun: 1, 2"):
        called("attach", place, "table/seed=2")


def test_watch_and_json_exclude_each_other(place: Path) -> None:
    with pytest.raises(click.UsageError):
        called("status", place, "--watch", "-f", "json")
