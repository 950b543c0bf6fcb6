"""The time that the permission gate adds to a call: rules alone, a parsed command line, a search in many files.

It is counted in time of the processor, which it spends all of its time on.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import anyio

from benchmarks.figure import Figure
from panpan.app import tools_of_folder
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.core.hooks import ToolCall
from panpan.core.tool import SeenFiles, ToolContext
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.shell_analysis.judge import analyse_for_shell
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver

TITLE = "the permission gate"

RULES = 40
_CALLS = 200
_FOLDERS = 100
_FILES_IN_FOLDER = 100

_PLAIN = "git log --oneline -5 -- src/module_{0}.py | head -3"
_MANY = "cd src && cat module_{0}.py | grep -n word | sort | uniq -c > ../out.txt; make test && git status || echo no"
_LOOP = 'for f in *.py; do if grep -q "word {0}" "$f"; then echo "$(basename "$f")"; fi; done'

_LOOKS = {
    "a search": ("rg -n word many", 30),
    "a search of all": ("grep -rn word many", 30),
    "a glob": ("wc -l many/*/*.py", 200),
    "a find": ("find many -name '*.py' | xargs wc -l", 100),
}
"""Command lines for which the gate searches folders, each with its target in milliseconds."""


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark, each the mean of many calls."""
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        gate = _Gate(Path(name).resolve())
        yield gate.figure("Read, 40 rules", "Read", {"file_path": "src/module_{0}.py"}, runs, at_most=1)
        yield gate.figure(
            "Write, 40 rules", "Write", {"file_path": "src/module_{0}.py", "content": "x"}, runs, at_most=1
        )
        yield gate.figure("Bash, a pipe", "Bash", {"command": _PLAIN}, runs, at_most=3)
        yield gate.figure("Bash, seven commands", "Bash", {"command": _MANY}, runs, at_most=3)
        yield gate.figure("Bash, a loop", "Bash", {"command": _LOOP}, runs, at_most=3)
        _make_many_files(Path(name).resolve() / "many")
        for what, (command, at_most) in _LOOKS.items():
            title = f"Bash, {what} over {_FOLDERS * _FILES_IN_FOLDER:,} files"
            yield gate.figure(title, "Bash", {"command": command}, runs, at_most=at_most, calls=1)


def _make_many_files(root: Path) -> None:
    for folder in range(_FOLDERS):
        (root / f"package_{folder}").mkdir(parents=True)
        for number in range(_FILES_IN_FOLDER):
            (root / f"package_{folder}" / f"module_{number}.py").touch()


class _Gate:
    """The gate in a folder of files, with typical rules."""

    def __init__(self, root: Path) -> None:
        (root / "src").mkdir()
        for number in range(_CALLS):
            (root / "src" / f"module_{number}.py").touch()
        allow = [f"Bash(npm run task-{number} *)" for number in range(RULES // 2)]
        deny = [f"Edit(/secret-{number}/**)" for number in range(RULES // 4)]
        deny += [f"Bash(program-{number} *)" for number in range(RULES // 4)]
        self._gate = PermissionGate([RuleSource("the benchmark", True, allow, (), deny)])
        locations = Locations.find(root, {"PANPAN_HOME": str(root.parent / "home")})
        tools = tools_of_folder(root, load_settings(root, {}, {}, locations), locations)
        self._tools = {tool.name: tool for tool in tools}
        self._context = ToolContext("", PathResolver(root), SeenFiles(), OutputStore(root.parent), environment={})

    def figure(
        self, name: str, tool: str, arguments: Mapping[str, str], runs: int, *, at_most: float, calls: int = _CALLS
    ) -> Figure:
        anyio.run(self._milliseconds, tool, arguments, calls)  # the first calls import and warm the caches
        times = [anyio.run(self._milliseconds, tool, arguments, calls) for _ in range(runs)]
        return Figure(name, "ms", times, at_most=at_most)

    async def _milliseconds(self, tool: str, arguments: Mapping[str, str], count: int) -> float:
        """Return the mean milliseconds of `count` different calls."""
        calls = [
            await self._call(tool, {key: text.format(number) for key, text in arguments.items()})
            for number in range(count)
        ]
        analyse_for_shell.cache_clear()  # a command line is parsed once for each call
        started_at = process_time()
        for call in calls:
            await self._gate.before_tool(call)
        return (process_time() - started_at) * 1000 / count

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> ToolCall:
        tool = self._tools[name].load()
        return await ToolCall.of("", tool, tool.input_model.model_validate(arguments), arguments, self._context)
