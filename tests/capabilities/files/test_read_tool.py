import json
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from panpan.capabilities.files.read import ReadInput, ReadTool
from panpan.core.tool import digest_of
from panpan.documents.prepared_documents import images_for_model, page_pictures, pdf_text
from panpan.documents.workers import frame_files, unframe_files
from panpan.errors import ToolError
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.content import ImageBlock, SummaryDisplay, TextBlock


async def read(workspace, name, **more):
    return await workspace.call("Read", file_path=name, **more)


class TestText:
    async def test_lines_are_numbered(self, workspace):
        workspace.put("f.txt", "one\n\n\ttwo\n")
        output = await read(workspace, "f.txt")
        assert output.content == "     1\tone\n     2\t\n     3\t\ttwo"
        assert output.display.text == "3 lines"

    async def test_missing_final_newline_makes_no_difference(self, workspace):
        workspace.put("f.txt", "one\ntwo")
        assert (await read(workspace, "f.txt")).content == "     1\tone\n     2\ttwo"

    async def test_part_says_how_to_go_on(self, workspace):
        workspace.put("f.txt", "".join(f"l{number}\n" for number in range(1, 101)))
        output = await read(workspace, "f.txt", offset=10, limit=2)
        assert output.content == "    10\tl10\n    11\tl11\n(lines 10-11 of 100; go on with offset=12)"
        assert output.display.text == "lines 10-11 of 100"

    async def test_last_part_has_no_advice_to_go_on(self, workspace):
        workspace.put("f.txt", "a\nb\nc\n")
        assert (await read(workspace, "f.txt", offset=3, limit=1)).content == "     3\tc"

    async def test_offset_0_is_the_first_line(self, workspace):
        workspace.put("f.txt", "a\n")
        assert (await read(workspace, "f.txt", offset=0)).content == "     1\ta"

    async def test_read_shows_2000_lines_by_default(self, workspace):
        workspace.put("f.txt", "x\n" * 2_500)
        lines = (await read(workspace, "f.txt")).content.split("\n")
        assert len(lines) == 2_001
        assert lines[-1] == "(lines 1-2000 of 2500; go on with offset=2001)"

    async def test_pages_of_long_lines_are_bounded_and_join_up(self, workspace):
        # given
        wanted = [f"{number:04}" + "x" * 900 for number in range(500)]
        workspace.put("f.txt", "\n".join(wanted))

        # when the model goes on as it is told
        found, offset, pages = [], 1, 0
        while offset:
            content = (await read(workspace, "f.txt", offset=offset)).content
            assert len(content) <= 60_000
            lines = content.split("\n")
            note = lines.pop() if "go on with" in lines[-1] else ""
            found += [line.split("\t", 1)[1] for line in lines]
            offset = int(note.split("offset=")[1][:-1]) if note else 0
            pages += 1

        # then
        assert found == wanted
        assert pages > 5

    async def test_long_line_is_cut_with_a_note(self, workspace):
        workspace.put("f.txt", "a" * 2_100 + "\nb\n")
        lines = (await read(workspace, "f.txt")).content.split("\n")
        assert lines[0] == "     1\t" + "a" * 2_000 + "… (line cut; 100 more characters)"
        assert lines[1] == "     2\tb"

    async def test_empty_file_is_reported_as_empty(self, workspace):
        workspace.put("f.txt", "")
        assert (await read(workspace, "f.txt")).content == "(f.txt is empty)"
        await workspace.call("Write", file_path="f.txt", content="x")

    async def test_offset_past_the_end_is_refused_with_the_line_count(self, workspace):
        workspace.put("f.txt", "a\nb\n")
        assert "has only 2 lines" in await workspace.refusal("Read", file_path="f.txt", offset=3)
        assert "not been read" in await workspace.refusal("Write", file_path="f.txt", content="x")

    @pytest.mark.parametrize(
        ("data", "shown", "note"),
        [
            (b"a\r\nb\r\n", ["a", "b"], ""),
            (b"a\rb\r", ["a", "b"], ""),
            ("\u2028é\x0b\x85\n".encode(), ["\u2028é\x0b\x85"], ""),
            (b"\xef\xbb\xbfa\n", ["a"], "(encoding: UTF-8 with BOM)"),
            ("ä漢\nb\n".encode("utf-16"), ["ä漢", "b"], "(encoding: UTF-16 LE with BOM)"),
            (b"\xfe\xff" + "ä\n".encode("utf-16-be"), ["ä"], "(encoding: UTF-16 BE with BOM)"),
            ("ä\n".encode("utf-32"), ["ä"], "(encoding: UTF-32 LE with BOM)"),
            ("fen\xeatre\n".encode("latin-1"), ["fenêtre"], "(not UTF-8; read as Windows-1252)"),
            (b"x\x81y\n", ["x\x81y"], "(not UTF-8; read as Latin-1)"),
            (
                "éé".encode() + b"\xff\n",
                ["éé\ufffd"],
                "(not valid UTF-8: damaged bytes are shown as \ufffd, and kept by edits elsewhere)",
            ),
            (
                '<?xml version="1.0" encoding="windows-1251"?>да\n'.encode("cp1251"),
                ['<?xml version="1.0" encoding="windows-1251"?>да'],
                "(encoding: windows-1251 (as it declares))",
            ),
        ],
    )
    async def test_encodings_are_understood_and_named(self, workspace, data, shown, note):
        workspace.put("f.txt", data)
        lines = [f"{number:>6}\t{line}" for number, line in enumerate(shown, 1)]
        assert (await read(workspace, "f.txt")).content == "\n".join(lines + [note] * bool(note))

    async def test_read_file_is_noted_with_the_digest_of_all_bytes(self, workspace):
        path = workspace.put("f.txt", b"a\r\nb\r\n" * 3_000)
        await read(workspace, "f.txt", limit=1)
        assert workspace.ctx.seen_files.digest(path) == digest_of(path.read_bytes())


class TestRefusals:
    async def test_missing_file_error_names_similar_ones(self, workspace):
        workspace.put("src/settings.py", "")
        text = await workspace.refusal("Read", file_path="src/setings.py")
        assert text == "src/setings.py does not exist; there is src/settings.py"

    async def test_missing_folder_error_names_the_working_directory(self, workspace):
        text = await workspace.refusal("Read", file_path="no/such.py")
        assert str(workspace.root) in text

    async def test_folder_is_referred_to_ls(self, workspace):
        (workspace.root / "d").mkdir()
        assert "call LS" in await workspace.refusal("Read", file_path="d")

    async def test_binary_file_is_refused_with_advice(self, workspace):
        workspace.put("f.bin", b"\x7fELF\x02\x01\x01\x00" * 40)
        text = await workspace.refusal("Read", file_path="f.bin")
        assert "binary file of 320 bytes" in text
        assert "Bash" in text

    @pytest.mark.parametrize("data", [b"\xff\xfea", b"\x01\x02\x03\x04" * 20 + b"text"])
    async def test_incomplete_text_is_binary(self, workspace, data):
        workspace.put("f", data)
        assert "binary" in await workspace.refusal("Read", file_path="f")

    async def test_fifo_and_device_never_block(self, workspace):
        os.mkfifo(workspace.root / "pipe")
        assert "not a regular file" in await workspace.refusal("Read", file_path="pipe")

    async def test_too_large_file_is_refused_with_advice(self, workspace):
        with (workspace.root / "big").open("wb") as file:
            file.truncate(50_000_001)
        text = ""
        with pytest.raises(Exception, match="at most 50,000,000") as caught:
            await read(workspace, "big")
        text = str(caught.value)
        assert "Grep" in text

    async def test_path_outside_is_refused(self, workspace, tmp_path):
        (tmp_path / "outside.txt").write_text("secret")
        assert "outside" in await workspace.refusal("Read", file_path="../outside.txt")

    async def test_pages_are_for_pdfs(self, workspace):
        workspace.put("f.txt", "a\n")
        assert "not a PDF" in await workspace.refusal("Read", file_path="f.txt", pages="1")

    def test_misspelt_and_senseless_arguments_are_refused(self):
        for arguments in ({"path": "f"}, {"file_path": "f", "limit": 0}, {"file_path": "f", "offset": -1}):
            with pytest.raises(ValidationError):
                ReadInput.model_validate(arguments)


def picture(size=(8, 6), mode="RGB", image_format="PNG", **more):
    buffer = BytesIO()
    Image.new(mode, size).save(buffer, image_format, **more)
    return buffer.getvalue()


class TestImages:
    @pytest.mark.parametrize("image_format", ["PNG", "JPEG", "GIF", "WEBP"])
    async def test_small_picture_is_sent_unchanged(self, workspace, image_format):
        data = picture(image_format=image_format)
        workspace.put("f.img", data)

        output = await read(workspace, "f.img")

        text, block = output.content
        assert text == TextBlock(text=f"f.img: {image_format} image, 8x6 pixels")
        assert isinstance(block, ImageBlock)
        assert block.source.media_type == f"image/{image_format.lower()}"
        assert b64decode(block.source.data) == data

    @pytest.mark.parametrize(
        ("mode", "image_format", "media_type"),
        [
            ("RGB", "JPEG", "image/jpeg"),
            ("CMYK", "JPEG", "image/jpeg"),
            ("RGBA", "PNG", "image/png"),
            ("P", "PNG", "image/png"),
            ("1", "PNG", "image/png"),
            ("I;16", "PNG", "image/png"),
            ("LA", "PNG", "image/png"),
            ("P", "GIF", "image/png"),
            ("RGB", "WEBP", "image/png"),
        ],
    )
    async def test_large_picture_is_scaled_down(self, workspace, mode, image_format, media_type):
        workspace.put("f", picture((3136, 100), mode, image_format))
        text, block = (await read(workspace, "f")).content
        assert "3136x100 pixels, shown at 1568x50" in text.text
        assert block.source.media_type == media_type
        assert Image.open(BytesIO(b64decode(block.source.data))).size == (1568, 50)

    async def test_incompressible_picture_stays_below_the_api_limit(self, workspace):
        buffer = BytesIO()
        Image.frombytes("RGB", (1568, 1568), os.urandom(1568 * 1568 * 3)).save(buffer, "PNG", compress_level=0)
        workspace.put("f.png", buffer.getvalue())
        _, block = (await read(workspace, "f.png")).content
        assert len(block.source.data) < 5_000_000
        assert block.source.media_type == "image/jpeg"

    async def test_scaled_photograph_stands_upright(self, workspace):
        exif = Image.Exif()
        exif[0x0112] = 6  # turned by 90 degrees
        workspace.put("f.jpg", picture((3136, 100), image_format="JPEG", exif=exif))
        _, block = (await read(workspace, "f.jpg")).content
        assert Image.open(BytesIO(b64decode(block.source.data))).size == (50, 1568)

    @pytest.mark.parametrize("image_format", ["PNG", "JPEG", "GIF", "WEBP"])
    async def test_damaged_picture_is_refused(self, workspace, image_format):
        data = picture((200, 200), image_format=image_format)
        workspace.put("f", data[: len(data) // 2])
        assert "damaged" in await workspace.refusal("Read", file_path="f")

    async def test_picture_with_too_many_pixels_is_refused_quietly(self, workspace):
        data = bytearray(picture(mode="1"))
        data[16:24] = (20_000).to_bytes(4, "big") * 2
        import zlib

        data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
        workspace.put("f.png", bytes(data))
        assert "too many" in await workspace.refusal("Read", file_path="f.png")

    async def test_damaged_picture_leaves_the_others(self):
        good, cut = picture(), picture((200, 200))[:100]

        first, second, third = await images_for_model([good, cut, good], "f", CommandSandbox())

        assert first == third
        assert "f is a damaged PNG image" in str(second)

    async def test_slow_pictures_are_given_up(self):
        first, second = await images_for_model([picture()] * 2, "f", CommandSandbox(), within_s=0.01)
        assert str(first) == str(second) == "f cannot be decoded: it took more than 0.01 s"

    def test_pictures_are_decoded_outside_the_session_process(self, tmp_path):
        (tmp_path / "f.png").write_bytes(picture())
        reads = (
            "import asyncio, sys\n"
            "from pathlib import Path\n"
            "from tests.capabilities.files.conftest import Workspace\n"
            "output = asyncio.run(Workspace(Path(sys.argv[1])).call('Read', file_path='f.png'))\n"
            "print(output.content[1].source.media_type, 'PIL' in sys.modules)\n"
        )
        said = subprocess.run([sys.executable, "-c", reads, str(tmp_path)], check=True, capture_output=True, text=True)
        assert said.stdout == "image/png False\n"

    async def test_picture_counts_as_read(self, workspace):
        path = workspace.put("f.png", picture())
        await read(workspace, "f.png")
        assert workspace.ctx.seen_files.digest(path) is not None


def pdf(*texts):
    """A PDF with one line of text a page."""
    count = len(texts)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(texts):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode()
    start = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    data += "".join(f"{place:010} 00000 n \n" for place in places).encode()
    return data + f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()


class TestPdf:
    async def test_text_is_shown_page_by_page(self, workspace):
        workspace.put("f.pdf", pdf("Hello world", "", "Second"))
        output = await read(workspace, "f.pdf")
        assert output.content == (
            "── page 1 of 3 ──\nHello world\n── page 2 of 3 ──\n(no text)\n── page 3 of 3 ──\nSecond"
        )

    @pytest.mark.parametrize(
        ("pages", "first", "last"), [(None, 1, 10), ("3", 3, 3), ("2-4", 2, 4), ("5-", 5, 24), ("29-99", 29, 30)]
    )
    async def test_pages_are_chosen(self, workspace, pages, first, last):
        workspace.put("f.pdf", pdf(*(f"text {number}" for number in range(1, 31))))
        content = (await read(workspace, "f.pdf", pages=pages)).content
        assert [line for line in content.split("\n") if line.startswith("text")] == [
            f"text {number}" for number in range(first, last + 1)
        ]
        assert ("go on with" in content) == (last < 30)

    async def test_default_pages_say_how_to_go_on(self, workspace):
        workspace.put("f.pdf", pdf(*("x" * 30)))
        content = (await read(workspace, "f.pdf")).content
        assert content.endswith('(pages 1-10 of 30; go on with pages="11-20")')

    @pytest.mark.parametrize("pages", ["0", "31", "5-3", "1-21", "a", "1,2", "-3", ""])
    async def test_senseless_pages_are_refused(self, workspace, pages):
        workspace.put("f.pdf", pdf(*("x" * 30)))
        await workspace.refusal("Read", file_path="f.pdf", pages=pages)

    async def test_lines_are_not_for_pdfs(self, workspace):
        workspace.put("f.pdf", pdf("x"))
        assert "pages" in await workspace.refusal("Read", file_path="f.pdf", offset=2)

    async def test_long_pdf_is_bounded(self, workspace):
        workspace.put("f.pdf", pdf(*(["word " * 4_000] * 5)))
        content = (await read(workspace, "f.pdf")).content
        assert len(content) <= 60_000
        assert 'go on with pages="3-5"' in content

    async def test_pages_are_shown_as_pictures(self, workspace):
        workspace.put("f.pdf", pdf("Hello", "World"))

        text, label, page = (await read(workspace, "f.pdf", pages="2", pictures=True)).content

        assert "World" in text.text
        assert label.text == "page 2, as it looks:"
        drawn = Image.open(BytesIO(b64decode(page.source.data)))
        assert drawn.size == (1212, 1568)
        assert drawn.convert("L").getextrema() == (0, 255)  # black on white

    async def test_scan_is_shown_as_pictures_by_default(self, workspace):
        buffer = BytesIO()
        Image.new("RGB", (300, 200), "red").save(buffer, "PDF")
        workspace.put("scan.pdf", buffer.getvalue())

        text, _, page = (await read(workspace, "scan.pdf")).content

        assert "no text but a picture" in text.text
        assert Image.open(BytesIO(b64decode(page.source.data))).getpixel((5, 5)) == pytest.approx((255, 0, 0), abs=8)

    async def test_pages_drawn_at_once_are_limited(self, workspace):
        workspace.put("f.pdf", pdf(*("x" * 9)))
        content = (await read(workspace, "f.pdf", pages="2-9", pictures=True)).content
        assert [block.text for block in content[1:] if isinstance(block, TextBlock)] == [
            *(f"page {number}, as it looks:" for number in range(2, 6)),
            '(4 pages are drawn at once; go on with pages="6-")',
        ]

    async def test_undrawable_page_is_reported(self):
        with pytest.raises(ToolError, match="cannot be drawn: the file is damaged"):
            await page_pictures(b"%PDF-1.4 and no more", [1], "f.pdf", CommandSandbox())

    async def test_missing_page_leaves_the_others(self):
        label, _ = await page_pictures(pdf("x"), [7, 1], "f.pdf", CommandSandbox())
        assert label.text == "page 1, as it looks:"

    @given(st.lists(st.binary(max_size=20), max_size=5))
    def test_framed_files_round_trip(self, files):
        assert unframe_files(frame_files(files)) == files

    @given(st.binary(max_size=100))
    @example(b"-0000008")
    @example(b"\xff" * 9)
    def test_unframed_never_returns_more_than_its_input(self, output):
        assert sum(map(len, unframe_files(output))) <= len(output)

    async def test_pictures_are_of_pdfs(self, workspace):
        workspace.put("f.txt", "x")
        assert "not a PDF" in await workspace.refusal("Read", file_path="f.txt", pictures=True)

    @pytest.mark.parametrize(
        ("count", "pages", "said"),
        [(1, None, "1 page"), (3, None, "3 pages"), (30, None, "pages 1-10 of 30"), (3, "2-", "pages 2-3 of 3")],
    )
    async def test_display_names_the_number_of_pages(self, workspace, count, pages, said):
        workspace.put("f.pdf", pdf(*("x" * count)))
        assert (await read(workspace, "f.pdf", pages=pages)).display == SummaryDisplay(text=f"PDF, {said}")

    async def test_slow_pdf_is_given_up(self):
        with pytest.raises(ToolError, match=r"it took more than 0\.0001 s; try fewer pages"):
            await pdf_text(pdf("x"), None, "f.pdf", CommandSandbox(), within_s=0.0001)

    @pytest.mark.parametrize("data", [b"%PDF-1.4\n", b"%PDF-1.7\n" + os.urandom(500), pdf("x")[:200]])
    async def test_damaged_pdf_is_refused(self, workspace, data):
        workspace.put("f.pdf", data)
        assert "PDF" in await workspace.refusal("Read", file_path="f.pdf")

    async def test_encrypted_pdf_is_refused(self, workspace):
        from pypdf import PdfReader, PdfWriter

        writer = PdfWriter(PdfReader(BytesIO(pdf("x"))))
        writer.encrypt("secret", algorithm="RC4-128")
        buffer = BytesIO()
        writer.write(buffer)
        workspace.put("f.pdf", buffer.getvalue())
        assert "encrypted" in await workspace.refusal("Read", file_path="f.pdf")

    async def test_text_about_pdfs_is_a_text(self, workspace):
        workspace.put("f.py", 'MAGIC = b"%PDF-"\n')
        assert (await read(workspace, "f.py")).content == '     1\tMAGIC = b"%PDF-"'


def notebook(*cells):
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


class TestNotebooks:
    async def test_cells_are_shown_with_ids_sources_and_outputs(self, workspace):
        image = b64encode(picture()).decode()
        workspace.put(
            "f.ipynb",
            notebook(
                {"cell_type": "markdown", "id": "m1", "source": ["# Title\n", "text"], "metadata": {}},
                {
                    "cell_type": "code",
                    "id": "c1",
                    "source": "print(1)",
                    "outputs": [
                        {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                        {"output_type": "execute_result", "data": {"text/plain": "2", "image/png": image}},
                        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m: v"]},
                    ],
                },
            ),
        )

        output = await read(workspace, "f.ipynb")

        text, block = output.content
        assert text.text == (
            "── cell 1, markdown, id m1 ──\n# Title\ntext\n"
            "── cell 2, code, id c1 ──\nprint(1)\n── output:\n1\n── output:\n2\n(picture 1 below)\n── error:\nE: v\n"
            "(notebook with 2 cells; NotebookEdit changes one)"
        )
        assert isinstance(block, ImageBlock)
        assert output.display.text == "notebook, 2 cells"

    async def test_long_outputs_keep_their_beginning_and_end(self, workspace):
        output = {"output_type": "stream", "text": "first " + "x" * 10_000 + " last"}
        workspace.put("f.ipynb", notebook({"cell_type": "code", "source": "s", "outputs": [output]}))
        (text,) = (await read(workspace, "f.ipynb")).content
        assert "first" in text.text
        assert "last" in text.text
        assert len(text.text) < 3_000

    async def test_cell_with_many_outputs_is_bounded(self, workspace):
        output = {"output_type": "stream", "text": "x" * 1_900}
        workspace.put("f.ipynb", notebook(*[{"cell_type": "code", "source": "s", "outputs": [output] * 100}] * 5))
        (text,) = (await read(workspace, "f.ipynb")).content
        assert len(text.text) <= 60_000
        assert "go on with offset=2" in text.text

    async def test_pictures_of_cells_that_do_not_fit_are_omitted(self, workspace):
        shown = [{"data": {"image/png": b64encode(picture()).decode()}}]
        cells = [{"cell_type": "code", "source": "x" * 20_000, "outputs": shown} for _ in range(4)]
        workspace.put("f.ipynb", notebook(*cells))

        text, *pictures = (await read(workspace, "f.ipynb")).content

        assert len(pictures) == text.text.count(" below)")
        assert "go on with offset" in text.text

    async def test_unencodable_characters_are_replaced_everywhere(self, workspace):
        error = {"output_type": "error", "traceback": ["t\ud800"]}
        workspace.put("f.ipynb", notebook({"cell_type": "code\0", "id": "i\ud800", "source": "s", "outputs": [error]}))
        (text,) = (await read(workspace, "f.ipynb")).content
        assert text.text.startswith("── cell 1, code\ufffd, id i\ufffd ──\ns\n── error:\nt\ufffd\n")

    async def test_cells_are_paged(self, workspace):
        workspace.put("f.ipynb", notebook(*({"cell_type": "raw", "source": f"s{number}"} for number in range(9))))
        (text,) = (await read(workspace, "f.ipynb", offset=3, limit=2)).content
        assert "s2" in text.text
        assert "s4" not in text.text
        assert "go on with offset=5" in text.text
        assert "has only 9 cells" in await workspace.refusal("Read", file_path="f.ipynb", offset=10)

    @pytest.mark.parametrize(
        "data", ["{", "[]", '{"cells": 3}', '{"cells": [1]}', "[" * 100_000, '{"worksheets": []}', "plain"]
    )
    async def test_file_that_is_no_notebook_is_shown_as_text(self, workspace, data):
        workspace.put("f.ipynb", data)
        assert (await read(workspace, "f.ipynb")).content.startswith("     1\t")

    async def test_odd_cells_do_no_harm(self, workspace):
        cells = [
            {},
            {"cell_type": 3, "source": None, "outputs": [1, {}, {"data": 3}, {"data": {"image/png": "@@"}}]},
            {"source": [1, "\ud800"], "outputs": {"a": 1}, "id": 7},
            {"outputs": [{"output_type": "error"}, {"data": {"image/png": b64encode(b"no").decode()}}]},
        ]
        workspace.put("f.ipynb", notebook(*cells))
        (text,) = (await read(workspace, "f.ipynb")).content
        assert "(a picture that is damaged)" in text.text

    async def test_damaged_notebook_picture_leaves_the_others(self, workspace):
        bundles = [{"image/png": b64encode(data).decode()} for data in (picture((200, 200))[:100], picture())]
        outputs = [{"output_type": "display_data", "data": bundle} for bundle in bundles]
        workspace.put("f.ipynb", notebook({"cell_type": "code", "source": "s", "outputs": outputs}))

        text, damaged, whole = (await read(workspace, "f.ipynb")).content

        assert "(picture 1 below)" in text.text
        assert damaged.text.startswith("(picture 1: a picture of f.ipynb is a damaged PNG image")
        assert b64decode(whole.source.data) == picture()


def test_title_names_the_part():
    def title(**more):
        return ReadTool().title(ReadInput(file_path="f", **more))

    assert title() == "f"
    assert title(offset=5, limit=10) == "f (lines 5-14)"
    assert title(pages="1-3") == "f (pages 1-3)"
