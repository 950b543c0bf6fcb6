"""`panpan sessions` for sessions that are not open: each command as a user gives it."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from panpan.cli.main import cli
from panpan.config.locations import Locations
from panpan.errors import ConfigError, SessionError
from panpan.session.log.record_kinds import CompactionRecord, TitleRecord
from panpan.session.log.recorder import write_whole_log
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog, read_records
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Compaction, UserMessage
from tests.prepared_command import PREPARED
from tests.session.importing.claude_records import ClaudeTranscript, text

KEY = "sk-ant-api03-" + "a1B2" * 20


class Place:
    """A project with a panpan home."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        (self.project / ".git").mkdir(parents=True)

    @property
    def env(self) -> dict[str, str]:
        home = {"PANPAN_HOME": str(self.home), "HOME": str(self.home)}
        return {**home, "COLUMNS": "80", "TZ": "UTC", "MY_API_TOKEN": "correct-horse-battery"}

    def run(self, *arguments: str) -> Result:
        env = {name: None for name in os.environ} | self.env
        argv = ["--cwd", str(self.project), "sessions", *arguments]
        return CliRunner().invoke(cli, argv, env=env, standalone_mode=False)

    def shown(self, session: str) -> str:
        """Return the output of `show`, which needs a real standard output."""
        argv = PREPARED.argv("--cwd", str(self.project), "sessions", "show", session, env=self.env)
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def folder(self, project: Path | None = None) -> Path:
        return Locations.find(project or self.project, {"PANPAN_HOME": str(self.home)}).sessions_folder

    def session(self, session_id: str, *prompts: str, title: str = "", project: Path | None = None) -> Path:
        log = SessionLog(
            self.folder(project) / f"{session_id}.jsonl", session_id=session_id, cwd=project or self.project
        )
        for prompt in prompts:
            log.append(record_of(UserMessage.of(prompt)))
            log.append(record_of(AssistantMessage(content=(TextBlock(text=f"answer to {prompt}"),), model="m")))
        if title:
            log.append(TitleRecord(summary=title).as_json())
        log.close()
        return log.path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def error_of(result: Result) -> str:
    assert isinstance(result.exception, ConfigError), result.output
    return str(result.exception)


def test_sessions_without_a_command_lists(place: Place) -> None:
    place.session("01a", "hello")

    alone, listed = place.run(), place.run("list")

    assert alone.stdout == listed.stdout
    assert "01a" in alone.stdout
    assert json.loads(place.run("--json").stdout) == json.loads(place.run("list", "--json").stdout)


def test_sessions_help_names_every_command(place: Place) -> None:
    help_ = place.run("--help").stdout

    for name in ("archive", "doctor", "export", "import", "list", "search", "show"):
        assert f"\n  {name} " in help_
        assert "Usage" in place.run(name, "--help").stdout


# search


def test_search_shows_session_and_excerpt(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    place.session("01a", "why does the parser fail?", "thanks")
    place.session("01b", "about the weather")
    place.session("01c", "the parser again", project=other)

    found, every = place.run("search", "parser", "fail"), place.run("search", "parser", "--all")

    head, hit = found.stdout.splitlines()
    assert head.startswith("01a  ")
    assert hit == "    2 messages: why does the parser fail?"
    assert {line.split()[0] for line in every.stdout.splitlines() if line.startswith("01")} == {"01a", "01c"}
    assert f"    {other}" in every.stdout.splitlines()


def test_search_without_a_hit_says_so(place: Place) -> None:
    place.session("01a", "hello")

    result = place.run("search", "nowhere")

    assert (result.return_value, result.stdout) == (0, "")
    assert "no session says nowhere; --all looks" in result.stderr
    assert "no letter or digit" in error_of(place.run("search", "!!"))


def test_search_json_has_id_excerpt_and_path(place: Place) -> None:
    path = place.session("01a", "why does the parser fail?")

    (found,) = json.loads(place.run("search", "pars", "--json").stdout)["sessions"]

    assert (found["id"], found["messages"], found["path"]) == ("01a", 2, str(path))
    assert found["excerpt"] == "why does the parser fail?"


def test_search_rows_fit_the_terminal(place: Place) -> None:
    place.session("01a", "long " * 50 + "needle " + "more " * 50)

    head, hit = place.run("search", "needle").stdout.splitlines()

    assert (len(head), len(hit)) == (80, 80)
    assert "needle" in hit


def test_search_escapes_control_characters(place: Place) -> None:
    place.session("01a", "the \x1b[2Jneedle\u202e", title="x\x1b]0;evil\x07")

    shown = place.run("search", "needle").stdout

    assert all(line.isprintable() for line in shown.splitlines())


# show and export


def test_show_prints_the_session_without_secrets(place: Place) -> None:
    place.session("01a", "what is this?", f"the key is {KEY} and correct-horse-battery", title="My title")

    shown = place.shown("my title")

    assert shown.startswith("My title\nSession: 01a\n")
    assert "answer to what is this?" in shown
    assert KEY not in shown
    assert "correct-horse-battery" not in shown
    assert json.loads(place.run("show", "01a", "--json").stdout)["title"] == "My title"


def test_show_marks_compactions(place: Place) -> None:
    path = place.session("01a", "what is this?", "and that?")
    records = list(read_records(path))
    log = SessionLog(path, session_id="01a", cwd=place.project)
    log.parent_uuid = records[-1]["uuid"]
    log.append(CompactionRecord.of(Compaction("manual", records[1]["uuid"], tokens_before=9, tokens_after=5)).as_json())
    log.close()

    shown = place.shown("01a")

    marked = "… conversation compacted, as you wanted: about 9 → 5 tokens"
    assert shown.index("answer to what is this?") < shown.index(marked) < shown.index("and that?")


def test_show_escapes_control_characters_behind_a_pipe(place: Place) -> None:
    place.session("01a", "\x1b[2Jhello \x1b]0;owned\x07", title="\x9b31mtitle")

    assert "\x1b" not in place.shown("01a")
    assert "\x9b" not in place.shown("01a")


@pytest.mark.parametrize(
    ("name", "format_", "beginning"),
    [
        ("a.md", None, "# hello"),
        ("a.html", None, "<!DOCTYPE html>"),
        ("a.json", None, '{\n  "format": "panpan-session"'),
        ("a.jsonl", None, '{"parentUuid":null'),
        ("a.txt", "markdown", "# hello"),
        ("a", "claude", '{"parentUuid":null'),
    ],
)
def test_export_writes_a_new_file_in_its_format(
    place: Place, tmp_path: Path, name: str, format_: str | None, beginning: str
) -> None:
    place.session("01a", "hello")
    options = ["--format", format_] if format_ else []

    result = place.run("export", "01a", str(tmp_path / name), *options)

    path = tmp_path / (name if name != "a" else "a.jsonl")
    assert result.exception is None, result.exception
    assert path.read_text().startswith(beginning)
    assert "exists already" in error_of(place.run("export", "01a", str(path), *options))


def test_export_without_a_file_prints_the_session(place: Place) -> None:
    place.session("01a", "hello")

    assert place.run("export", "01a").stdout.startswith("# hello")
    assert json.loads(place.run("export", "01a", "--format", "json").stdout)["sessionId"] == "01a"


# import


def test_import_makes_a_session_of_a_transcript(place: Place, tmp_path: Path) -> None:
    claude = ClaudeTranscript()
    claude.user("greetings")
    claude.assistant("msg_1", text("hello there"), stop="end_turn")
    claude.user("aside", isSidechain=True)
    claude.bare({"type": "custom-title", "customTitle": "imported one"})
    path = claude.written(tmp_path / "t.jsonl")
    before = path.read_bytes()

    result = place.run("import", str(path))

    (log,) = place.folder().iterdir()
    assert result.stdout == f"{log.stem}: 2 messages; go on with: panpan -r {log.stem}\n"
    assert "left out: 1 records of subagents" in result.stderr
    assert "hello there" in place.shown("imported one")
    assert path.read_bytes() == before


def test_import_reads_what_export_wrote(place: Place, tmp_path: Path) -> None:
    place.session("01a", "hello", title="the title")
    for name in ("a.json", "a.jsonl"):
        place.run("export", "01a", str(tmp_path / name))

        result = place.run("import", str(tmp_path / name))

        assert ": 2 messages; " in result.stdout, result.exception
        new = result.stdout.split(":")[0]
        assert "the title" in place.shown(new)
        assert "answer to hello" in place.shown(new)


def test_import_of_another_file_leaves_nothing(place: Place, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("hello")

    assert "is not a transcript" in error_of(place.run("import", str(tmp_path / "t.txt")))
    assert not place.folder().exists()


# doctor


def test_doctor_is_silent_about_sound_sessions(place: Place) -> None:
    place.session("01a", "hello")

    result = place.run("doctor")

    assert (result.return_value, result.stdout) == (0, "")
    assert "checked 1, 0 with" in result.stderr


def test_doctor_repairs_damage_in_a_copy(place: Place) -> None:
    path = place.session("01a", "hello")
    with path.open("ab") as file:
        file.write(b"garbage\n")
    before = path.read_bytes()

    told = place.run("doctor", "01a")
    repaired = place.run("doctor", "01a", "--repair", "--json")

    assert told.return_value == 1
    assert "damaged lines: a line that is not a record (3)" in told.stdout
    assert "--repair writes a copy" in told.stdout
    (found,) = json.loads(repaired.stdout)["sessions"]
    assert [finding["kind"] for finding in found["findings"]] == ["damaged lines"]
    assert place.run("doctor", *found["copies"]).return_value == 0
    assert path.read_bytes() == before


KILLED_AT_WORK = """
import os, signal, sys
from pathlib import Path
from panpan.session.log.recorder import write_whole_log

def records():
    yield {"type": "system", "subtype": "title", "title": "half", "uuid": "1"}
    os.kill(os.getpid(), signal.SIGKILL)

write_whole_log(Path(sys.argv[1]), records(), cwd=Path("/"))
"""


def test_doctor_names_unfinished_files_and_their_removal(place: Place) -> None:
    place.session("01a", "hello")
    done = subprocess.run([sys.executable, "-c", KILLED_AT_WORK, str(place.folder())], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = place.folder().glob("*.unfinished")

    result = place.run("doctor")

    assert result.return_value == 1
    assert f"Remove with: rm {left}" in result.stdout
    assert json.loads(place.run("doctor", "--json").stdout)["unfinished"] == [str(left)]
    assert json.loads(place.run("doctor", "--all", "--json").stdout)["unfinished"] == [str(left)]
    assert place.run("doctor", "01a").return_value == 0
    left.unlink()
    assert place.run("doctor").return_value == 0


def test_doctor_ignores_a_log_being_written(place: Place) -> None:
    place.session("01a", "hello")
    results = []

    def records() -> Iterator[Mapping[str, Any]]:
        yield TitleRecord(summary="half").as_json()
        results.append((len(list(place.folder().glob("*.unfinished"))), place.run("doctor")))

    write_whole_log(place.folder(), records(), cwd=place.project)

    ((files, result),) = results
    assert (files, result.return_value, result.stdout) == (1, 0, "")


def test_doctor_reports_each_session_it_cannot_repair(place: Place) -> None:
    for name in ("01a", "01b"):
        with place.session(name, "hello").open("ab") as file:
            file.write(b"garbage\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))  # fails writes as a full disk does
    try:
        result = place.run("doctor", "--repair")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert result.return_value == 1
    assert result.stdout.count("not mended: File too large; the new session") == 2
    assert "in memory" not in result.stdout
    assert sorted(path.stem for path in place.folder().iterdir()) == ["01a", "01b"]


# archive


def test_archive_hides_a_session_until_it_is_restored(place: Place) -> None:
    path = place.session("01a", "hello needle")
    content = path.read_bytes()

    place.run("archive", "01a")

    assert place.run("list").stdout == ""
    assert place.run("search", "needle").stdout == ""
    assert "archive --restore 01a" in error_of(place.run("archive", "01a"))
    assert "01a" in place.run("list", "--archived").stdout
    assert "01a" in place.run("search", "needle", "--archived").stdout
    assert "hello needle" in place.shown("01a")
    assert place.run("archive", "--restore", "01").stdout == "01a is back: panpan -r 01a\n"
    assert path.read_bytes() == content


def test_archive_refuses_an_open_session(place: Place) -> None:
    path = place.session("01a", "hello")
    log = SessionLog(path, session_id="01a", cwd=place.project)
    try:
        assert "01a is open in a panpan" in error_of(place.run("archive", "01a"))
    finally:
        log.close()
    assert path.exists()


def test_archive_restores_archived_sessions_only(place: Place) -> None:
    place.session("01a", "hello")

    assert "no archived session" in error_of(place.run("archive", "--restore", "01a"))


@pytest.mark.parametrize("command", ["show", "export", "archive"])
def test_unknown_session_is_an_error(place: Place, command: str) -> None:
    result = place.run(command, "nothing-like-it")

    assert isinstance(result.exception, SessionError)
    assert "there is no session" in str(result.exception)


@pytest.mark.parametrize("make", [lambda place: place.session("01a", "one two"), lambda place: None])
def test_reading_commands_change_no_session_and_no_project(place: Place, make: Callable[[Place], object]) -> None:
    make(place)
    before = {path: path.read_bytes() for path in place.folder().glob("*")}

    for arguments in (["list"], ["search", "one"], ["show", "01a"], ["export", "01a"], ["doctor"]):
        place.run(*arguments)

    assert {path: path.read_bytes() for path in place.folder().glob("*")} == before
    assert [path.name for path in place.project.iterdir()] == [".git"]
