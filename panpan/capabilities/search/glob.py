"""Glob: find files by the pattern of their paths, newest first.

The rule: the part of a pattern that is a plain path goes through the resolver like any other path, so no pattern
reaches out of the workspace; and a folder that it names is searched even where .gitignore excludes it.
"""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import ClassVar

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.files.globs import compile_glob, has_magic, name_globs
from panpan.system.text.terminal_text import printable
from panpan.text_search.engine import (
    Found,
    PathPrefix,
    RipgrepFinder,
    SearchRequest,
    Selection,
    find_ripgrep,
    parse_listing,
    search,
    with_notes,
)
from panpan.types.content import SummaryDisplay
from panpan.types.dataclass import dataclass
from panpan.types.events import Output, ToolYield

MAX_FILES = 100


class GlobInput(BaseModel):
    """Arguments of Glob."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str = Field(min_length=1, description="E.g. **/*.py or src/**/*.{ts,tsx}")
    path: str | None = Field(default=None, description="Folder; default: working directory")


class GlobTool(Tool[GlobInput]):
    """Find files by name."""

    name = "Glob"
    input_model = GlobInput
    question_template = "Look for {title}?"
    only_reads: ClassVar[bool] = True
    count_label = ("searched for", "pattern")

    def __init__(self, find: RipgrepFinder = find_ripgrep) -> None:
        self._find = find

    def title(self, args: GlobInput) -> str:
        return printable(args.pattern if not args.path else f"{args.pattern} in {args.path}")

    async def effects(self, args: GlobInput, ctx: ToolContext) -> Effects:
        return Effects(reads=(_Question.of(args).folder,))

    async def run(self, args: GlobInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        question = _Question.of(args)
        folder = ctx.paths.resolve(question.folder, access="read")
        request = await to_thread.run_sync(_request, folder, question, abandon_on_cancel=True)
        if request is None:
            if question.folder == args.path:
                raise ToolError(f"{args.path} is not a folder", advice="use LS or Glob to see what there is")
            yield _nothing(f"{question.folder} is not a folder")
            return
        found = await search(request, self._find(ctx.paths))
        prefix = PathPrefix.of(folder, ctx.paths.cwd)
        answer = partial(_answer, question, found, prefix)
        yield await to_thread.run_sync(answer, abandon_on_cancel=True)


@dataclass(frozen=True, slots=True)
class _Question:
    """A pattern, divided into the folder it starts in and the glob below that."""

    folder: str
    glob: str
    is_anchored: bool

    @classmethod
    def of(cls, args: GlobInput) -> "_Question":
        """Divide the pattern before its first name with a wildcard."""
        pattern = args.pattern.removeprefix("./")
        parts = pattern.split("/")
        plain = 0
        while plain < len(parts) - 1 and not has_magic(parts[plain]):
            plain += 1
        start = "/".join(parts[:plain])
        below = "/".join(filter(None, (args.path, start))) or "."
        folder = (start or "/") if pattern.startswith("/") else below
        return cls(folder, "/".join(parts[plain:]) or "**", is_anchored=len(parts) > 1)


def _request(folder: Path, question: _Question) -> SearchRequest | None:
    if ".." in question.glob.split("/"):
        raise ToolError(f"the glob pattern has .. behind a wildcard, in {question.glob}; put it into path")
    compile_glob(question.glob)
    if not folder.is_dir():
        return None
    return SearchRequest(str(folder), "listing", files=Selection.below(folder, name_globs=name_globs(question.glob)))


def _answer(question: _Question, found: Found, prefix: PathPrefix) -> Output:
    regex = compile_glob(question.glob, is_anchored=question.is_anchored)
    files = [path for path in parse_listing(found.stdout) if regex.fullmatch(path)]
    if not files:
        return _nothing("what .gitignore excludes is searched only where the pattern names its folder", *found.notes)
    total = f"{len(files):,}{'+' if found.is_partial else ''}"
    notes = list(found.notes)
    if len(files) > MAX_FILES or found.is_partial:
        notes.append(f"the newest {min(MAX_FILES, len(files))} of {total} files; use a narrower pattern to see others")
    shown = tuple(prefix.shown(path) for path in files[:MAX_FILES])
    return Output(with_notes(shown, tuple(notes)), SummaryDisplay(text=f"{total} file{'s' if total != '1' else ''}"))


def _nothing(*notes: str) -> Output:
    return Output(with_notes((), ("no files found; " + notes[0], *notes[1:])), SummaryDisplay(text="no files"))
