import sys
from pathlib import Path

import pytest

from panpan.batch.cluster.hosts import (
    LocalWorkers,
    SchedulerAddress,
    SlurmWorkers,
    SshHost,
    SshWorkers,
    parse_machines,
    read_hosts,
)
from panpan.batch.cluster.security import PACKAGES, require_packages
from panpan.errors import ConfigError
from panpan.system.environment import how_to_install


def hosts_file(folder: Path, text: str) -> Path:
    path = folder / "hosts.txt"
    path.write_text(text)
    return path


def test_hosts_have_slots_gpus_and_python_of_their_own(tmp_path: Path) -> None:
    path = hosts_file(tmp_path, "# all\ngpu1.example.org slots=4 gpus=0,1\n\nme@gpu2 python=/opt/bin/python # new\n")

    assert parse_machines("ssh:hosts.txt", tmp_path, 2) == SshWorkers(
        (
            SshHost("gpu1.example.org", 4, ("0", "1"), sys.executable),
            SshHost("me@gpu2", 2, None, "/opt/bin/python"),
        )
    )
    assert parse_machines(f"ssh:{path}", Path("/"), 2) == parse_machines("ssh:hosts.txt", tmp_path, 2)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-oProxyCommand=touch${IFS}x", "no name of a host"),
        ("me@-oProxyCommand=x", "no name of a host"),
        ("host;reboot", "no name of a host"),
        ("ssh://host", "no name of a host"),
        ("host slots=0", "slots=0"),
        ("host slots=9999", "slots=9999"),
        ("host slots=²", "slots=²"),
        ("host gpus=0;1", "gpus=0;1"),
        ("host python=python3", "python=python3"),
        ("host -v", "-v"),
        ("host\nhost", "line 2: host is there twice"),
        ("# nobody", "has 0 hosts"),
    ],
)
def test_wrong_line_is_refused_with_its_number(tmp_path: Path, line: str, problem: str) -> None:
    path = hosts_file(tmp_path, line)

    with pytest.raises(ConfigError, match="hosts") as caught:
        read_hosts(path, 1)

    assert problem in str(caught.value)
    assert line.startswith("#") or "line " in str(caught.value)


@pytest.mark.parametrize("data", [None, b"\xff\xfe"])
def test_unreadable_hosts_are_an_error(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "hosts.txt").write_bytes(data)

    with pytest.raises(ConfigError, match="cannot be read"):
        parse_machines("ssh:hosts.txt", tmp_path, 1)


def test_machines_are_told_apart_by_their_first_word() -> None:
    found = [parse_machines(on, Path("/"), 2) for on in ("local:3", "slurm", "tls://[::1]:8786")]

    assert found == [LocalWorkers(3), SlurmWorkers(), SchedulerAddress("tls://[::1]:8786")]


@pytest.mark.parametrize(
    "on", ["", "local", "local:0", "local:²", "local:9999", "ssh:", "host:8786", "http://host:1", "tcp://me@host:1"]
)
def test_unknown_machines_are_refused_with_those_that_there_are(on: str) -> None:
    with pytest.raises(ConfigError, match=r"use local:N, ssh:FILE .*, slurm, or the address"):
        parse_machines(on, Path("/"), 2)


def test_missing_extra_names_the_command_that_installs_it() -> None:
    with pytest.raises(ConfigError) as caught:
        require_packages(lambda module: None if module == "dask_jobqueue" else module)

    assert str(caught.value).endswith(how_to_install(*PACKAGES))
