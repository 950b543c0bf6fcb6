"""A program of its own that reads a document which a stranger made.

`python -m panpan.repro.papers.worker WANTED KIND SHOWN` reads the document from its input and writes `PaperTables`, or
`NamedRepositories`, or `{"error": why}`, as JSON. WANTED is `tables` or `repositories`.
"""

import json
import sys

from panpan.errors import ToolError
from panpan.repro.papers.paper_table import PaperTables
from panpan.repro.papers.repository_addresses import NamedRepositories, named_repositories


def read_tables(kind: str, data: bytes, shown: str) -> PaperTables:
    """Return the tables of a document.

    Args:
        kind: `pdf`, `html`, `markdown` or `latex`.
        data: The document.
        shown: Its name, for errors.

    Raises:
        ToolError: It cannot be read.
    """
    if kind == "pdf":
        from panpan.documents.read_words import read_words
        from panpan.repro.papers.pdf.tables import pdf_tables

        return pdf_tables(read_words(data, shown))
    from panpan.repro.papers import latex_tables, page_tables

    text = _text(data, shown)
    match kind:
        case "html":
            return page_tables.html_tables(text)
        case "latex":
            return latex_tables.latex_tables(text)
        case _:
            return page_tables.markdown_tables(text)


def read_repositories(kind: str, data: bytes, shown: str) -> NamedRepositories:
    """Return the repositories that a document names; arguments and errors as those of `read_tables`."""
    if kind == "pdf":
        from panpan.documents.read_links import text_with_links

        return named_repositories(text_with_links(data, shown))
    from panpan.repro.papers import latex_tables, page_tables

    text = _text(data, shown)
    match kind:
        case "html":
            return named_repositories(page_tables.html_text(text))
        case "latex":
            return named_repositories(latex_tables.latex_text(text))
        case _:
            return named_repositories(text)


def _text(data: bytes, shown: str) -> str:
    from panpan.system.text.file_text import decode_file

    decoded = decode_file(data)
    if decoded is None:
        raise ToolError(f"{shown} is no text; name a PDF, HTML, Markdown or LaTeX file")
    return decoded.readable


def main(wanted: str, kind: str, shown: str) -> None:
    """Answer for the document on standard input."""
    read = read_repositories if wanted == "repositories" else read_tables
    try:
        said = read(kind, sys.stdin.buffer.read(), shown).model_dump_json()
    except ToolError as error:
        said = json.dumps({"error": str(error)})
    sys.stdout.buffer.write(said.encode("utf-8", "replace"))


if __name__ == "__main__":
    main(*sys.argv[1:])
