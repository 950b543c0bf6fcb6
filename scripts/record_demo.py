"""Record panpan/demo/bug_fix.jsonl, the cassette of `panpan demo`: `python scripts/record_demo.py`.

The model's words come from bug_fix.toml beside this file, which was written by hand; tools, files and tests are real.
Run it after a change of these words, and for strict replays of the cassette after a change of the system prompt or a
tool's description.

Values that differ between machines and days are replaced by fixed ones (`FIXED`): folders, times, ids. So the same
panpan records the same file, and a difference in git is one in the words or the requests.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from panpan.capabilities.cassettes.recording import Recording
from panpan.capabilities.cassettes.tape import CassetteProvider, read_tape
from panpan.cli.demo_command import CASSETTE, HOME, TAPE_PROMPT, show
from panpan.cli_kit.demo import Scene
from panpan.types.llm import Provider

ROOT = Path(__file__).parents[1]
TAPE = Path(__file__).with_name("bug_fix.toml")
TARGET = ROOT / "panpan" / "demo" / CASSETTE

FOLDER = "/home/you"
"""Replacement for the folder of the recording."""

FIXED = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]+Z", "2026-01-01T00:00:00Z"),
    (r"\\nDate: [\d-]+", r"\\nDate: 2026-01-01"),
    (r"\\nPlatform: [^\\]+", r"\\nPlatform: Linux"),
    (r" tests in [\d.]+s", " tests in 0.000s"),
    (r'"(durationMs|duration_s)":[\d.e-]+', r'"\1":0'),
    (r'"processMark":"\w+"', f'"processMark":"{"0" * 32}"'),
)
"""Patterns of values that differ in each recording, and their replacements."""

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


UNAVAILABLE = ("MergeWorktree", "WebSearch", "LSP", "pip", "uv", "conda", "pixi")
"""Tools that are hidden from the model, whatever this machine has."""


class _Clock:
    """Clock on which only the pauses of the tape take time."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class _DemoRecording(Recording):
    """Records the tape with its pauses, without waiting for them."""

    def __init__(self, path: Path, clock: _Clock) -> None:
        super().__init__(path, clock=clock)
        self._sleep = clock.sleep

    def provider(self, provider: Provider) -> Provider:
        tape, lines = read_tape(TAPE)
        return super().provider(CassetteProvider(tape, place=str(TAPE), lines=lines, sleep=self._sleep))


def record(target: Path) -> int:
    """Play the tape in a new folder and write its recording; return 0 if the bug was fixed."""
    with tempfile.TemporaryDirectory(prefix="panpan-demo-") as folder:
        scratch = Path(folder).resolve()
        tape = shutil.copy(TAPE, scratch / TAPE.name)
        made = scratch / CASSETTE
        _use_no_snapshots(scratch / HOME)
        scene = Scene("", [TAPE_PROMPT], f"cassette:{tape}")
        if exit_code := show(scene, scratch, interceptor=_DemoRecording(made, _Clock()), unavailable=UNAVAILABLE):
            return exit_code
        target.write_text(_fixed(made.read_text(encoding="utf-8"), scratch), encoding="utf-8")
    return 0


def _use_no_snapshots(home: Path) -> None:
    """Turn snapshots off: they are taken during the turn, so their records would be in different places each time."""
    home.mkdir(mode=0o700)
    (home / "settings.toml").write_text("[snapshots]\nenabled = false\n", encoding="utf-8")


def _fixed(text: str, folder: Path) -> str:
    text = text.replace(str(folder), FOLDER)
    for pattern, fixed in FIXED:
        text = re.sub(pattern, fixed, text)
    ids: dict[str, str] = {}
    return _UUID.sub(lambda match: ids.setdefault(match.group(), f"00000000-0000-7000-8000-{len(ids):012}"), text)


if __name__ == "__main__":
    sys.exit(record(TARGET))
