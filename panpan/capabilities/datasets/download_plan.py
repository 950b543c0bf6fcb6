"""Plan of a download: its files, their addresses and their places. The user consents to exactly this.

The rule: a plan is what servers said when it was made. A download keeps to it, and ends if a server says otherwise.
"""

import shlex
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from panpan.capabilities.datasets.settings import DataSettings
from panpan.config.settings import NetworkSettings
from panpan.system.files.archive import UnpackLimits
from panpan.system.text.terminal_text import clean_line, size_text
from panpan.system.web.domain_lists import DomainLists
from panpan.system.web.network import GuardedClient, WebNetwork
from panpan.types.dataclass import dataclass


def time_text(seconds: float) -> str:
    """Return a time in words, such as "3 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


SPARE = 0.1
"""Share of the size that stays free on the disk besides."""
ASSUMED_BYTES_PER_S = 10_000_000
"""Assumed speed for the first estimate of the time."""
_MOST_NAMED = 10
TIMEOUT_S = 60.0
"""Time limit for a server's answer, and between two pieces of a body."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file as a server tells of it."""

    url: str
    path: str
    """Relative to the folder it goes to, with slashes; checked to lie in it."""
    size: int | None
    """Size in bytes; None if the server does not say."""
    validator: str = ""
    """Its strong ETag or the time of its last change, by which a download that goes on knows that it is the same."""
    can_resume: bool = False
    """True if the server sends the rest of it alone."""
    sha256: str = ""
    """SHA-256 of its content in hexadecimal; empty if nobody has stated one."""
    git_sha1: str = ""
    coding: str = ""
    """Content coding that the server applies although it was asked not to; empty if none or an unusual one."""
    redirect_url: str = ""
    """Address that the server sends on to, where that is another."""
    needs_token: bool = False

    @property
    def key(self) -> str:
        """Twelve characters that belong to this content of this address."""
        told = f"{self.url}\n{self.validator}\n{self.size}\n{self.sha256}{self.git_sha1}"
        return sha256(told.encode(errors="replace")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file and its place."""

    remote: RemoteFile
    target: Path
    """Canonical."""
    part: Path
    received_bytes: int
    """Bytes of it that an earlier download has left there."""
    is_there: bool
    """True if the target exists, with the checksum that it should have."""
    unpacked: Path | None = None
    """The folder that it is unpacked into; None: it is not unpacked."""


@dataclass(frozen=True, slots=True)
class DownloadPlan:
    """All of it."""

    source: str
    folder: Path
    """Canonical."""
    folder_label: str
    files: tuple[PlannedFile, ...]
    free_bytes: int
    licence: str
    """Empty: nobody says."""
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Eight characters that belong to exactly this plan."""
        told = [
            f"{self.source}\n{self.folder}\n{bool(self.unpacked)}",
            *(f"{one.remote.key} {one.remote.redirect_url} {one.target}" for one in self.files),
        ]
        return sha256("\n".join(told).encode(errors="replace")).hexdigest()[:8]

    @property
    def wanted(self) -> tuple[PlannedFile, ...]:
        """The files that are not there yet."""
        return tuple(one for one in self.files if not one.is_there)

    @property
    def unpacked(self) -> tuple[Path, ...]:
        """The folders that archives are unpacked into, beside themselves."""
        return tuple(one.unpacked for one in self.files if one.unpacked is not None)

    @property
    def size(self) -> int | None:
        """Bytes of all files together; None where one of them is not known."""
        return _sum([one.remote.size for one in self.files])

    @property
    def left(self) -> int | None:
        """Bytes that are still to come; None where that is not known."""
        sizes = [None if one.remote.size is None else one.remote.size - one.received_bytes for one in self.wanted]
        return _sum(sizes)

    @property
    def needed_bytes(self) -> int | None:
        """Free bytes that the disk has to have: what is to come, and a tenth of it to spare."""
        return None if self.left is None else int(self.left * (1 + SPARE))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Beginnings of the addresses, and of those that servers send on to, each once."""
        urls = [url for one in self.files for url in (one.remote.url, one.remote.redirect_url) if url]
        return tuple(dict.fromkeys("/".join(url.split("/")[:3]) for url in urls))

    @property
    def summary(self) -> str:
        """Files, hosts, and the size if known, such as `42 files from https://HOST (1.2 GB)`."""
        size = "" if self.size is None else f" ({size_text(self.size)})"
        return f"{self._what} from {', '.join(self.hosts)}{size}"

    @property
    def _what(self) -> str:
        return self._name(self.files[0]) if len(self.files) == 1 else f"{len(self.files):,} files"

    def text(self) -> str:
        """Return the plan in words, for the model and for the user who is asked."""
        return "\n".join([f"{clean_line(self.source)} → {self.folder_label}", *self._facts(), *self.notes])

    def line(self) -> str:
        """Return the same on one line, for a question."""
        return "; ".join([f"{self._what} from {', '.join(self.hosts)} into {self.folder_label}", *self._facts()])

    def command(self) -> str:
        """Return a command with which users can download the first file themselves."""
        first = (self.wanted or self.files)[0]
        target = shlex.quote(str(first.target))
        return f"curl -fL -C - --create-dirs -o {target} {shlex.quote(first.remote.url)}"

    def _facts(self) -> list[str]:
        return [*self._files_text(), self._size_text(), self._disk_text(), self._time_text(), *self._others()]

    def _files_text(self) -> list[str]:
        if len(self.files) == 1:
            return []
        named = [self._name(one) for one in self.files[:_MOST_NAMED]]
        more = [f"and {len(self.files) - _MOST_NAMED:,} more"] if len(self.files) > _MOST_NAMED else []
        return [f"files: {', '.join([*named, *more])}"]

    def _name(self, one: PlannedFile) -> str:
        size = "" if one.remote.size is None else f" ({size_text(one.remote.size)})"
        return f"{clean_line(one.remote.path)}{size if len(self.files) > 1 else ''}"

    def _size_text(self) -> str:
        if self.size is None:
            return "size: the server does not say"
        exact = f" ({self.size:,} bytes)" if self.size >= 1000 else ""
        received_bytes = sum(one.received_bytes for one in self.wanted)
        is_there = sum(one.remote.size or 0 for one in self.files if one.is_there)
        parts = [f"{size_text(is_there)} there already"] * bool(is_there)
        parts += [f"goes on behind the {size_text(received_bytes)} that an earlier download left"] * bool(
            received_bytes
        )
        return "; ".join([f"size: {size_text(self.size)}{exact}", *parts])

    def _disk_text(self) -> str:
        needed = "" if self.needed_bytes is None else f", {size_text(self.needed_bytes)} needed with a tenth to spare"
        return f"disk: {size_text(self.free_bytes)} free{needed}"

    def _time_text(self) -> str:
        if self.left is None:
            return "time: not known"
        speed = size_text(ASSUMED_BYTES_PER_S)
        return f"time: about {time_text(self.left / ASSUMED_BYTES_PER_S)} at {speed} a second"

    def _others(self) -> list[str]:
        can_resume = all(one.remote.can_resume for one in self.wanted)
        is_checked = all(one.remote.sha256 or one.remote.git_sha1 for one in self.files)
        coding = self.files[0].remote.coding
        return [
            "can go on after a cut" if can_resume else "begins again after a cut",
            "checksum: known" if is_checked else "checksum: not published; the one of what came is told",
            f"licence: {clean_line(self.licence) or 'not told; look where it is offered'}",
            *(["archives are unpacked"] if self.unpacked else []),
            *([f"its server sends it packed with {coding}, and so it stays"] if coding else []),
            "cost: no money, but the traffic and the space",
        ]


def _sum(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Client, token and limits for downloads of a session."""

    client: GuardedClient
    hub: str
    token: str
    """The user's token for the hub; empty if they have none."""
    max_bytes: int
    unpack_limits: UnpackLimits
    domains: DomainLists
    stricter_rule: Callable[[str, str], str | None]
    """Returns the rule that speaks of an address, the second, and not of another one, the first."""


def load_data_config(
    data: DataSettings,
    web: NetworkSettings,
    env: Mapping[str, str],
    network: WebNetwork,
    user_agent: str,
    stricter_rule: Callable[[str, str], str | None] = lambda _, __: None,
) -> DataConfig:
    """Return client, token and limits for the downloads of a session."""
    most = int(data.max_gb * 10**9)
    return DataConfig(
        client=GuardedClient(network, user_agent=user_agent, own=(data.hub,)),
        hub=data.hub,
        token=env.get(data.hub_token_env, "").strip(),
        max_bytes=most,
        unpack_limits=UnpackLimits(most, data.max_ratio),
        domains=DomainLists.read(web.allowed_domains, web.blocked_domains),
        stricter_rule=stricter_rule,
    )
