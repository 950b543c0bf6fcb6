"""Rules about the code itself that no linter knows."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import panpan
from tests.fakes.every_tool import every_tool

PACKAGE = Path(panpan.__file__).parent
SCOPES = {
    "create_task_group",
    "CancelScope",
    "fail_after",
    "move_on_after",
    "fail_at",
    "move_on_at",
    "open_nursery",
} | {
    "ToolExecutor",  # these two hold a task group
    "Session",
}
NAMED_LIKE_A_SCOPE = re.compile(r"(?:^|_)(?:executor|task_?group|scope|nursery)$")
OF_THEIR_OWN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def yields_in_scopes(tree: ast.AST) -> Iterator[int]:
    """Lines of each `yield` of a generator that stands inside a task group or a cancel scope.

    A context manager made with `@asynccontextmanager`, and the method of anyio's mixin, may do it: its caller's `with`
    closes it (PEP 789).
    """
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_context_manager(function):
            yield from _yields(function.body, _names_of_scopes(function.body))


def _is_context_manager(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {ast.unparse(decorator).rsplit(".", 1)[-1] for decorator in function.decorator_list}
    return bool(names & {"asynccontextmanager", "contextmanager"}) or function.name == "__asynccontextmanager__"


def _own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node of a function's body, without those of functions and classes that are defined in it."""
    for node in nodes:
        if not isinstance(node, OF_THEIR_OWN):
            yield node
            yield from _own_nodes(ast.iter_child_nodes(node))


def _yields(nodes: Iterable[ast.AST], scopes: set[str], *, is_inside: bool = False) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, OF_THEIR_OWN):
            continue
        if isinstance(node, ast.Yield | ast.YieldFrom) and is_inside:
            yield node.lineno
        opens = isinstance(node, ast.With | ast.AsyncWith) and any(
            _is_scope(item.context_expr, scopes) for item in node.items
        )
        yield from _yields(ast.iter_child_nodes(node), scopes, is_inside=is_inside or opens)


def _names_of_scopes(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names and attributes, as they are written, that a function binds to a scope."""
    own = list(_own_nodes(nodes))
    names: set[str] = set()
    while True:  # a name may be bound to a name that is bound to a scope
        known = len(names)
        for node in own:
            match node:
                case ast.Assign(targets=targets, value=value) if _is_scope(value, names):
                    names |= {ast.unparse(target) for target in targets}
                case ast.AnnAssign(target=target, value=ast.AST() as value) if _is_scope(value, names):
                    names.add(ast.unparse(target))
                case ast.NamedExpr(target=target, value=value) if _is_scope(value, names):
                    names.add(ast.unparse(target))
        if len(names) == known:
            return names


def _is_scope(expression: ast.AST, scopes: set[str]) -> bool:
    """True if the node makes or names a scope, judged by its binding or by our usual names."""
    match expression:
        case ast.Call(func=function):
            return ast.unparse(function).rsplit(".", 1)[-1] in SCOPES
        case ast.NamedExpr(value=value) | ast.Await(value=value):
            return _is_scope(value, scopes)
        case ast.IfExp(body=body, orelse=other):
            return _is_scope(body, scopes) or _is_scope(other, scopes)
        case ast.Name() | ast.Attribute():
            written = ast.unparse(expression)
            return written in scopes or bool(NAMED_LIKE_A_SCOPE.search(written.rsplit(".", 1)[-1]))
        case _:
            return False


def test_generators_never_yield_inside_a_scope() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if "yield" in (text := path.read_text(encoding="utf-8"))  # to parse what has none would cost three seconds
        for line in yields_in_scopes(ast.parse(text))
    ]

    assert found == []


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("async def f():\n with move_on_after(1):\n  yield 1", [3]),
        ("async def f():\n async with anyio.create_task_group() as g:\n  if g:\n   x = yield 1", [4]),
        ("async def f():\n with move_on_after(1):\n  await g()\n yield 1", []),
        ("@asynccontextmanager\nasync def f():\n async with create_task_group():\n  yield 1", []),
        ("async def f():\n async with aclosing(g()) as h:\n  yield 1", []),
        ("async def f():\n s = CancelScope()\n with s:\n  yield 1", [4]),
        ("async def f():\n a = b = anyio.fail_after(1)\n c = b\n with c:\n  yield 1", [5]),
        ("async def f():\n s: CancelScope = CancelScope()\n with open(p), s:\n  yield 1", [4]),
        ("async def f(self):\n self._s = move_on_after(1)\n with self._s:\n  yield 1", [4]),
        ("async def f():\n with (s := CancelScope()):\n  yield 1", [3]),
        ("async def f():\n if (s := CancelScope()):\n  with s:\n   yield 1", [4]),
        ("async def f():\n with CancelScope() if x else nullcontext():\n  yield 1", [3]),
        ("async def f(executor):\n async with executor:\n  yield 1", [3]),
        ("async def f(self):\n async with self._task_group as g, h:\n  yield 1", [3]),
        ("async def f(turn):\n with turn.cancel_scope:\n  x = [(yield 1)]", [3]),
        ("async def f():\n s = open(p)\n with s:\n  yield 1", []),
        ("async def f(executor):\n async with executor:\n  async with aclosing(g()) as h:\n   await h", []),
        ("async def f():\n def g():\n  s = CancelScope()\n with s:\n  yield 1", []),
        ("async def f():\n with CancelScope():\n  async def g():\n   yield 1", []),
    ],
)
def test_rule_about_yields_finds_violations(code: str, lines: list[int]) -> None:
    assert list(yields_in_scopes(ast.parse(code))) == lines


def test_modules_all_have_a_docstring() -> None:
    silent = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]

    assert silent == []


def test_faces_reach_no_log_through_the_parts_of_a_session() -> None:
    faces = (PACKAGE / "faces").rglob("*.py")

    assert [path.name for path in faces if "parts.log" in path.read_text(encoding="utf-8")] == []


TOOL_FOLDERS = {tool.name: Path(*type(tool).__module__.split(".")[1:-1]).as_posix() for tool in every_tool()}
"""The folder of each tool, by its name."""

RULE_WORDS = ("Read", "Edit", "Bash", "WebFetch", "Agent", "Skill")
"""Words that the user writes rules with; `permissions/rules/` reads them."""

PROGRAMS = ("pip", "uv", "conda", "pixi")
"""Names of programs and of kinds of environments, too; as such they may stand in `PROGRAM_PLACES`."""

PROGRAM_PLACES = (
    "batch",
    "repro",
    "capabilities/local_model/fetch_registry.py",
    "permissions/rules/command_parts.py",
    "shell_analysis",
    "system",
    "capabilities/environment",
    "capabilities/packages",
    "capabilities/receipts",
    "capabilities/shell",
    "permissions/sandbox_questions.py",
    "python_environments",
)

NAMED_ELSEWHERE: Mapping[str, str] = {
    "capabilities/local_model/call_repair.py": "Bash Edit Read Rename Write",
    "capabilities/compaction/computed_record.py": "Bash Read",
    "capabilities/compaction/steps.py": "Glob Grep LS Read",
    "permissions/rules/rules.py": (
        "AskUserQuestion DatasetDownload EnterPlanMode EnvDoctor ExitPlanMode Glob Grep LS LSP MergeWorktree "
        "MultiEdit NotebookEdit Patch ReadHistory Rename Task TaskOutput TaskStop TodoWrite WebSearch Write "
        "conda pip pixi uv"
    ),
    "capabilities/subagents/definitions/other_formats.py": (
        "Bash Edit Glob Grep LS LSP MultiEdit NotebookEdit Patch Read Rename TodoWrite WebFetch WebSearch Write"
    ),
    "capabilities/subagents/definitions/read_definition.py": "TaskOutput TaskStop",
    "session/importing/conversion.py": "TodoWrite",
}
"""Modules that name tools of other folders. The list may only get shorter.

A part that goes by what a tool does reads `Effects`, or an attribute of `Tool`; one of the same feature has the name
from the tool's folder.
"""


def tools_named(path: str, text: str) -> set[str]:
    """Return names of tools that a module outside of their folders has as whole strings.

    Args:
        path: The module's file, from the package's folder.
        text: What is in it.
    """
    wanted = {name for name, folder in TOOL_FOLDERS.items() if not _lies_in(path, (folder,))}
    if _lies_in(path, ("permissions/rules",)):
        wanted -= set(RULE_WORDS)
    if _lies_in(path, PROGRAM_PLACES):
        wanted -= set(PROGRAMS)
    if not any(f'"{name}"' in text or f"'{name}'" in text for name in wanted):  # spares most files the parsing
        return set()
    tree = ast.parse(text)
    parts_of_text = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in wanted and id(node) not in parts_of_text
    }


def _lies_in(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def test_tools_are_named_in_their_folders_alone() -> None:
    files = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = {path: names for path, text in files.items() if (names := tools_named(path, text))}
    listed = {path: set(names.split()) for path, names in NAMED_ELSEWHERE.items()}

    added = {path: names - listed.get(path, set()) for path, names in found.items() if names - listed.get(path, set())}
    gone = {path: names - found.get(path, set()) for path, names in listed.items() if names - found.get(path, set())}

    assert not added, f"ask the tool what it does, or take the name from its folder: {added}"
    assert not gone, f"take these out of NAMED_ELSEWHERE: {gone}"


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("core/x.py", "names = {'Read', \"LS\"}", {"Read", "LS"}),
        ("core/x.py", "match name:\n case 'Read': ...", {"Read"}),
        ("core/x.py", "def f(tool: str = 'Bash') -> None: ...", {"Bash"}),
        ("core/x.py", "x = f'{name}Read', 'read', 'Read the file', Read", set()),
        ("capabilities/files/edit.py", "names = {'Read', 'LS'}", {"LS"}),
        ("permissions/rules/x.py", "names = {'Read', 'LS'}", {"LS"}),
        ("permissions/gate.py", "if rule.tool == 'Read': ...", {"Read"}),
        ("capabilities/shell/x.py", "run('pip', 'Read')", {"Read"}),
        ("session/x.py", "run('pip')", {"pip"}),
    ],
)
def test_tools_named_finds_whole_strings(path: str, text: str, names: set[str]) -> None:
    assert tools_named(path, text) == names


def test_importing_panpan_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    code = "import panpan, sys; print(sorted({m.split('.')[0] for m in sys.modules} & set(sys.argv[1:])))"
    heavy = ["anthropic", "openai", "pydantic", "anyio", "click", "prompt_toolkit", "rich", "httpx2", "asyncio"]
    loaded = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"


def test_first_screen_loads_nothing_that_it_does_not_need() -> None:
    import subprocess
    import sys

    code = "import panpan.cli.repl_command, sys; print(sorted(set(sys.modules) & set(sys.argv[1:])))"
    of_sessions = ["panpan.app", "panpan.types.messages", "panpan.config.settings", "panpan.session.session"]
    heavy = ["yaml", "pydantic", "anthropic", "openai", "markdown_it", "pygments", "httpx2", *of_sessions]
    loaded = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"


def test_files_of_tests_have_names_of_their_own() -> None:
    tests = [path for path in Path(__file__).parent.rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    names = [path.name for path in tests]

    assert sorted(name for name in set(names) if names.count(name) > 1) == [], "pytest imports them by their names"
