"""The machines of `[where] on`, and the file with hosts for ssh.

# one host a line
gpu1.example.org slots=4 gpus=0,1
me@gpu2 python=/opt/panpan/bin/python
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from panpan.errors import ConfigError
from panpan.types.dataclass import dataclass

_MOST_HOSTS = 10_000
_MOST_SLOTS = 1_000
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?[A-Za-z0-9_][A-Za-z0-9_.:-]*")
"""A name or address, with a user or without: nothing that ssh could take for an option."""
_ADDRESS = re.compile(r"(?:tcp|tls)://[^\s/@]+:\d{1,5}")


@dataclass(frozen=True, slots=True)
class SshHost:
    """A line of the file."""

    name: str
    slots: int
    gpus: tuple[str, ...] | None
    """Numbers; None: those that the host has."""
    python: str
    """The Python there that has panpan."""


@dataclass(frozen=True, slots=True)
class LocalWorkers:
    """`local:N`: N workers on this machine."""

    count: int


@dataclass(frozen=True, slots=True)
class SshWorkers:
    """`ssh:FILE`: a worker on each host."""

    hosts: Sequence[SshHost]


@dataclass(frozen=True, slots=True)
class SlurmWorkers:
    """`slurm`: a worker in each job."""


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """The address of a scheduler that the user has started, with its workers."""

    address: str


Machines = LocalWorkers | SshWorkers | SlurmWorkers | SchedulerAddress


def parse_machines(on: str, folder: Path, at_once: int) -> Machines:
    """Return the machines of `[where] on`.

    Args:
        on: `local:N`, `ssh:FILE`, `slurm` or an address.
        folder: The campaign's folder, which the path of a file is relative to.
        at_once: Slots of a host whose line names none.

    Raises:
        ConfigError: It is none of these, or the file is wrong.
    """
    kind, _, rest = on.partition(":")
    if on == "slurm":
        return SlurmWorkers()
    if kind == "local" and rest.isascii() and rest.isdigit() and 1 <= int(rest) <= _MOST_SLOTS:
        return LocalWorkers(int(rest))
    if kind == "ssh" and rest:
        return SshWorkers(read_hosts(folder / rest, at_once))
    if _ADDRESS.fullmatch(on):
        return SchedulerAddress(on)
    raise ConfigError(
        f"there are no machines {on!r}; use local:N, ssh:FILE with a host on each line, slurm, "
        "or the address of a Dask scheduler, such as tls://host:8786"
    )


def read_hosts(path: Path, at_once: int) -> Sequence[SshHost]:
    """Return the hosts of a file.

    Raises:
        ConfigError: It cannot be read, or a line is wrong; the error names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"the hosts in {path} cannot be read: {reason}; correct the path or the file") from error
    hosts: dict[str, SshHost] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            host = _host(words, at_once)
        except ValueError as error:
            raise ConfigError(f"{path}, line {number}: {error}") from error
        if host.name in hosts:
            raise ConfigError(f"{path}, line {number}: {host.name} is there twice; use slots=2")
        hosts[host.name] = host
    if not 1 <= len(hosts) <= _MOST_HOSTS:
        raise ConfigError(f"{path} has {len(hosts):,} hosts; write one on each line, at most {_MOST_HOSTS:,}")
    return tuple(hosts.values())


def _host(words: Sequence[str], at_once: int) -> SshHost:
    name, *options = words
    if not _HOST.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a host; write it as for ssh, such as gpu1 or me@gpu1")
    slots, gpus, python = at_once, None, sys.executable
    for option in options:
        key, _, value = option.partition("=")
        if key == "slots" and value.isascii() and value.isdigit() and 1 <= int(value) <= _MOST_SLOTS:
            slots = int(value)
        elif key == "gpus" and re.fullmatch(r"\d{1,3}(,\d{1,3})*", value, re.ASCII):
            gpus = tuple(value.split(","))
        elif key == "python" and value.startswith("/"):
            python = value
        else:
            raise ValueError(f"{option!r} is not understood; use slots=4, gpus=0,1 or python=/absolute/path")
    return SshHost(name, slots, gpus, python)
