"""Make docs/images/demo.png: the output of `panpan demo --fast` on a terminal, as a picture.

    .venv/bin/python scripts/screenshot.py

The output is the real one. The terminal is emulated only as far as the demo needs it: lines, wrapping, bold, dim and
eight colours. An unknown escape sequence is an error, so that the picture never differs from a real terminal. The font
is DejaVu Sans Mono (Debian: fonts-dejavu-core) if it is found, else Pillow's own.
"""

import errno
import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "demo.png"
COLUMNS = 105
MAX_BYTES = 150_000
FONT_SIZE = 15
MARGIN = 16
LINE_GAP = 3

BACKGROUND, FOREGROUND = (24, 26, 31), (221, 224, 230)
COLOUR_BY_CODE = {31: (240, 113, 120), 32: (152, 195, 121), 33: (229, 192, 123), 36: (86, 182, 194)}
FONT_FOLDERS = (Path("/usr/share/fonts/truetype/dejavu"), Path.home() / ".fonts", Path("/Library/Fonts"))

_PIECE = re.compile(r"\x1b\[([\d;]*)m|(\r?\n)|([^\x00-\x1f\x7f-\x9f])")


@dataclass(frozen=True, slots=True)
class Style:
    """Look of a character."""

    is_bold: bool = False
    is_dim: bool = False
    colour: tuple[int, int, int] = FOREGROUND

    def after(self, codes: str) -> "Style":
        """Return the style after an SGR sequence (ECMA-48, section 8.3.117).

        Raises:
            ValueError: The sequence has a code that is not drawn here.
        """
        style = self
        for code in map(int, (codes or "0").split(";")):
            if code == 0:
                style = Style()
            elif code in (1, 2):
                style = replace(style, is_bold=code == 1, is_dim=code == 2)
            elif code in COLOUR_BY_CODE:
                style = replace(style, colour=COLOUR_BY_CODE[code])
            else:
                raise ValueError(f"the demo uses the SGR code {code}, which is not drawn here")
        return style


Row: TypeAlias = list[tuple[str, Style]]
Font: TypeAlias = ImageFont.FreeTypeFont | ImageFont.ImageFont


def run_on_terminal(command: list[str], columns: int) -> str:
    """Return the output of a command on a terminal of this width.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    chunks = []
    while chunk := _read(ours):
        chunks.append(chunk)
    os.close(ours)
    if process.wait() != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return b"".join(chunks).decode()


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65_536)
    except OSError as error:
        if error.errno != errno.EIO:  # EIO on Linux: no process has the terminal open any more
            raise
        return b""


def rows_of(output: str, columns: int) -> list[Row]:
    """Return the rows of the screen, wrapped as a terminal does.

    Raises:
        ValueError: The output holds an escape sequence or a control character that is not drawn here.
    """
    rows: list[Row] = [[]]
    style = Style()
    position = 0
    while position < len(output):
        match = _PIECE.match(output, position)
        if match is None:
            raise ValueError(f"the demo prints {output[position : position + 10]!r}, which is not drawn here")
        position = match.end()
        codes, line_end, char = match.groups()
        if codes is not None:
            style = style.after(codes)
        elif line_end is not None:
            rows.append([])
        else:
            if len(rows[-1]) == columns:
                rows.append([])
            rows[-1].append((char, style))
    while rows and not rows[-1]:
        rows.pop()
    return rows


def drawn(rows: list[Row], columns: int) -> Image.Image:
    """Return the rows as a picture."""
    regular, bold = _font("DejaVuSansMono.ttf"), _font("DejaVuSansMono-Bold.ttf")
    width = max(round(regular.getlength("M")), 1)
    top, bottom = regular.getbbox("Åg│")[1], regular.getbbox("Åg│")[3]
    height = round(bottom - min(top, 0)) + LINE_GAP
    size = (columns * width + 2 * MARGIN, len(rows) * height + 2 * MARGIN)
    image = Image.new("RGB", size, BACKGROUND)
    draw = ImageDraw.Draw(image)
    for number, row in enumerate(rows):
        for column, (char, style) in enumerate(row):
            place = (MARGIN + column * width, MARGIN + number * height)
            draw.text(place, char, fill=_shade(style), font=bold if style.is_bold else regular)
    return image


def _shade(style: Style) -> tuple[int, int, int]:
    if not style.is_dim:
        return style.colour
    red, green, blue = ((3 * own + 2 * behind) // 5 for own, behind in zip(style.colour, BACKGROUND, strict=True))
    return red, green, blue


def _font(name: str) -> Font:
    for folder in FONT_FOLDERS:
        if (folder / name).is_file():
            return ImageFont.truetype(folder / name, FONT_SIZE)
    return ImageFont.load_default(FONT_SIZE)


def main() -> int:
    """Write the picture; return 1 if it is too large for the repository."""
    panpan = Path(sys.executable).with_name("panpan")
    output = run_on_terminal([str(panpan), "demo", "--fast"], COLUMNS)
    picture = drawn(rows_of(output, COLUMNS), COLUMNS).quantize(256, dither=Image.Dither.NONE)
    data = BytesIO()
    picture.save(data, "PNG", optimize=True)
    size = data.tell()
    if size > MAX_BYTES:
        sys.stderr.write(f"the picture has {size:,} bytes where {MAX_BYTES:,} are the most\n")
        return 1
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_bytes(data.getvalue())
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: {picture.width} x {picture.height}, {size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
