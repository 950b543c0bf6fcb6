"""Output of a command costs constant memory, measured over the whole process that reads it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Prints by how many bytes the process has grown at its most, the length of the result, and the size of its file.
OF_THE_RUNNER = """
import json, resource, sys
from contextlib import aclosing
from pathlib import Path
import anyio
from panpan.system.files.output_store import OutputStore
from panpan.system.processes.process import ProcessEnded, run_process

async def printed(size, folder):
    collector = OutputStore(folder).collector("call", max_chars=30_000)
    argv = ["head", "-c", str(size), "/dev/zero"]
    env = {"PATH": "/usr/bin:/bin"}
    async with aclosing(run_process(argv, cwd=folder, env=env, timeout_s=None)) as items:
        async for item in items:
            if not isinstance(item, ProcessEnded):
                collector.feed(item)
    return collector.finish(), collector.path
"""
OF_THE_TOOL = """
import json, resource, sys
from contextlib import aclosing
from pathlib import Path
import anyio
from panpan.capabilities.shell.bash import BashInput, BashTool
from tests.fakes.context import context_in

async def printed(size, folder):
    command = f"yes 'an ordinary line of output' | head -c {size}"
    (folder / "work").mkdir(exist_ok=True)
    async with aclosing(BashTool().run(BashInput(command=command), context_in(folder / "work"))) as items:
        async for item in items:
            pass
    return item.text, max((folder / "work-outputs").iterdir(), key=lambda path: path.stat().st_size, default=None)
"""
MEASURED = """
async def main(size, folder):
    def most():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    await printed(2_000_000, folder)  # what is imported and set up once does not count
    before = most()
    text, file = await printed(size, folder)
    print(json.dumps([most() - before, len(text), file.stat().st_size]))

anyio.run(main, int(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("code", "size"), [(OF_THE_RUNNER, 1_000_000_000), (OF_THE_TOOL, 100_000_000)], ids=["runner", "tool"]
)
def test_output_of_a_gigabyte_costs_constant_memory(code: str, size: int, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", code + MEASURED, str(size), str(tmp_path)]

    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stderr
    growth, length, file_size = json.loads(done.stdout)
    assert growth < 16_000_000
    assert length <= 30_000
    assert file_size <= 100_000_000
