"""Overview of a campaign, for `status` and for the line of `run`.

The rule: it is read from `results.jsonl`, `state/running.json` and `state/campaign.json` alone, without checking, and
this module imports little: ten thousand results are told in a moment, also on a machine that only sees the folder.
"""

import os
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from pydantic_core import from_json

from panpan.batch.store.wording import STARTS, attempt_label, batch_command, duration, shortened, typed, value_text
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

Fields: TypeAlias = Mapping[str, Any]

STATUSES = ("passed", "failed", "done", "error", "cancelled")

_SILENT_S = 30.0
"""Seconds without a word of another machine after which its run may be lost; it writes at least each ten."""
_MAX_ERRORS = 3
"""Most errors whose reasons are told; the report has all."""


def read_fields(path: Path) -> Fields | None:
    """Return the JSON object in a file; None if there is no file, or none that can be read."""
    try:
        found = from_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class AttemptNow:
    """An attempt that runs or waits, or ended with an error."""

    label: str
    """Its name as it is shown."""
    word: str
    """Its name for a command line."""
    text: str
    """The host and the time that it has run, the question, or the error."""


class ResultCounts:
    """Counts of the results in an index, which only grows.

    Args:
        path: The index, `results.jsonl`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._forget()

    def _forget(self) -> None:
        self._offset, self._inode = 0, -1
        self._seen: set[tuple[Any, Any]] = set()
        self.by_status: Counter[str] = Counter()
        self.by_axis: dict[str, dict[str, Counter[str]]] = {}
        """Number of results by axis, its value, and the status."""
        self.errors: list[AttemptNow] = []
        """The first attempts that ended with an error for a reason that no other had, as few as a screen holds."""
        self._usd: float | None = 0.0
        self._tokens, self._seconds, self._gpu_seconds = 0, 0.0, 0.0

    def update(self) -> None:
        """Count the lines that have come."""
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._inode or status.st_size < self._offset:
                self._forget()  # it was made again
                self._inode = status.st_ino
            file.seek(self._offset)
            data = file.read()
            whole = data.rfind(b"\n") + 1  # the rest is being written
            self._offset += whole
            for line in data[:whole].split(b"\n"):
                with suppress(ValueError, KeyError, TypeError, AttributeError):  # the end of a line that was cut off
                    if line:
                        self._count(from_json(line))

    def _count(self, fields: Fields) -> None:
        key, status = (fields["task_id"], fields["attempt"]), fields["status"]
        if key in self._seen:
            return
        self._seen.add(key)
        self.by_status[status] += 1
        for axis, value in fields["axes"].items():
            self.by_axis.setdefault(axis, {}).setdefault(value_text(value), Counter())[status] += 1
        if status == "error" and len(self.errors) < _MAX_ERRORS:
            self._note_error(fields)
        spent = fields["spent"]
        self._usd = None if self._usd is None or spent["usd"] is None else self._usd + spent["usd"]
        self._tokens += spent["tokens"]
        self._seconds += spent["seconds"]
        self._gpu_seconds += spent["gpu_seconds"]

    def _note_error(self, fields: Fields) -> None:
        text = shortened(fields["message"]) or "no message"
        if text not in (one.text for one in self.errors):
            self.errors.append(_attempt(fields, text))

    def __contains__(self, attempt: Fields) -> bool:
        """True if an attempt has a result; its other record may be a second older."""
        return (attempt["task_id"], attempt["attempt"]) in self._seen

    @property
    def spent(self) -> Fields:
        """Money, tokens and time of all results, by the names of `Spent`."""
        names = ("usd", "tokens", "seconds", "gpu_seconds")
        return dict(zip(names, (self._usd, self._tokens, self._seconds, self._gpu_seconds), strict=True))


@dataclass(frozen=True, slots=True)
class Overview:
    """A campaign at a moment."""

    folder: Path
    life: str
    """`new`, `running`, `stopped` or `done`; or `silent`, if another machine ran it and may have died."""
    where: str
    """Host and process that run it, or ran it last; empty before the first run."""
    note: str
    """Reason that no attempt begins now; empty if all is well."""
    total: int
    """Attempts in all."""
    counts: ResultCounts
    axes: Fields
    """The axes of the campaign with their values."""
    budget: Fields
    reserved_usd: float
    """US dollars that attempts without a result may have spent, or may still spend."""
    running: Sequence[AttemptNow]
    waiting: Sequence[AttemptNow]
    hosts_out: Mapping[str, str]
    """Reasons, by host."""
    per_hour: float | None
    """Attempts that end in an hour."""
    seconds_left: float | None

    @property
    def ended(self) -> int:
        """Attempts with a result."""
        return sum(self.counts.by_status.values())

    @property
    def to_do(self) -> int:
        """Attempts that nobody has begun or that go on later."""
        return max(self.total - self.ended - len(self.running) - len(self.waiting), 0)

    @property
    def by_axis(self) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
        """Results by axis, its value and the status, in the order of the campaign."""
        found = self.counts.by_axis
        order = {axis: list(map(value_text, values)) for axis, values in self.axes.items()}
        return {
            axis: {v: found[axis][v] for v in values if v in found[axis]}
            for axis, values in order.items()
            if axis in found
        }

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "folder": str(self.folder),
            "state": self.life,
            "where": self.where,
            "note": self.note,
            "attempts": self.total,
            "ended": self.ended,
            "by_status": dict(self.counts.by_status),
            "by_axis": self.by_axis,
            "errors": [asdict(one) for one in self.counts.errors],
            "running": [asdict(one) for one in self.running],
            "waiting": [asdict(one) for one in self.waiting],
            "to_do": self.to_do,
            "hosts_out": dict(self.hosts_out),
            "spent": dict(self.counts.spent),
            "budget": dict(self.budget),
            "reserved_usd": self.reserved_usd,
            "per_hour": self.per_hour,
            "seconds_left": self.seconds_left,
        }


class Looker:
    """Looks at a campaign again and again.

    Args:
        folder: The campaign's folder, canonical.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counts = ResultCounts(folder / "results.jsonl")

    def look(self) -> Overview:
        """Return the campaign as it is now.

        Raises:
            ConfigError: It has not begun, or cannot be read.
        """
        try:
            return self._look()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{self._folder / 'state'} is damaged; the files in it must stay as panpan wrote them"
            ) from error

    def _look(self) -> Overview:
        state = self._folder / "state"
        frozen = read_fields(state / "campaign.json")
        if frozen is None:
            raise ConfigError(
                f"no campaign has begun in {self._folder}; begin it: {batch_command('run', self._folder)}"
            )
        now = read_fields(state / "running.json") or {}
        self._counts.update()
        campaign = frozen["campaign"]
        total = frozen["tasks"] * campaign["attempts"]
        life = "done" if sum(self._counts.by_status.values()) >= total else _life(now, state / "running.json")
        is_alive = life in ("running", "silent")
        running = [one for one in now["running"] if one not in self._counts] if is_alive else []
        waiting = [one for one in now.get("waiting", ()) if one not in self._counts and not self._goes_on(one)]
        age_s = _age_s(state / "running.json") if life == "running" else 0.0
        return Overview(
            folder=self._folder,
            life=life,
            where=f"{now['host']}, process {now['pid']}" if now else "",
            note=now["note"] if is_alive else "",
            total=total,
            counts=self._counts,
            axes=campaign["axes"],
            budget={name: limit for name, limit in campaign["budget"].items() if limit is not None},
            reserved_usd=now.get("reserved", {}).get("usd") or 0.0,
            running=[_attempt(one, _run_words(one, age_s)) for one in running],
            waiting=[_attempt(one, f"{one['kind']}: {clean_line(one['text'])}") for one in waiting],
            hosts_out=_hosts_out(now["hosts"]) if is_alive else {},
            per_hour=now["rates"]["attempts"] or None if is_alive else None,
            seconds_left=now["seconds_left"] if is_alive else None,
        )

    def _goes_on(self, attempt: Fields) -> bool:
        """True if an attempt that waited has been answered or cancelled since, as `AttemptFolder.is_waiting` says."""
        path: Path = self._folder / "state" / attempt["task_id"] / f"attempt-{attempt['attempt']}"
        return (path / "answer.json").exists() or (path / "cancel").exists()


def _life(now: Fields, path: Path) -> str:
    """Return if the campaign runs, as far as a look can tell."""
    if not now:
        return "new"
    if now["ended"]:
        return "stopped"
    if now["host"] == socket.gethostname():
        with suppress(PermissionError):  # it is another user's
            try:
                os.kill(now["pid"], 0)
            except ProcessLookupError:
                return "stopped"
        return "running"
    # the file's time is that of a server, so this is a hint for a reader and decides nothing
    return "running" if _age_s(path) < _SILENT_S else "silent"


def _attempt(one: Fields, text: str) -> AttemptNow:
    label = attempt_label(one["task"], one["axes"], one["attempt"])
    return AttemptNow(clean_line(label), typed(label, one["task_id"], one["attempt"]), text)


def _hosts_out(hosts: Sequence[Fields]) -> Mapping[str, str]:
    return {one["name"]: one["problem"] for one in hosts if one["problem"] not in ("", STARTS)}


def _run_words(one: Fields, age_s: float) -> str:
    took = duration(one["seconds"] + age_s)
    return f"on {clean_line(one['host'])}, {took}" if one["host"] else took


def _age_s(path: Path) -> float:
    """Return the seconds since a file was written, as far as the clocks of the machines agree."""
    return max(time.time() - path.stat().st_mtime, 0.0)
