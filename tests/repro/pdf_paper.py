"""A PDF of one page: a title, prose, and a table with its caption."""

from collections.abc import Iterator, Sequence

_LEFT, _TOP, _LEADING = 72, 720, 16
_COLUMNS = (72, 200, 300)
"""Left edges of the table's columns, in points."""


def pdf_paper(title: str, prose: Sequence[str], caption: str, rows: Sequence[Sequence[str]]) -> bytes:
    """Return a PDF, of plain text that any reader finds."""
    lines = [(18, [(_LEFT, title)]), *((10, [(_LEFT, line)]) for line in prose), (10, [(_LEFT, caption)])]
    lines += [(10, list(zip(_COLUMNS, row, strict=False))) for row in rows]
    text = "\n".join(_shown(lines))
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(text)} >>\nstream\n{text}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("ascii")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n"
    end += f"<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + end.encode("ascii")


def _shown(lines: Sequence[tuple[int, Sequence[tuple[int, str]]]]) -> Iterator[str]:
    height = _TOP
    for size, cells in lines:
        for left, text in cells:
            escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
            yield f"BT /F1 {size} Tf {left} {height} Td ({escaped}) Tj ET"
        height -= _LEADING + size // 2


VOTES = pdf_paper(
    "Votes on messages",
    [
        "We ask three simple rules if a message is spam, and let their majority decide.",
        "The rules look for a word, a mark and the length. We count right answers over all messages.",
    ],
    "Table 1: Accuracy and recall of the rules in percent.",
    [
        ["Rule", "Accuracy (%)", "Recall (%)"],
        ["majority", "87.18", "83.33"],
        ["keyword", "90.00", "88.98"],
    ],
)
"""The paper of message-votes."""
