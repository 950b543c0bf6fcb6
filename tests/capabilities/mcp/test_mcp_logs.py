"""Logs of servers: who wrote each line, what is in none, and how large they become."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from panpan.capabilities.mcp.entries import ServerEntry, read_entry
from panpan.capabilities.mcp.logs import MAX_BYTES, LogReader, ServerLog, log_file
from tests.capabilities.mcp.place import Place, call, events_of, search

TOY = read_entry("toy", {"command": "toy"}, {}, "here")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def log_of(folder: Path, entry: ServerEntry = TOY) -> ServerLog:
    return ServerLog(folder / "toy.log", entry)


def lines(folder: Path) -> Sequence[str]:
    """Return the lines of a log without their times."""
    return [line.partition(" ")[2] for line in LogReader(folder / "toy.log").new_lines()]


def test_log_says_when_and_who_wrote_each_line(tmp_path: Path) -> None:
    log = log_of(tmp_path / "logs")

    log.note("starts: toy")
    log.take(b"loading\npanpan: all is well\n")
    log.end("was ended")

    assert lines(tmp_path / "logs") == [
        "panpan: starts: toy",
        "stderr: loading",
        "stderr: panpan: all is well",
        "panpan: was ended",
    ]
    written = (tmp_path / "logs" / "toy.log").read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d ", line) for line in written)


def test_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    log_of(tmp_path / "logs").note("starts: toy")

    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "logs" / "toy.log").stat().st_mode & 0o777 == 0o600


def test_log_has_whole_lines_and_the_last_that_has_no_end(tmp_path: Path) -> None:
    log = log_of(tmp_path)

    log.take("für".encode()[:2])
    before = lines(tmp_path) if (tmp_path / "toy.log").exists() else []
    log.take("für".encode()[2:] + b" alle\nerror: out of")
    log.end("ended with code 1")

    assert before == []
    assert lines(tmp_path) == ["stderr: für alle", "stderr: error: out of", "panpan: ended with code 1"]


@pytest.mark.parametrize("cut", range(1, 30))
def test_values_are_in_no_log_wherever_they_are_torn(tmp_path: Path, cut: int) -> None:
    written = {
        "command": "toy",
        "args": ["${PLACE}"],
        "env": {"TOKEN": "${GIVEN}", "KEY": "sk-1234\nsecond line", "LONGER": "hunter2-long"},
    }
    entry = read_entry("toy", written, {"PLACE": "/secret/place", "GIVEN": "hunter2"}, "here")
    said = b"hunter2-long hunter2 sk-1234 second line /secret/place\n"

    log = log_of(tmp_path, entry)
    log.take(said[:cut])
    log.take(said[cut:])

    assert lines(tmp_path) == ["stderr: ${LONGER} ${GIVEN} ${KEY} ${KEY} ${PLACE}"]


def test_log_drives_no_terminal_and_has_no_forged_line(tmp_path: Path) -> None:
    log_of(tmp_path).take(b"\x1b[31mred\x1b[0m\x07\t1\r 50 %\r100 %\n\xff\n\n")

    assert lines(tmp_path) == ["stderr: red     1", "stderr:  50 %", "stderr: 100 %", "stderr: \ufffd"]


def test_log_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    log, line = log_of(tmp_path), b"x" * 990 + b"\n"

    for number in range(3_000):
        log.take(b"%d " % number + line)
    log.take(b"y" * 5_000_000)
    log.take(b"\n" + b"z\n" * 300_000)

    found = lines(tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= MAX_BYTES
    assert len(list(tmp_path.iterdir())) == 2
    assert found[-1] == "stderr: z"


def test_reader_goes_on_where_it_was_when_the_log_begins_anew(tmp_path: Path) -> None:
    log, reader = log_of(tmp_path), LogReader(tmp_path / "toy.log")
    found: list[str] = []

    for number in range(1_200):
        log.take(b"%d %s\n" % (number, b"x" * 990))
        if number % 7 == 0:
            found += reader.new_lines()
    found += reader.new_lines()

    assert [int(line.split()[2]) for line in found] == list(range(1_200))


def test_log_that_cannot_be_kept_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "toy.log").mkdir()

    ServerLog(tmp_path / "file" / "toy.log", TOY).note("starts: toy")
    log_of(tmp_path).note("starts: toy")
    ServerLog(None, TOY).note("starts: toy")

    assert lines(tmp_path) == []


def test_server_of_a_project_has_a_log_for_it_alone() -> None:
    own, other = (read_entry("db", {"command": "db"}, {}, "here", origin) for origin in ("user", "project"))
    files = {log_file(Path("/logs"), entry, Path(root)) for entry in (own, other) for root in ("/a", "/b")}

    assert len(files) == 3


async def test_session_keeps_what_servers_print_and_how_they_end(place: Place) -> None:
    place.configure()
    async with place.opening(search(), call(message="hi")) as session:
        await events_of(session)
    place.set_state(trap="fails")
    await place.events(call(message="hi"))

    (file,) = (place.home / "mcp" / "logs").iterdir()
    told = [line.partition(" ")[2] for line in file.read_text().splitlines()]

    assert file.name == "toy.log"
    assert [line.partition(": ")[0] for line in told] == ["panpan", "panpan", "panpan", "stderr", "panpan"]
    assert told[0].startswith("panpan: starts: ")
    assert told[1] == "panpan: was ended"
    assert told[3:] == ["stderr: error: no licence", "panpan: ended with code 1: error: no licence"]


async def test_session_keeps_why_a_server_cannot_start(place: Place) -> None:
    place.env["SECRET_PLACE"] = "hunter2-place"
    config = json.dumps({"mcpServers": {"gone": {"command": "/no/${SECRET_PLACE}"}}})

    await place.events(search(), mcp_config=[config])

    said = (place.home / "mcp" / "logs" / "gone.log").read_text()
    assert "panpan: cannot start /no/${SECRET_PLACE}: there is no such program" in said
    assert "hunter2" not in said
