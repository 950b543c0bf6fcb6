"""The same questions to servers that are not ours: ty, and one for TypeScript; each is started once."""

import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.files.edit import EditTool
from panpan.capabilities.language_servers.code_queries import CodeQueries
from panpan.capabilities.language_servers.edit_errors import EditErrors
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.language_servers.lsp import LspTool
from panpan.capabilities.language_servers.server_process import ServerTimeouts
from panpan.capabilities.language_servers.settings import LanguageServersSettings
from panpan.core.hooks import ToolCall
from panpan.system.environment import child_environment
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.events import Output
from panpan.types.messages import SystemReminder
from tests.capabilities.guards.hook_fixtures import round_of
from tests.fakes.context import context_in
from tests.system.backends import until

FOLDERS = (Path(sys.executable).parent, Path(__file__).parents[3] / ".venv" / "node" / "node_modules" / ".bin")
ENVIRONMENT = child_environment(
    {**os.environ, "PATH": os.pathsep.join([*map(str, FOLDERS), os.environ.get("PATH", "")])}
)

TIMEOUTS = ServerTimeouts(silence_s=0.7, first_s=2.0)

PYTHON = {
    "shapes.py": """\
class Shape:
    def area(self) -> float:
        return 0.0


class Square(Shape):
    def area(self) -> float:
        return scaled(2.0)


def scaled(x: float) -> float:
    return x * 2


flag = "🎉"; scaled(3)
""",
    "use.py": "from shapes import scaled\n\nprint(scaled(1))\n",
}
SCRIPT = {
    "shapes.ts": """\
export interface Shape { area(): number }
export class Square implements Shape {
  area(): number { return scaled(2) }
}
export function scaled(x: number): number { return x * 2 }
const flag = "🎉"; scaled(3);
""",
    "use.ts": 'import { scaled } from "./shapes";\nexport const all = { scaled };\nconsole.log(scaled(1));\n',
    "tsconfig.json": '{"compilerOptions": {"strict": true, "lib": ["es2020", "dom"], "types": []}}',
}


def needs(program: str) -> None:
    if shutil.which(program, path=ENVIRONMENT["PATH"]) is None:
        pytest.skip(f"{program} is not installed; scripts/setup.sh dev does so where it can")


class Session:
    """A project with real servers, and the tools that ask them."""

    def __init__(self, root: Path, servers: LanguageServers) -> None:
        self.root = root
        self.servers = servers
        self._lsp, self._edit = LspTool(CodeQueries(servers)), EditTool()
        self._context = context_in(root, tool_use_id="1")
        self._hook = EditErrors(servers, wait_s=20.0)
        for path in root.iterdir():
            self._context.seen_files.add(path, path.read_bytes())

    async def ask(self, operation: str, file_path: str, **arguments: Any) -> list[str]:
        tool = self._lsp
        args = tool.input_model.model_validate({"operation": operation, "file_path": file_path, **arguments})
        return (await _output(tool.run(args, self._context))).text.splitlines()

    async def edit(self, file_path: str, old: str, new: str) -> str:
        written = {"file_path": file_path, "old_string": old, "new_string": new}
        args = self._edit.input_model.model_validate(written)
        call = await ToolCall.of("1", self._edit, args, written, self._context)
        await self._hook.before_effect(call)
        output = await _output(self._edit.run(args, self._context))
        text = (await self._hook.after_tool(call, output)).text
        await until(lambda: all(late.look.done.is_set() for late in self._hook._late))
        late = await self._hook.before_request(round_of())  # a machine that is busy takes longer
        return "\n".join([text, *(one.text for one in late if isinstance(one, SystemReminder))])


async def _output(run: Any) -> Output:
    async with aclosing(run) as outputs:
        async for output in outputs:
            assert isinstance(output, Output)
            return output
    raise AssertionError("a tool answers")


def project(tmp_path: Path, files: dict[str, str]) -> Path:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


@asynccontextmanager
async def session(root: Path) -> AsyncGenerator[Session, None]:
    sandbox = CommandSandbox(is_on=True)
    servers = LanguageServers(LanguageServersSettings(), root, ENVIRONMENT, sandbox, is_trusted=True, timeouts=TIMEOUTS)
    async with anyio.create_task_group() as group:
        group.start_soon(servers.serve)
        yield Session(root, servers)
        group.cancel_scope.cancel()
    await sandbox.aclose()


async def test_ty_answers_in_the_sandbox_without_writing(tmp_path: Path) -> None:
    needs("ty")

    async with session(project(tmp_path, PYTHON)) as python:
        told = {
            "definition": await python.ask("definition", "use.py", line=3, symbol="scaled"),
            "references": await python.ask("references", "shapes.py", line=15, symbol="scaled"),
            "implementations": await python.ask("implementations", "shapes.py", line=2, symbol="area"),
            "incoming": await python.ask("incoming_calls", "shapes.py", line=11, symbol="scaled"),
            "outgoing": await python.ask("outgoing_calls", "shapes.py", line=7, symbol="area"),
            "named": await python.ask("workspace_symbols", "use.py", symbol="scaled"),
        }
        hover = await python.ask("hover", "use.py", line=3, symbol="scaled")
        symbols = await python.ask("symbols", "shapes.py")
        written = sorted(path.name for path in python.root.iterdir())

    places = {name: {line.partition(": ")[0] for line in lines} for name, lines in told.items()}
    assert places == {
        "definition": {"shapes.py:11"},
        "references": {"shapes.py:8", "shapes.py:11", "shapes.py:15", "use.py:1", "use.py:3"},
        "implementations": {"shapes.py:2", "shapes.py:7"},
        "incoming": {"shapes.py:8", "shapes.py:15", "use.py:3"},
        "outgoing": {"shapes.py:11"},
        "named": {"shapes.py:11"},
    }
    assert any("def scaled(x: float)" in line for line in hover)
    assert any(line.startswith("  shapes.py:7: method area") for line in symbols)
    assert written == sorted(PYTHON)


async def test_ty_reports_errors_of_an_edit_and_renames_everywhere(tmp_path: Path) -> None:
    needs("ty")

    async with session(project(tmp_path, PYTHON)) as python:
        broken = await python.edit("use.py", "scaled(1)", 'scaled("one")')
        same = await python.edit("use.py", "from shapes", "# a comment\nfrom shapes")
        problems = await python.ask("diagnostics", "use.py")
        mended = await python.edit("use.py", '"one"', "1")
        (python.root / "more.py").write_text("more = 1\n", encoding="utf-8")
        known = await python.edit("use.py", "from shapes", "from more import more\nfrom shapes")
        await python.ask("rename", "shapes.py", line=15, symbol="scaled", new_name="doubled")
        texts = [(python.root / name).read_text() for name in PYTHON]
        after = await python.ask("diagnostics", "use.py")

    assert "New errors in use.py" in broken
    assert "\n  line 3: " in broken
    assert "errors" not in same
    assert [line.partition(": ")[0] for line in problems] == ["use.py:4"]
    assert "errors" not in mended + known
    assert [text.count("doubled") for text in texts] == [3, 2]
    assert all("scaled" not in text for text in texts)
    assert after == ["use.py has no errors or warnings"]


async def test_typescript_server_answers_reports_errors_and_renames(tmp_path: Path) -> None:
    needs("node")
    needs("typescript-language-server")

    async with session(project(tmp_path, SCRIPT)) as script:
        definition = await script.ask("definition", "use.ts", line=3, symbol="scaled")
        callers = await script.ask("incoming_calls", "shapes.ts", line=5, symbol="scaled")
        broken = await script.edit("use.ts", "scaled(1)", 'scaled("one")')
        mended = await script.edit("use.ts", '"one"', "1")
        await script.ask("rename", "shapes.ts", line=6, symbol="scaled", new_name="doubled")
        texts = [(script.root / name).read_text() for name in SCRIPT]

    assert [line.partition(": ")[0] for line in definition] == ["shapes.ts:5"]
    assert {line.partition(": ")[0] for line in callers} == {"shapes.ts:3", "shapes.ts:6", "use.ts:3"}
    assert "\n  line 3: Argument of type 'string' is not assignable to parameter of type 'number'. (2345)" in broken
    assert "errors" not in mended
    assert texts[0].count("doubled") == 3
    assert "{ scaled: doubled }" in texts[1]
