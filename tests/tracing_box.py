"""A throw-away box in which real bash runs command lines under strace, and what they did is told.

Beside the workspace lie a home and a folder outside, to which links in the workspace lead.
"""

import hashlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_CALL = re.compile(r"(\w+)\((.*)\)\s+= (?:0|(\d+)(?:<(.*)>)?)$")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WRITING = re.compile(r"O_(?:WRONLY|RDWR|CREAT|TRUNC)")
_TRACED = "execve,execveat,open,openat,openat2,creat,socket"


@dataclass(slots=True)
class Trace:
    """Effects of one line."""

    programs: set[str] = field(default_factory=set)
    """Names of the programs that were started."""
    written: set[str] = field(default_factory=set)
    """Files that were opened to be written, absolute."""
    opened: set[str] = field(default_factory=set)
    """Files and folders that were opened, absolute."""
    sockets: set[str] = field(default_factory=set)
    """Families of sockets that were made."""
    code: int = 0
    """Exit code; 124 where its ten seconds were over."""


class TracingBox:
    """Runs lines, each in a fresh copy of the same small tree.

    Args:
        folder: An empty folder; nothing else can be written by the lines.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.template = folder / "template"
        _make_tree(self.template)

    def place(self, number: int) -> Path:
        """Return a fresh copy of the tree, for the line of this number: `work`, `home` and `outside`."""
        place = self.folder / "places" / str(number)
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(exist_ok=True)
        shutil.copytree(self.template, place, symlinks=True)
        return place

    def run(self, lines: Sequence[tuple[Path, Sequence[str], Mapping[str, str]]]) -> list[Trace]:
        """Run each start of a shell in the workspace of its place, in its environment."""
        logs = self.folder / "logs"
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        script = ""
        for number, (place, argv, env) in enumerate(lines):
            words = ["env", "-i", *(f"{name}={value}" for name, value in env.items()), "timeout", "10"]
            traced = [
                "strace",
                "-ff",
                "-qq",
                "-y",
                "-s",
                "4096",
                "-e",
                f"trace={_TRACED}",
                "-o",
                f"{logs}/{number}",
                *argv,
            ]
            script += (
                f"cd {shlex.quote(str(place / 'work'))} && {shlex.join([*words, *traced])} </dev/null >/dev/null 2>&1\n"
                "echo $?\n"
            )
        ran = subprocess.run(
            [*self._box(), "/bin/bash", "-s"], check=False, timeout=200, capture_output=True, text=True, input=script
        )
        codes = map(int, ran.stdout.split())
        return [_read(logs, number, code) for number, code in zip(range(len(lines)), codes, strict=True)]

    def _box(self) -> list[str]:
        return [
            "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--tmpfs", "/tmp",
            "--bind", str(self.folder), str(self.folder), "--dev", "/dev", "--proc", "/proc",
        ]  # fmt: skip


def state(place: Path) -> dict[str, tuple[object, ...]]:
    """Return kind, mode, time of change and content of all that lies in a place; of folders only kind and mode."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(place.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            found[str(path)] = ("link", str(path.readlink()))
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path)] = ("file", status.st_mode, status.st_mtime_ns, content)
        else:
            found[str(path)] = ("folder", status.st_mode)
    return found


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """Return the paths that are new, gone or different."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _make_tree(root: Path) -> None:
    files = {
        "work/a.txt": "foo\nb,2\n", "work/b.txt": "bar\n", "work/src/a.py": "foo = 1\n", "work/src/b.py": "",
        "work/x y": "", "work/-n": "", "work/-": "", "work/.hidden": "", "work/src/deep/c.txt": "foo\n",
        "work/data.json": "{}",
        "work/d/it's": "foo\n", "work/ls": "#!/bin/sh\necho > pwned\n", "work/src/cat": "#!/bin/sh\necho > pwned\n",
        "outside/secret": "foo\n", "outside/deep/more.txt": "foo\n", "home/.profile": "echo PWNED\n",
        "home/secret.txt": "foo\n",
    }  # fmt: skip
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("work/ls", "work/src/cat"):
        (root / name).chmod(0o755)
    for name, target in {
        "out": "../outside",
        "outlink": "../outside/secret",
        "in": "src",
        "d/far.txt": "../../outside/secret",
    }.items():
        (root / "work" / name).symlink_to(target)


def _read(logs: Path, number: int, code: int) -> Trace:
    trace = Trace(code=code)
    for log in logs.glob(f"{number}.*"):
        for line in log.read_text(errors="replace").splitlines():
            if call := _CALL.match(line):
                _note(trace, call[1], call[2], call[4] or "")
    return trace


def _note(trace: Trace, name: str, arguments: str, result: str) -> None:
    if name.startswith("exec"):
        found = _STRING.search(arguments)
        trace.programs.add(found[1].rpartition("/")[2] if found else arguments)
    elif name == "socket":
        trace.sockets.add(arguments.partition(",")[0])
    else:
        trace.opened.add(result)
        if name == "creat" or _WRITING.search(arguments):
            trace.written.add(result)
