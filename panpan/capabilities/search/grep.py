"""Grep: find lines or files by a regular expression.

The rule: the same question gets the same answer, in the order of paths, whichever search program runs.
"""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from anyio import to_thread
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext, WordSearch
from panpan.errors import ToolError
from panpan.system.files.globs import compile_glob, name_globs
from panpan.system.files.paths import PathResolver
from panpan.system.files.protected import may_name_secrets
from panpan.system.files.read_file import listed_folder
from panpan.system.text.terminal_text import printable
from panpan.text_search.engine import (
    Answer,
    Found,
    PathPrefix,
    Query,
    Record,
    RipgrepFinder,
    SearchRequest,
    Selection,
    cut_line,
    find_ripgrep,
    numbered_line,
    page_of,
    parse_records,
    search,
    with_notes,
)
from panpan.types.content import SummaryDisplay
from panpan.types.dataclass import dataclass
from panpan.types.events import Output, ToolYield

NO_MATCHES = "no matches"
"""The summary of a search that found nothing."""

_MOST_SECRETS_NAMED = 3

_ANSWER_BY_MODE: dict[str, Answer] = {"content": "lines", "files_with_matches": "files", "count": "counts"}


class GrepInput(BaseModel):
    """Arguments of Grep."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    pattern: str = Field(min_length=1, description="Regular expression")
    path: str | None = Field(default=None, description="File or folder; default: working directory")
    glob: str | None = Field(default=None, description="Only these files, e.g. *.{ts,tsx} or !*.min.js")
    type: str | None = Field(default=None, description="Only this file type, e.g. py")
    output_mode: Literal["content", "files_with_matches", "count"] = "files_with_matches"
    after: int | None = Field(default=None, ge=0, le=500, alias="-A", description="Context lines, with content")
    before: int | None = Field(default=None, ge=0, le=500, alias="-B")
    around: int | None = Field(default=None, ge=0, le=500, validation_alias=AliasChoices("-C", "context"))
    has_numbers: bool = Field(default=True, alias="-n")
    ignore_case: bool = Field(default=False, alias="-i")
    multiline: bool = Field(default=False, description="Let . and the pattern span lines")
    head_limit: int = Field(default=250, ge=0, description="Most lines or entries")
    offset: int = Field(default=0, ge=0)


class GrepTool(Tool[GrepInput]):
    """Search file contents.

    A tool that searches by itself names with `withholds` the files, below the root of the workspace, that a rule speaks
    against showing. The gate asks about the searches of the model.
    """

    name = "Grep"
    question_template = "Search {title}?"
    input_model = GrepInput
    only_reads: ClassVar[bool] = True
    count_label = ("searched for", "pattern")

    def __init__(
        self, find: RipgrepFinder = find_ripgrep, withholds: Callable[[Path, Path], bool] = lambda *_: False
    ) -> None:
        self._find = find
        self._withholds = withholds

    def title(self, args: GrepInput) -> str:
        return printable(args.pattern if not args.path else f"{args.pattern} in {args.path}")

    async def effects(self, args: GrepInput, ctx: ToolContext) -> Effects:
        return Effects(searches=(args.path or ".",), searched_names=args.glob)

    async def run(self, args: GrepInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        root = ctx.paths.resolve(args.path or ".", access="read")
        request = await to_thread.run_sync(_request, args, root, abandon_on_cancel=True)
        prefix = PathPrefix.of(Path(request.folder), ctx.paths.cwd)
        found = await search(request, self._find(ctx.paths))
        is_kept = None if request.file is not None else self._file_filter(args.glob, prefix, root, ctx.paths)
        if request.file is None:
            found = replace(found, notes=(*found.notes, *await to_thread.run_sync(_secrets_note, root, ctx.paths)))
        answer = partial(_answer, args, request.answer, found, prefix, is_kept)
        yield await to_thread.run_sync(answer, abandon_on_cancel=True)

    def _file_filter(
        self, glob: str | None, prefix: PathPrefix, root: Path, paths: PathResolver
    ) -> Callable[[str], bool]:
        """Return the test for files that count.

        Its path fits from the folder of the search or the working directory, and it may be shown. No search program
        follows links in a folder, so the path is canonical.
        """
        regexes = [compile_glob(part) for part in _glob_parts(glob)[0]]

        def is_kept(relative: str) -> bool:
            fits = any(regex.fullmatch(relative) or regex.fullmatch(prefix.prefix + relative) for regex in regexes)
            path = root / relative
            return (fits or not regexes) and paths.may_show(path) and not self._withholds(path, paths.root)

        return is_kept


def _request(args: GrepInput, root: Path) -> SearchRequest:
    if "\0" in args.pattern:
        raise ToolError("the pattern holds a NUL character; write it as \\x00")
    if not root.exists():
        raise ToolError(f"{args.path} does not exist", advice="use LS or Glob to see what does")
    if not (root.is_dir() or root.is_file()):
        raise ToolError(f"{args.path} is neither a file nor a folder, so it cannot be searched")
    folder = root if root.is_dir() else root.parent
    included, excluded = _glob_parts(args.glob)
    names = [name_globs(glob) for glob in included]
    around = args.around or 0
    query = Query(
        args.pattern,
        ignore_case=args.ignore_case,
        is_multiline=args.multiline,
        before=around if args.before is None else args.before,
        after=around if args.after is None else args.after,
    )
    files = Selection.below(
        folder,
        file_type=args.type or None,
        # Only narrows the search: whatever the names let through is matched against the whole glob again.
        name_globs=tuple(glob for globs in names for glob in globs) if all(names) and not args.type else (),
        excluded=excluded,
    )
    name = None if root.is_dir() else root.name
    return SearchRequest(str(folder), _ANSWER_BY_MODE[args.output_mode], query, files, file=name)


def _glob_parts(glob: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    parts: list[str] = []
    for word in (glob or "").split():
        parts.extend([word] if "{" in word else filter(None, word.split(",")))
    for part in parts:
        compile_glob(part.removeprefix("!"))  # so that every program reports a mistake in the same words
    included = tuple(part.removeprefix("./") for part in parts if not part.startswith("!"))
    return included, tuple(part[1:] for part in parts if part.startswith("!"))


def _secrets_note(root: Path, paths: PathResolver) -> list[str]:
    """Return the note about files for secrets right in the folder.

    It says the same whether they match or not; otherwise one could ask for what is in them, letter by letter.
    """
    try:
        with listed_folder(root) as folder:
            entries = sorted(root / entry.name for entry in os.scandir(folder) if may_name_secrets(entry.name))
    except OSError:
        return []
    names = [entry.name for entry in entries if not paths.may_show(entry)]
    shown = ", ".join(printable(name) for name in names[:_MOST_SECRETS_NAMED])
    return [f"left out, since they may hold secrets: {shown}"] if names else []


def _answer(
    args: GrepInput, answer: Answer, found: Found, prefix: PathPrefix, is_kept: Callable[[str], bool] | None
) -> Output:
    records = parse_records(found.stdout, answer, is_kept)
    noun = "lines" if answer == "lines" else "files"
    show = _Lines(records, args, prefix).line if answer == "lines" else partial(_file_line, records, prefix)
    page = page_of(
        len(records), show, offset=args.offset, limit=args.head_limit, is_partial=found.is_partial, noun=noun
    )
    notes = [*found.notes, page.note]
    total = f"{len(records):,}{'+' if found.is_partial else ''}"
    summary = f"{total} {noun.removesuffix('s') if total == '1' else noun}"
    if answer == "counts" and records:
        summary = f"{sum(int(rest) for _, rest in records):,} in {summary}"
        notes.insert(0, summary)
    if not records:
        summary = NO_MATCHES
        hint = "; a pattern with \\n needs multiline" if "\\n" in args.pattern and not args.multiline else ""
        notes = [NO_MATCHES + hint, *notes]
    return Output(with_notes(page.lines, tuple(notes)), SummaryDisplay(text=summary))


def _file_line(records: Sequence[Record], prefix: PathPrefix, number: int) -> str:
    path, count = records[number]
    return f"{prefix.shown(path)}:{count.decode()}" if count else prefix.shown(path)


@dataclass(frozen=True, slots=True)
class _Lines:
    records: Sequence[Record]
    args: GrepInput
    prefix: PathPrefix

    def line(self, index: int) -> str:
        path, rest = self.records[index]
        number, mark, text = numbered_line(rest)
        place = f"{number}{mark}" if self.args.has_numbers and number else ""
        separator = "--\n" if self._starts_a_group(index, path, number) else ""
        return f"{separator}{self.prefix.shown(path)}{mark}{place}{cut_line(text)}"

    def _starts_a_group(self, index: int, path: bytes, number: int) -> bool:
        has_context = any((self.args.before, self.args.after, self.args.around))
        if not has_context or index == self.args.offset:
            return False
        above, rest = self.records[index - 1]
        return above != path or numbered_line(rest)[0] + 1 != number


class GrepWords(WordSearch):
    """Finds words with Grep."""

    def __init__(self, withholds: Callable[[Path, Path], bool]) -> None:
        self._grep = GrepTool(withholds=withholds)

    async def lines_with(self, word: str, ctx: ToolContext, *, limit: int) -> str:
        look = GrepInput(pattern=rf"\b{word}\b", output_mode="content", head_limit=limit)
        async with aclosing(self._grep.run(look, ctx)) as outputs:
            async for found in outputs:
                if isinstance(found, Output) and found.display != SummaryDisplay(text=NO_MATCHES):
                    return found.text
        return ""
