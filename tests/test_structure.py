"""Rules about the code itself that no linter knows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import panpan

PACKAGE = Path(panpan.__file__).parent
SCOPES = {"create_task_group", "CancelScope", "fail_after", "move_on_after", "fail_at", "move_on_at", "open_nursery"}


def yields_in_scopes(tree: ast.AST) -> Iterator[int]:
    """Lines of each `yield` of a generator that stands inside a task group or a cancel scope.

    A context manager made with `@asynccontextmanager`, and the method of anyio's mixin, may do it: its caller's `with`
    closes it (PEP 789).
    """
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_context_manager(function):
            yield from _yields(function.body, is_inside=False)


def _is_context_manager(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {ast.unparse(decorator).rsplit(".", 1)[-1] for decorator in function.decorator_list}
    return bool(names & {"asynccontextmanager", "contextmanager"}) or function.name == "__asynccontextmanager__"


def _yields(nodes: list[ast.AST] | list[ast.stmt], *, is_inside: bool) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Yield | ast.YieldFrom) and is_inside:
            yield node.lineno
        opens = isinstance(node, ast.With | ast.AsyncWith) and any(_is_scope(item) for item in node.items)
        yield from _yields(list(ast.iter_child_nodes(node)), is_inside=is_inside or opens)


def _is_scope(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and ast.unparse(call.func).rsplit(".", 1)[-1] in SCOPES


def test_no_generator_yields_inside_a_task_group_or_cancel_scope() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        for line in yields_in_scopes(ast.parse(path.read_text(encoding="utf-8")))
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
    ],
)
def test_the_rule_about_yields_finds_what_it_should(code: str, lines: list[int]) -> None:
    assert list(yields_in_scopes(ast.parse(code))) == lines


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]

    assert silent == []


def test_importing_panpan_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    code = "import panpan, sys; print(sorted({m.split('.')[0] for m in sys.modules} & set(sys.argv[1:])))"
    heavy = ["anthropic", "openai", "pydantic", "anyio", "click", "prompt_toolkit", "rich", "httpx2", "asyncio"]
    loaded = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"
