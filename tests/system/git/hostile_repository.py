"""A git repository whose every helper leaves a trace when it is run."""

import os
import subprocess
from pathlib import Path

from tests.needed_programs import need

IDENTITY = ("-c", "user.name=Tester", "-c", "user.email=tester@example.invalid", "-c", "commit.gpgSign=false")
PLAIN_ENV = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(folder: Path, *arguments: str) -> str:
    """Run git as a user would, with all that the repository names."""
    need("git")
    done = subprocess.run(
        ["git", *IDENTITY, *arguments],
        cwd=folder,
        env=PLAIN_ENV | {"HOME": str(folder)},
        check=True,
        capture_output=True,
    )
    return done.stdout.decode()


class HostileRepository:
    """A repository in `folder` with one commit and one change; `traces` tells which helpers ran."""

    def __init__(self, folder: Path, trace_folder: Path) -> None:
        self.folder = folder
        self._trace_folder = trace_folder
        folder.mkdir()
        trace_folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        (folder / "file.txt").write_text("one\n")
        (folder / "picture.bin").write_text("binary\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "first")
        (folder / "file.txt").write_text("two\n")
        (folder / "picture.bin").write_text("changed\n")

    @property
    def traces(self) -> set[str]:
        """Names of the helpers that ran."""
        return {entry.name for entry in self._trace_folder.iterdir()}

    def helper(self, name: str, answer: str = "cat") -> str:
        """Return a command that leaves the trace `name`, then runs `answer`."""
        return f"touch {self._trace_folder}/{name}; {answer}"

    def helper_script(self, name: str, folder: Path | None = None) -> Path:
        """Return a program that leaves the trace `name`."""
        script = (folder or self._trace_folder.parent) / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\ntouch {self._trace_folder}/{name}\nexit 0\n")
        script.chmod(0o755)
        return script

    def configure(self, key: str, value: str) -> None:
        """Set `key` in the repository's own configuration."""
        git(self.folder, "config", key, value)

    def attributes(self, line: str) -> None:
        """Add a line to the repository's own attributes, which no commit shows."""
        with (self.folder / ".git" / "info" / "attributes").open("a") as file:
            file.write(f"{line}\n")
