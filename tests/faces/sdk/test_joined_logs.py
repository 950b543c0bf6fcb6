"""The mirror of logs, and the way back from a store: both places have every record once, whoever was behind."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.config.locations import Locations
from panpan.errors import SessionError
from panpan.faces.sdk.mirror import Mirror, StoreFolder, project_key
from panpan.session.log.session_log import SessionLog, read_records

SESSION = "11111111-2222-4333-8444-555555555555"
AGENT = f"{SESSION}/subagents/agent-0123abcd.jsonl"
PLACES = (f"{SESSION}.jsonl", AGENT)


def record(number: int) -> dict[str, Any]:
    return {"type": "user", "uuid": f"record-{number}", "message": {"role": "user", "content": f"{number} \ud83d"}}


class Machine:
    """A panpan home, and the folder in which the SDK puts what its store has."""

    def __init__(self, folder: Path) -> None:
        (folder / "work").mkdir()
        self.locations = Locations(folder / "home", folder / "work")
        self.config = folder / "config"
        self.env = {"CLAUDE_CONFIG_DIR": str(self.config)}
        self.key = project_key(folder / "work", self.env)
        self.entries: dict[str, list[Mapping[str, Any]]] = {place: [] for place in PLACES}
        """Records that the store has, by their places."""
        self.notes: list[str] = []

    def log(self, place: str) -> Path:
        return self.locations.sessions_folder / place

    def write(self, place: str, numbers: Sequence[int]) -> None:
        """Add records to a log, and to nothing else."""
        log = SessionLog(self.log(place), session_id=SESSION, cwd=self.locations.project_root)
        for number in numbers:
            log.append(record(number))
        log.close()

    def take(self, line: Mapping[str, Any]) -> None:
        place = str(Path(line["filePath"]).relative_to(self.config / "projects" / self.key))
        self.entries[place] += json.loads(json.dumps(line["entries"]))

    def resume(self) -> None:
        """Go on with the session from the store, say one thing more, and let the store have it."""
        for place, entries in self.entries.items():
            file = self.config / "projects" / self.key / place
            file.parent.mkdir(parents=True, exist_ok=True)
            if entries:
                file.write_text("".join(json.dumps(entry, sort_keys=True) + "\n" for entry in entries))
        store = StoreFolder.of(self.locations.project_root, self.env, SESSION)
        store.bring_in(self.locations, self.notes.append)
        log = SessionLog(self.log(PLACES[0]), session_id=SESSION, cwd=self.locations.project_root)
        Mirror(self.take, store.path).follow(log)
        log.append(record(-1))
        log.close()

    def ids(self, place: str) -> list[str]:
        return [one["uuid"] for one in read_records(self.log(place))] if self.log(place).exists() else []

    def stored(self, place: str) -> list[str]:
        return [str(one["uuid"]) for one in self.entries[place]]


counts = st.integers(0, 6)


@settings(max_examples=40, deadline=None)
@given(
    common=st.integers(1, 5), here=counts, stored=counts, agent_here=counts, agent_stored=counts, twice=st.booleans()
)
def test_both_places_have_every_record_once(
    common: int, here: int, stored: int, agent_here: int, agent_stored: int, twice: bool
) -> None:
    with TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        for place, own, others in ((PLACES[0], here, stored), (AGENT, agent_here, agent_stored)):
            machine.write(place, range(common))
            machine.entries[place] = list(read_records(machine.log(place)))
            machine.write(place, range(100, 100 + own))
            base = {**machine.entries[place][0]}
            machine.entries[place] += [{**base, **record(number)} for number in range(200, 200 + others)]
        if twice:  # a store may have a batch twice
            machine.entries[AGENT] += machine.entries[AGENT][:2]
        before = {place: machine.ids(place) for place in PLACES}
        wanted = {place: {*machine.ids(place), *machine.stored(place)} for place in PLACES}

        machine.resume()

        for place in PLACES:
            extra = {"record--1"} if place == PLACES[0] else set()
            assert set(machine.ids(place)) == set(machine.stored(place)) == wanted[place] | extra
            assert len(machine.ids(place)) == len(set(machine.ids(place)))
            assert machine.ids(place)[: len(before[place])] == before[place]
        assert len(machine.stored(PLACES[0])) == len(set(machine.stored(PLACES[0])))
        assert machine.stored(PLACES[0])[-1] == "record--1"
        assert bool(machine.notes) == bool(here and stored)


def test_empty_home_gets_the_records_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first, second = Machine(tmp_path / "one"), Machine(tmp_path / "two")
    for place in PLACES:
        first.write(place, range(3))
        second.entries[place] = list(read_records(first.log(place)))
    second.resume()

    assert list(read_records(second.log(PLACES[0])))[:3] == list(read_records(first.log(PLACES[0])))
    assert list(read_records(second.log(AGENT))) == list(read_records(first.log(AGENT)))


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write(PLACES[0], range(2))
    machine.entries[PLACES[0]] = list(read_records(machine.log(PLACES[0])))
    odd = machine.config / "projects" / machine.key / SESSION / "subagents" / "agent-..%2fx.jsonl"
    odd.parent.mkdir(parents=True)
    odd.write_text(json.dumps({**machine.entries[PLACES[0]][0], "uuid": "x"}) + "\n")
    machine.resume()

    assert not list(machine.locations.sessions_folder.rglob("agent-*"))


@pytest.mark.parametrize("content", ["", "nonsense\n", '{"type":"user","uuid":"a"}\n', '{"type":"tag","tag":"x"}\n'])
def test_store_without_a_record_of_panpan_is_refused(tmp_path: Path, content: str) -> None:
    machine = Machine(tmp_path)
    folder = machine.config / "projects" / machine.key
    folder.mkdir(parents=True)
    (folder / PLACES[0]).write_text(content)

    with pytest.raises(SessionError, match="was not written by panpan"):
        machine.resume()
    assert not machine.log(PLACES[0]).exists()


@pytest.mark.parametrize("resume", [None, "../x", "a title", SESSION.upper()])
def test_store_folder_needs_a_session_of_the_sdk(tmp_path: Path, resume: str | None) -> None:
    machine = Machine(tmp_path)

    assert StoreFolder.of(tmp_path, machine.env, resume).session_id is None
    assert StoreFolder.of(tmp_path, {}, SESSION).path.parent == Path.home() / ".claude" / "projects"


def test_large_logs_are_told_in_several_lines(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    lines: list[Mapping[str, Any]] = []
    machine.write(PLACES[0], range(5_000))
    log = SessionLog(machine.log(PLACES[0]), session_id=SESSION, cwd=tmp_path)
    Mirror(lines.append, tmp_path / "store").follow(log)
    log.close()

    assert [one["uuid"] for line in lines for one in line["entries"]] == machine.ids(PLACES[0])
    assert max(len(json.dumps(line)) for line in lines) < 1_000_000
