"""A program of its own that reads a document which a stranger made.

`python -m panpan.repro.papers.worker KIND SHOWN` reads the document from its input and writes `PaperTables`, or
`{"error": why}`, as JSON.
"""

import json
import sys

from panpan.errors import ToolError
from panpan.repro.papers.paper_table import PaperTables


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
        from panpan.repro.papers.pdf_tables import pdf_tables

        return pdf_tables(read_words(data, shown))
    from panpan.repro.papers import latex_tables, page_tables
    from panpan.system.text.file_text import decode_file

    decoded = decode_file(data)
    if decoded is None:
        raise ToolError(f"{shown} is no text; name a PDF, HTML, Markdown or LaTeX file")
    match kind:
        case "html":
            return page_tables.html_tables(decoded.readable)
        case "latex":
            return latex_tables.latex_tables(decoded.readable)
        case _:
            return page_tables.markdown_tables(decoded.readable)


def main(kind: str, shown: str) -> None:
    """Answer for the document on standard input."""
    try:
        said = read_tables(kind, sys.stdin.buffer.read(), shown).model_dump_json()
    except ToolError as error:
        said = json.dumps({"error": str(error)})
    sys.stdout.buffer.write(said.encode("utf-8", "replace"))


if __name__ == "__main__":
    main(*sys.argv[1:])
