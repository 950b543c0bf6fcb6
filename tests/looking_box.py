"""A throw-away box in which real programs run command lines over a small tree with a git repository.

Every helper that a repository can name is there, and each would leave a file `PWNED` behind.
"""

import bz2
import gzip
import hashlib
import lzma
import os
import shlex
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from panpan.capabilities.shell.bash import read_only_environment
from panpan.shell_analysis.facts import LineFacts
from panpan.system.files.paths import PathResolver

_HELPERS = (
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.alternateRefsCommand", "diff.external",
    "diff.odd.command", "diff.odd.textconv", "filter.odd.clean", "filter.odd.smudge", "filter.odd.process",
    "gpg.program", "credential.helper", "pager.log", "pager.diff", "pager.status", "interactive.diffFilter",
    "merge.odd.driver", "alias.status", "alias.lg", "diff.tool", "trace2.eventTarget",
)  # fmt: skip

_ZSTD = bytes.fromhex("28b52ffd005819000068690a")
"""A line in a file of zstd (RFC 8878)."""
_NOT_FOUND = 127
"""Exit code of bash for a program that is missing."""
_PATH = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
"""With what is installed beside Python, such as ripgrep."""

# What a line's programs had started ends a moment after them, and the first process of the box has to collect it.
_UNTIL_NO_MORE_PROCESSES = """all=(/proc/[0-9]*)
settle() {
    for try in {1..2000}; do
        now=(/proc/[0-9]*)
        [ ${#now[@]} -le ${#all[@]} ] && return
        sleep 0.01
    done
}
"""


class LookingBox:
    """Runs lines that only look, as the Bash tool would, and says what they changed.

    Args:
        folder: An empty folder, which becomes the one place that can be written.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self._folder = folder
        self._home = folder / "home"
        self._variables: dict[LineFacts | tuple[object, ...], dict[str, str]] = {}
        for path in (self.root / "src", self._home):
            path.mkdir(parents=True)
        (self.root / "a.txt").write_text("b,2\na,1\nfoo\n")
        (self.root / "b.txt").write_text("a,1\nbar\n")
        (self.root / "-n").write_text("odd\n")
        (self.root / "data.json").write_text('{"a": {"b": [1, 2]}}')
        (self.root / "data.bin").write_bytes(bytes(range(256)))
        (self.root / "src/a.py").write_text("foo = 1\n")
        self._make_archives()
        (self.root / "link").symlink_to("a.txt")
        self._make_repository()

    def _make_archives(self) -> None:
        content = (self.root / "a.txt").read_bytes()
        (self.root / "a.gz").write_bytes(gzip.compress(content))
        (self.root / "a.bz2").write_bytes(bz2.compress(content))
        (self.root / "a.xz").write_bytes(lzma.compress(content))
        (self.root / "a.zst").write_bytes(_ZSTD)
        with tarfile.open(self.root / "a.tgz", "w:gz") as archive:
            archive.add(self.root / "src", "src")
        with zipfile.ZipFile(self.root / "a.zip", "w") as packed:
            packed.write(self.root / "a.txt", "a.txt")

    def _make_repository(self) -> None:
        helper = self._folder / "helper"
        helper.write_text(f"#!/bin/sh\necho $0 $* >> {self.root}/PWNED\necho $0 $* >> {self._home}/PWNED\ncat\n")
        helper.chmod(0o755)
        self._git("init", "--initial-branch=main")
        self._git("remote", "add", "origin", "https://example.invalid/x.git")
        self._git("add", "a.txt", "b.txt", "src")
        self._git("commit", "--message=one")
        self._git("tag", "v1")
        (self.root / "b.txt").write_text("a,2\n")
        self._git("stash")
        (self.root / "a.txt").write_text("b,3\nfoo\n")
        self._git("commit", "--all", "--message=two")
        (self.root / "a.txt").write_text("b,2\na,1\nfoo\n")
        for hook in ("post-index-change", "pre-auto-gc", "reference-transaction", "fsmonitor-watchman"):
            path = self.root / ".git/hooks" / hook
            path.parent.mkdir(exist_ok=True)
            path.write_text(helper.read_text())
            path.chmod(0o755)
        for key in _HELPERS:
            self._git("config", key, str(helper))
        self._git("config", "log.showSignature", "true")
        (self.root / ".git/info").mkdir(exist_ok=True)
        (self.root / ".git/info/attributes").write_text("* diff=odd filter=odd merge=odd\n")
        # An index that does not know the times of the files: whoever may would refresh it.
        os.utime(self.root / "b.txt", (1, 1))

    def _git(self, *args: str) -> None:
        variables = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
        who = {
            f"GIT_{role}_{what}": "x@example.invalid" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        subprocess.run(["git", *args], cwd=self.root, env=variables | who, check=True, capture_output=True)

    def run(self, lines: Sequence[tuple[str, LineFacts]]) -> list[int]:
        """Run lines one after the other, and return their exit codes.

        Raises:
            AssertionError: A line named a program that is not here, so that nothing of it was seen, or left a process
                behind that did not end by itself.
        """
        script = _UNTIL_NO_MORE_PROCESSES
        for line, facts in lines:
            words = [f"{name}={value}" for name, value in self._environment(facts).items()]
            command = shlex.join(["env", "-i", *words, "timeout", "10", "/bin/bash", "-c", line])
            script += f'{command} </dev/null >/dev/null 2>&1; code=$?; settle; echo "$code ${{#now[@]}}"\n'
        ran = subprocess.run(
            [*self._box(), "/bin/bash", "-s"],
            check=True, timeout=100, capture_output=True, text=True, input=f'{script}echo "${{#all[@]}}"\n',
        )  # fmt: skip
        *ended, processes = ran.stdout.splitlines()
        codes = [int(report.split()[0]) for report in ended]
        for (line, _), code, report in zip(lines, codes, ended, strict=True):
            assert report.split()[1] == processes, f"{line} left a process"
            assert code != _NOT_FOUND, f"{line} names a program that is not installed"
        return codes

    def missing(self, programs: Sequence[str]) -> set[str]:
        """Return which names the shell finds nothing for; what is a mere launcher counts as missing, too."""
        script = "".join(
            f"timeout 10 /bin/bash -c {shlex.quote(f'{shlex.quote(program)} --version')} </dev/null >/dev/null 2>&1\n"
            f"[ $? = {_NOT_FOUND} ] && printf '%s\\n' {shlex.quote(program)}\n"
            for program in programs
        )
        env = {"PATH": _PATH, "HOME": str(self._home)}
        ran = subprocess.run(
            [*self._box(), "/bin/bash", "-s"], env=env, input=script, capture_output=True, text=True, timeout=100,
            check=False,
        )  # fmt: skip
        return set(ran.stdout.splitlines())

    def _environment(self, facts: LineFacts) -> Mapping[str, str]:
        key = (tuple(facts.git_folders), tuple(facts.needed_environment.items()))
        if key not in self._variables:

            async def environment() -> dict[str, str]:
                base = {"PATH": _PATH, "HOME": str(self._home), "TERM": "dumb", "GIT_PAGER": "cat"}
                return await read_only_environment(facts, base, self.root, PathResolver(self.root.resolve()))

            self._variables[key] = anyio.run(environment)
        return self._variables[key]

    def _box(self) -> list[str]:
        folder = str(self._folder)
        return [
            "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--tmpfs", "/tmp",
            "--bind", folder, folder, "--dev", "/dev", "--proc", "/proc", "--chdir", str(self.root),
        ]  # fmt: skip

    def state(self) -> dict[str, tuple[int, int, str]]:
        """Return mode, time of change and content of all that is there, the repository's index among it."""
        state = {}
        for path in sorted([self._folder, *self._folder.rglob("*")]):
            status = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
            state[str(path.relative_to(self._folder))] = (status.st_mode, status.st_mtime_ns, content)
        return state
