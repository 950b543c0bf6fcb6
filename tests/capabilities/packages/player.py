"""A small executable that plays conda, mamba or pixi: it notes how it was called, prints, and changes records."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_SCRIPT = """#!{python} -I
import json, os, sys
from pathlib import Path
folder = Path({folder!r})
calls = folder / "calls.json"
known = json.loads(calls.read_text()) if calls.exists() else []
calls.write_text(json.dumps([*known, [sys.argv[1:], os.getcwd()]]))
scene = json.loads((folder / "scenes.json").read_text())
play = scene[min(len(known), len(scene) - 1)]
for name, text in play["files"].items():
    place = Path(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True) if text is None else place.write_text(text)
print(play["output"])
sys.exit(play["exit_code"])
"""


class Player:
    """Plays one package manager.

    Args:
        folder: Where the executable goes; it has to be on PATH.
        name: What it is called.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        (folder / name).write_text(_SCRIPT.format(python=sys.executable, folder=str(folder)))
        (folder / name).chmod(0o755)
        self._scenes: list[dict[str, Any]] = []

    def plays(self, output: str = "", files: Mapping[Path, str | None] | None = None, *, exit_code: int = 0) -> None:
        """Add what happens at the next call; None for a file: it is gone then."""
        changed = {str(path): text for path, text in (files or {}).items()}
        self._scenes.append({"output": output, "files": changed, "exit_code": exit_code})
        (self._folder / "scenes.json").write_text(json.dumps(self._scenes))

    @property
    def calls(self) -> Sequence[Sequence[str]]:
        """The arguments of each call."""
        return [arguments for arguments, _ in json.loads((self._folder / "calls.json").read_text())]


def record(prefix: Path, name: str, version: str, build: str = "py_0") -> tuple[Path, str]:
    """Return where conda notes a package, and what."""
    noted = {"name": name, "version": version, "build": build, "channel": "conda-forge", "depends": ["shelf >=1"]}
    return prefix / "conda-meta" / f"{name}-{version}-{build}.json", json.dumps(noted)
