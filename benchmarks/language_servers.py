"""The delay of an edit's result by the errors that it brings, with ty over 300 files in the sandbox."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio

from benchmarks.figure import Figure
from panpan.capabilities.files.edit import EditTool
from panpan.capabilities.language_servers.edit_errors import EditErrors
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.language_servers.settings import LanguageServersSettings
from panpan.core.hooks import ToolCall
from panpan.core.tool import SeenFiles, ToolContext
from panpan.system.environment import child_environment
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.events import Output

TITLE = "errors after an edit (ty, 300 files)"

FILES = 300
_BODY = "".join(f"def function_{n}(x: int) -> int:\n    return x + {n}\n\n\n" for n in range(20))
_EDITS = 10


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if shutil.which("ty", path=path) is None:
        raise RuntimeError("ty is not installed")
    first, later, bare = [], [], []
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        root = Path(name).resolve() / "project"
        for _ in range(runs):
            _fill(root)
            with_server = anyio.run(_edits, root, path, True)
            first.append(with_server[0])
            later += with_server[1:]
            _fill(root)
            bare += anyio.run(_edits, root, path, False)[1:]
    yield Figure("first edit, which starts the server", "ms", first, at_most=1_000)
    yield Figure("later edits", "ms", later, at_most=100)
    yield Figure("edits without a server", "ms", bare)


def _fill(root: Path) -> None:
    for number in range(FILES):
        path = root / f"package_{number // 20:02}" / f"module_{number:03}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_BODY)


async def _edits(root: Path, path: str, is_trusted: bool) -> list[float]:
    """Return the milliseconds of each of some edits, each of which brings an error if a server checks it."""
    sandbox = CommandSandbox(is_on=True)
    environment = child_environment({**os.environ, "PATH": path})
    servers = LanguageServers(LanguageServersSettings(), root, environment, sandbox, is_trusted=is_trusted)
    times = []
    async with anyio.create_task_group() as group:
        group.start_soon(servers.serve)
        hook, tool, seen = EditErrors(servers), EditTool(), SeenFiles()
        for number in range(_EDITS):
            file = root / "package_00" / f"module_{number:03}.py"
            seen.add(file, file.read_bytes())
            old, new = "    return x + 7\n", f'    return x + "{number}"\n'
            written = {"file_path": str(file), "old_string": old, "new_string": new}
            args = tool.input_model.model_validate(written)
            context = ToolContext(str(number), PathResolver(root), seen, OutputStore(root.parent))
            call = await ToolCall.of(str(number), tool, args, written, context)
            started_at = perf_counter()
            await hook.before_effect(call)
            async with aclosing(tool.run(args, context)) as outputs:
                (output,) = [output async for output in outputs if isinstance(output, Output)]
            told = await hook.after_tool(call, output)
            times.append((perf_counter() - started_at) * 1000)
            assert ("New errors" in told.text) is is_trusted
        group.cancel_scope.cancel()
    await sandbox.aclose()
    return times
