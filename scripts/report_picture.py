"""Make docs/images/reproduction.png: the report of a reproduction in a browser, as a picture.

    .venv/bin/python -m scripts.report_picture digits-reproduction/report.html

The report is that of docs/reproduction.md, "A real package", with one seed. Debian's Chromium draws it.
"""

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image

from tests.faces.server.served_page import chromium

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "reproduction.png"
WIDTH = 1100
HEIGHT = 830
"""Pixels that show the verdicts; what follows are lists."""
MAX_BYTES = 150_000


def drawn(report: Path) -> bytes:
    """Return the beginning of a report as PNG."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        taken = page.screenshot()
    data = BytesIO()
    picture = Image.open(BytesIO(taken)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    picture.save(data, "PNG", optimize=True)
    return data.getvalue()


def main(names: list[str]) -> int:
    """Write the picture; return 1 if it is too large for the repository, and 2 without a report."""
    if len(names) != 1:
        sys.stderr.write("name one report.html\n")
        return 2
    data = drawn(Path(names[0]))
    if len(data) > MAX_BYTES:
        sys.stderr.write(f"the picture has {len(data):,} bytes where {MAX_BYTES:,} are the most\n")
        return 1
    PICTURE.write_bytes(data)
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: {len(data):,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
