"""Tables of a paper, a page or a README. The file is a stranger's: a sandboxed program reads it."""

import json
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from panpan.documents.read_pdf import is_pdf
from panpan.errors import ConfigError, ToolError
from panpan.repro.papers.paper_table import PaperTables
from panpan.system.processes.sandboxed_worker import WITHIN_S, run_parser
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.dataclass import dataclass

MAX_BYTES = 100_000_000
"""Largest file that is read."""
_MAX_ANSWER_BYTES = 20_000_000
_WORKER = "panpan.repro.papers.worker"
_Answer = TypeVar("_Answer", bound=BaseModel)
_KINDS = {".htm": "html", ".html": "html", ".xhtml": "html", ".tex": "latex", ".ltx": "latex"}


@dataclass(frozen=True, slots=True)
class ReadPaper:
    """A document that was read."""

    tables: PaperTables
    sha256: str
    """SHA-256 of the file; hex."""
    kind: str


def kind_of(name: str, data: bytes) -> str:
    """Return the kind of a document by its name and beginning: `pdf`, `html`, `latex` or `markdown`."""
    if is_pdf(data):
        return "pdf"
    named = _KINDS.get(Path(name).suffix.lower())
    if named:
        return named
    head = data[:2_000].lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return "html"
    return "latex" if b"\\documentclass" in head else "markdown"


async def read_paper(
    data: bytes, name: str, sandbox: CommandSandbox | None = None, *, within_s: float = WITHIN_S
) -> ReadPaper:
    """Return the tables of a document.

    Args:
        data: The file.
        name: Its name, for its kind and for errors.
        sandbox: Holds the program that reads it; the one that works here if None.
        within_s: Time that it may take, in seconds.

    Raises:
        ConfigError: It is damaged, encrypted or empty, or takes too much time or memory.
    """
    kind = kind_of(name, data)
    tables = await read_by_worker("tables", PaperTables, data, name, sandbox, within_s=within_s)
    return ReadPaper(tables, sha256(data).hexdigest(), kind)


async def read_by_worker(
    wanted: str,
    answer: type[_Answer],
    data: bytes,
    name: str,
    sandbox: CommandSandbox | None = None,
    *,
    within_s: float = WITHIN_S,
) -> _Answer:
    """Return what the sandboxed program finds in a document.

    Args:
        wanted: `tables` or `repositories`.
        answer: Type of its answer.
        data: The document.
        name: Its name, for its kind and for errors.
        sandbox: Holds the program; the one that works here if None.
        within_s: Time that it may take, in seconds.

    Raises:
        ConfigError: The document is damaged, encrypted or empty, or takes too much time or memory.
    """
    try:
        if not data.strip():
            raise ToolError(f"{name} is empty; name a PDF, HTML, Markdown or LaTeX file")
        held = sandbox or CommandSandbox(is_on=True)
        ended = await run_parser(
            _WORKER, [wanted, kind_of(name, data), name], data, held, max_bytes=_MAX_ANSWER_BYTES, within_s=within_s
        )
        if ended.timed_out:
            raise ToolError(f"{name} takes more than {within_s:g} s to read; write claims.toml by hand")
        if ended.exit_code != 0 or ended.is_truncated:
            raise ToolError(f"{name} is damaged, or takes too much memory; get a whole copy, or write claims by hand")
        said = json.loads(ended.stdout)
        if isinstance(said, dict) and "error" in said:
            raise ToolError(str(said["error"]))
        return answer.model_validate_json(ended.stdout)
    except ToolError as error:
        raise ConfigError(str(error)) from error
    except (ValueError, RecursionError, ValidationError) as error:
        raise ConfigError(f"{name} cannot be read: its reader was damaged by it; write claims.toml by hand") from error
