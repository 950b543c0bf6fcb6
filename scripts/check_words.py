"""Check the words of the project: first words of docstrings, pronouns, names of tests, and subjects of commits.

    python -m scripts.check_words

Print a line for each finding, and exit with 1 if there are any; `make lint` runs it.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("panpan", "benchmarks", "scripts", "evals", "tests")
FIRST_WORDS = ("what", "whether", "which", "of", "where", "how", "why")
"""Words that no docstring may begin with; it begins with a verb or a noun."""
PRONOUNS = ("he", "him", "his", "she", "her", "hers")
"""Words for the user, who is "they"."""
MAX_TEST_NAME = 60
"""Most characters of the name of a test."""
MAX_SUBJECT = 72
"""Most characters of a commit's subject."""
FROM_COMMIT = "9029bd52"
"""Last commit whose subject is not checked."""

_NO_UNIT = re.compile(
    r"test_(an?|the|its?|he|his|there|(?:no|some|every)thing|what|whatever|whether|which|who|when|where|while|in|until"
    r"|without|between)(?:_|$)"
)
_SUBJECT = re.compile(r"[a-z][a-z0-9_./ -]*: [a-z0-9`].*[^.]")
_NO_CHANGE = re.compile(r"(?i)^(checkpoint|format|merge|changelog|wip|fixup!|squash!)\b")
_PRONOUN = re.compile(rf"(?i)(?<![\w'`\"]){'(?:' + '|'.join(PRONOUNS) + ')'}(?![\w'`\"])")


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence that breaks a rule."""

    where: str
    """A file and line, or a commit."""
    problem: str


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring, including those below attributes and constants."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for before, statement in zip([None, *body], body, strict=False):
            is_first = before is None and isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            )
            if not is_first and not isinstance(before, ast.Assign | ast.AnnAssign):
                continue
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, text.strip()
                case _:
                    pass


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def findings_in(source: str, name: str) -> Iterator[Finding]:
    """Yield the findings in the docstrings and comments of a module.

    Args:
        source: Its text.
        name: Its path, for the findings.
    """
    told = list(docstrings(ast.parse(source)))
    for line, text in told:
        first = text.split(maxsplit=1)[0].rstrip(",;:").lower() if text else ""
        if first in FIRST_WORDS:
            yield Finding(f"{name}:{line}", f"a docstring begins with {first!r}; begin with a verb or a noun")
    for line, text in (*told, *comments(source)):
        if found := _PRONOUN.search(text):
            yield Finding(f"{name}:{line}", f"{found[0]!r} for a user; write 'they'")


def findings_in_names(source: str, name: str) -> Iterator[Finding]:
    """Yield a finding for each test of a module whose name is long or begins with no unit.

    Args:
        source: Its text.
        name: Its path, for the findings.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        where = f"{name}:{node.lineno}"
        if len(node.name) > MAX_TEST_NAME:
            yield Finding(where, f"a test's name of {len(node.name)} characters; write at most {MAX_TEST_NAME}")
        if found := _NO_UNIT.match(node.name):
            yield Finding(where, f"a test's name begins with {found[1]!r}; begin with the unit under test")


def subject_problem(subject: str) -> str | None:
    """Return the problem with the subject of a commit, if any."""
    if len(subject) > MAX_SUBJECT:
        return f"a subject of {len(subject)} characters; write at most {MAX_SUBJECT}"
    if _NO_CHANGE.search(subject) or not _SUBJECT.fullmatch(subject):
        return "a subject of another form; write `scope: imperative`, without a full stop"
    return None


def findings_in_commits(root: Path) -> Iterator[Finding]:
    """Yield a finding for each commit whose subject is not `scope: imperative`; none without a history."""
    done = subprocess.run(
        ["git", "log", "--format=%h %s", "--no-merges", f"{FROM_COMMIT}..HEAD"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    for row in done.stdout.splitlines():
        commit, _, subject = row.partition(" ")
        if problem := subject_problem(subject):
            yield Finding(commit, f"{problem}: {subject}")


def findings(root: Path, folders: Sequence[str] = FOLDERS) -> Iterator[Finding]:
    """Yield all findings in a checkout."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            name, source = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            yield from findings_in(source, name)
            if folder == "tests":
                yield from findings_in_names(source, name)
    yield from findings_in_commits(root)


def main() -> int:
    """Print the findings and return the exit code."""
    found = list(findings(ROOT))
    for one in found:
        sys.stdout.write(f"{one.where}: {one.problem}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
