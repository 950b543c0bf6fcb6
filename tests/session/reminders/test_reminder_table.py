"""docs/reminders.md lists every reminder that the program makes, with its priority and its words, and no other."""

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TypeAlias, get_args

import pytest

import panpan
from panpan.types.messages import ReminderPriority

Made: TypeAlias = tuple[Mapping[str, set[str]], Mapping[str, str]]

PACKAGE = Path(panpan.__file__).parent
TABLE = PACKAGE.parent / "docs" / "reminders.md"
READ_BACK = {"session/log/records.py", "session/log/record_kinds.py"}
"""Modules that make again what a log holds."""
_EVENTS = ("session_start", "subagent_start", "prompt", "batch", "stop")
OTHERS_WORDS = {"imported", "skill:loaded:…", *(f"hook:{event}" for event in _EVENTS)}
"""Causes whose text is nobody's here."""


def rows() -> list[list[str]]:
    lines = [line.strip().strip("|") for line in TABLE.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")] for line in lines[2:]]


def causes_of(node: ast.expr, module: ModuleType) -> Iterator[str]:
    """Yield what an expression may be, with … for what only a run can tell."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name):
            yield getattr(module, name)
        case ast.IfExp(body=one, orelse=other):
            yield from causes_of(one, module)
            yield from causes_of(other, module)
        case ast.JoinedStr(values=parts):
            texts = [part.value if isinstance(part, ast.Constant) else filled(part, module) for part in parts]
            known = "".join(texts)
            while "……" in known or "…:…" in known:
                known = known.replace("……", "…").replace("…:…", "…")
            yield known
        case _:
            raise AssertionError(f"{module.__name__}, line {node.lineno}: the cause cannot be told from the code")


def filled(part: ast.expr, module: ModuleType) -> str:
    """Return what stands in braces, where it is a constant of the module."""
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
        known = getattr(module, part.value.id, None)
        return known if isinstance(known, str) else "…"
    return "…"


@pytest.fixture(scope="module")
def made() -> Made:
    """Return the priorities of each cause, and all texts of the modules that make it."""
    priorities: dict[str, set[str]] = defaultdict(set)
    texts: dict[str, str] = defaultdict(str)
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name in READ_BACK or "SystemReminder(" not in (source := path.read_text()):
            continue
        tree = ast.parse(source)
        module = importlib.import_module("panpan." + name.removesuffix(".py").replace("/", "."))
        constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        words = "\n".join(value for value in constants if isinstance(value, str))
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="SystemReminder"), keywords=keywords) if keywords:
                    said = {keyword.arg: keyword.value for keyword in keywords}
                    if "text" not in said:
                        continue  # a pattern
                    priority = ast.literal_eval(said["priority"]) if "priority" in said else "must"
                    for cause in causes_of(said["cause"], module):
                        priorities[cause].add(priority)
                        texts[cause] += words
                case _:
                    pass
    return priorities, texts


def test_reminder_table_lists_every_reminder_with_its_priority(made: Made) -> None:
    priorities, _ = made

    assert {row[0].strip("`"): {row[2]} for row in rows()} == dict(priorities)


def test_reminder_category_precedes_the_colon() -> None:
    assert [row[1] for row in rows()] == [row[0].strip("`").partition(":")[0] for row in rows()]
    assert {row[2] for row in rows()} <= set(get_args(ReminderPriority))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0].strip("`"))
def test_reminder_table_has_the_words_of_the_code(row: list[str], made: Made) -> None:
    cause, text = row[0].strip("`"), row[4].strip("`")
    _, texts = made

    pieces = [piece.strip() for piece in text.split("…") if piece.strip()]
    assert cause in OTHERS_WORDS or (pieces and all(piece in texts[cause] for piece in pieces))
