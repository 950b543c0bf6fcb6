import os
import stat

import anyio
import pytest

from panpan.errors import ToolError
from panpan.types.content import DiffDisplay


async def edit(workspace, name, old, new, **more):
    return await workspace.call("Edit", file_path=name, old_string=old, new_string=new, **more)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(b"a\nb\nc\n", "b", "B", b"a\nB\nc\n", id="LF"),
        pytest.param(b"a\r\nb\r\nc\r\n", "b\nc", "b\nx\nc", b"a\r\nb\r\nx\r\nc\r\n", id="CRLF gets CRLF"),
        pytest.param(b"a\r\nb\r\nc\r\n", "\nb\n", "\n", b"a\r\nc\r\n", id="whole CRLF pairs are taken"),
        pytest.param(b"a\rb\rc", "b\nc", "b\nx\nc", b"a\rb\rx\rc", id="old Mac line breaks"),
        pytest.param(b"a\r\nb\nc\r\n", "b\n", "b\ny\n", b"a\r\nb\ny\r\nc\r\n", id="mixed: the rest stays"),
        pytest.param(b"a\r\nb\nc\r\nd", "a\nb\nc", "a\nB\nc", b"a\r\nB\nc\r\nd", id="mixed inside the match stays"),
        pytest.param(b"10%\r20%\rdone\nx\n", "20%", "30%", b"10%\r30%\rdone\nx\n", id="lone CR is a character"),
        pytest.param(b"\xef\xbb\xbfa\nb\n", "a\n", "A\n", b"\xef\xbb\xbfA\nb\n", id="UTF-8 BOM"),
        pytest.param(b"if x:\n\tpass\n", "\tpass", "\treturn", b"if x:\n\treturn\n", id="tabs"),
        pytest.param(b"a\nb", "b", "c", b"a\nc", id="no final newline"),
        pytest.param(b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc", id="no final newline, CRLF"),
        pytest.param("é\nü\n".encode("latin-1"), "ü", "xé", "é\nxé\n".encode("latin-1"), id="Latin-1"),
        pytest.param("x “a”\ny\n".encode("cp1252"), "y", "“y”", "x “a”\n“y”\n".encode("cp1252"), id="Windows-1252"),
        pytest.param("a\nß\r\n".encode("utf-16"), "ß", "漢", "a\n漢\r\n".encode("utf-16"), id="UTF-16"),
        pytest.param(
            b"\xfe\xff" + "a\r\nb\r\n".encode("utf-16-be"),
            "a\nb",
            "a\nc",
            b"\xfe\xff" + "a\r\nc\r\n".encode("utf-16-be"),
            id="UTF-16 BE",
        ),
        pytest.param(b"ok \xc3\xa9\xc3\xa9 \xff\nx\n", "x", "é", b"ok \xc3\xa9\xc3\xa9 \xff\n\xc3\xa9\n", id="damaged"),
        pytest.param(
            "# -*- coding: koi8-r -*-\n# да\n".encode("koi8-r"),
            "да",
            "нет",
            "# -*- coding: koi8-r -*-\n# нет\n".encode("koi8-r"),
            id="declared encoding",
        ),
        pytest.param(
            b"# coding: latin-1\nx = 2\n", "2", "'é'", b"# coding: latin-1\nx = '\xe9'\n", id="declared, ASCII so far"
        ),
        pytest.param(b"a\x0cb\xe2\x80\xa8c\nd\n", "d", "e", b"a\x0cb\xe2\x80\xa8c\ne\n", id="form feed and U+2028"),
        pytest.param(b"a\nb\n", "a\nb", "a\r\nb", b"a\r\nb\n", id="a CR that the model writes is meant"),
        pytest.param(rb"a(.*)\1$HOME" + b"\n", r"(.*)\1$HOME", r"\g<0>$&{}", rb"a\g<0>$&{}" + b"\n", id="no patterns"),
    ],
)
async def test_edit_changes_only_the_bytes_of_the_edit(workspace, before, old, new, after):
    path = workspace.put("f.txt", before)
    await workspace.call("Read", file_path="f.txt")

    await edit(workspace, "f.txt", old, new)

    assert path.read_bytes() == after


async def test_replace_all_keeps_the_line_breaks_of_each_place(workspace):
    path = workspace.put_seen("f.txt", b"x\r\ny\nx\ny\n")

    output = await edit(workspace, "f.txt", "x\ny", "x\nz", replace_all=True)

    assert path.read_bytes() == b"x\r\nz\nx\nz\n"
    assert "2 replacements" in output.content


async def test_replace_all_on_one_place_is_fine(workspace):
    path = workspace.put_seen("f.txt", "aaa\n")
    await edit(workspace, "f.txt", "aa", "b", replace_all=True)
    assert path.read_bytes() == b"ba\n"


async def test_ambiguous_old_text_is_refused_with_count_and_lines(workspace):
    workspace.put_seen("f.txt", "x = 1\ny\nx = 1\n\nx = 1\n")
    text = await workspace.refusal("Edit", file_path="f.txt", old_string="x = 1", new_string="x = 2")
    assert "ambiguous" in text
    assert "3 times" in text
    assert "lines 1, 3, 5" in text
    assert "replace_all" in text


async def test_overlapping_occurrences_are_ambiguous(workspace):
    workspace.put_seen("f.txt", "aaa")
    assert "2 times" in await workspace.refusal("Edit", file_path="f.txt", old_string="aa", new_string="b")


async def test_single_occurrence_may_be_any_character(workspace):
    path = workspace.put_seen("f.txt", "a\nb")
    await edit(workspace, "f.txt", "\n", "")
    assert path.read_bytes() == b"ab"


async def test_unchanged_text_is_refused(workspace):
    workspace.put_seen("f.txt", "x\n")
    assert "the same" in await workspace.refusal("Edit", file_path="f.txt", old_string="x", new_string="x")


async def test_edit_without_a_changed_byte_is_refused(workspace):
    workspace.put_seen("f.txt", "a\r\nb\r\n")
    text = await workspace.refusal("Edit", file_path="f.txt", old_string="a\nb", new_string="a\r\nb")
    assert "does not change f.txt" in text


async def test_unread_file_is_refused(workspace):
    workspace.put("f.txt", "x\n")
    assert "not been read" in await workspace.refusal("Edit", file_path="f.txt", old_string="x", new_string="y")


async def test_file_changed_since_reading_is_refused(workspace):
    path = workspace.put_seen("f.txt", "x\n")
    path.write_text("x\nuser's line\n")
    text = await workspace.refusal("Edit", file_path="f.txt", old_string="x", new_string="y")
    assert "changed since you read it" in text


async def test_stale_file_can_be_edited_after_reading_again(workspace):
    path = workspace.put_seen("f.txt", "x\n")
    path.write_text("x\nuser's line\n")
    await workspace.call("Read", file_path="f.txt")
    await edit(workspace, "f.txt", "x", "y")
    assert path.read_text() == "y\nuser's line\n"


async def test_edited_file_needs_no_second_read(workspace):
    path = workspace.put_seen("f.txt", "one\n")
    await edit(workspace, "f.txt", "one", "two")
    await edit(workspace, "f.txt", "two", "three")
    assert path.read_text() == "three\n"


async def test_simultaneous_edits_never_lose_one_silently(workspace):
    path = workspace.put_seen("f.txt", "".join(f"line {number}\n" for number in range(20)))
    succeeded, failed = [], []

    async def one(number):
        try:
            await edit(workspace, "f.txt", f"line {number}\n", f"LINE {number}\n")
            succeeded.append(number)
        except ToolError as exc:
            failed.append(str(exc))

    async with anyio.create_task_group() as task_group:
        for number in range(20):
            task_group.start_soon(one, number)

    text = path.read_text()
    assert [number for number in range(20) if f"LINE {number}\n" in text] == sorted(succeeded)
    assert succeeded
    assert all("changed" in message for message in failed)


async def test_missing_file_is_refused_with_advice(workspace):
    text = await workspace.refusal("Edit", file_path="no.txt", old_string="x", new_string="y")
    assert "no.txt does not exist" in text
    assert "Write" in text


async def test_folder_is_refused(workspace):
    (workspace.root / "d").mkdir()
    assert "is a folder" in await workspace.refusal("Edit", file_path="d", old_string="x", new_string="y")


async def test_fifo_is_refused_at_once(workspace):
    os.mkfifo(workspace.root / "pipe")
    text = await workspace.refusal("Edit", file_path="pipe", old_string="x", new_string="y")
    assert "not a regular file" in text


async def test_binary_file_is_refused(workspace):
    workspace.put_seen("f.bin", b"\x00\x01\x02x\n" * 10)
    assert "binary" in await workspace.refusal("Edit", file_path="f.bin", old_string="x", new_string="y")


async def test_file_that_is_too_large_is_refused(workspace):
    workspace.put_seen("big.txt", b"x" * 20_000_001)
    assert "too large" in await workspace.refusal("Edit", file_path="big.txt", old_string="x", new_string="y")


async def test_exploding_replacement_is_refused(workspace):
    workspace.put_seen("f.txt", "a" * 100_000)
    text = await workspace.refusal("Edit", file_path="f.txt", old_string="a", new_string="b" * 10_000, replace_all=True)
    assert "would grow" in text


async def test_path_outside_is_refused(workspace, tmp_path):
    (tmp_path / "outside.txt").write_text("x")
    text = await workspace.refusal("Edit", file_path="../outside.txt", old_string="x", new_string="y")
    assert "outside" in text
    assert (tmp_path / "outside.txt").read_text() == "x"


async def test_unencodable_character_is_refused(workspace):
    workspace.put_seen("f.txt", "é b\n".encode("latin-1"))
    text = await workspace.refusal("Edit", file_path="f.txt", old_string="b", new_string="漢")
    assert "Windows-1252" in text
    assert "UTF-8" in text


@pytest.mark.parametrize(
    ("codec", "before", "old", "new"),
    [
        pytest.param("cp850", "café téléphone été\n", "phone", "phoné", id="code page 850"),
        pytest.param("iso8859-15", "prix: 3 à été\n", "3", "3 €", id="ISO-8859-15"),
    ],
)
async def test_letter_unsafe_in_a_guessed_encoding_is_refused(workspace, codec, before, old, new):
    path = workspace.put_seen("f.txt", before.encode(codec))
    patch = f"*** Begin Patch\n*** Update File: f.txt\n@@\n+{new}\n*** End of File\n*** End Patch\n"

    refusals = [
        await workspace.refusal("Edit", file_path="f.txt", old_string=old, new_string=new),
        await workspace.refusal("MultiEdit", file_path="f.txt", edits=[{"old_string": old, "new_string": new}]),
        await workspace.refusal("Write", file_path="f.txt", content=new),
        await workspace.refusal("Patch", patch=patch),
    ]
    await edit(workspace, "f.txt", old, "seen")

    assert all("guessed to be Windows-1252" in text and "iconv" in text for text in refusals)
    assert path.read_bytes().decode(codec) == before.replace(old, "seen")


@pytest.mark.parametrize("codec", ["cp850", "iso8859-15", "cp1252"])
async def test_letter_present_in_a_guessed_encoding_can_be_added(workspace, codec):
    before = "café phone\n".encode(codec)
    path = workspace.put_seen("f.txt", before)
    as_read = before.decode("cp1252")[3]

    await edit(workspace, "f.txt", "phone", f"phon{as_read}")

    assert path.read_bytes().decode(codec) == "café phoné\n"


@pytest.mark.parametrize("codec", ["cp1251", "shift_jis", "gbk", "euc_kr"])
async def test_letters_are_refused_in_a_poorly_guessed_encoding(workspace, codec):
    letters = {"cp1251": "Привет", "shift_jis": "日本語", "gbk": "汉字处理", "euc_kr": "한국어"}[codec]
    before = f"{letters} x\n".encode(codec)
    path = workspace.put_seen("f.txt", before)

    assert "ASCII" in await workspace.refusal("Edit", file_path="f.txt", old_string="x", new_string="é")
    await edit(workspace, "f.txt", "x", "y")

    assert path.read_bytes() == before.replace(b"x", b"y")


async def test_lone_surrogate_is_refused(workspace):
    workspace.put_seen("f.txt", "a\n")
    text = await workspace.refusal("Edit", file_path="f.txt", old_string="a", new_string="\ud83d")
    assert "cannot hold" in text


async def test_mode_and_link_survive(workspace):
    path = workspace.put("real.sh", "echo a\n")
    path.chmod(0o750)
    link = workspace.root / "link.sh"
    link.symlink_to("real.sh")
    await workspace.call("Read", file_path="link.sh")

    await edit(workspace, "link.sh", "a\n", "b\n")

    assert link.is_symlink()
    assert path.read_text() == "echo b\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


async def test_file_read_through_a_link_is_known_by_its_own_name(workspace):
    path = workspace.put("real.txt", "a\n")
    (workspace.root / "link.txt").symlink_to("real.txt")
    await workspace.call("Read", file_path="link.txt")
    await edit(workspace, "real.txt", "a", "b")
    assert path.read_text() == "b\n"


async def test_link_that_leads_outside_is_refused(workspace, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("a\n")
    (workspace.root / "link.txt").symlink_to(outside)
    workspace.ctx.seen_files.add(outside, b"a\n")
    assert "outside" in await workspace.refusal("Edit", file_path="link.txt", old_string="a", new_string="b")
    assert outside.read_text() == "a\n"


async def test_empty_old_text_creates_a_new_file(workspace):
    output = await edit(workspace, "new/deep/f.txt", "", "hello\n")
    assert (workspace.root / "new/deep/f.txt").read_bytes() == b"hello\n"
    assert "created new/deep/f.txt" in output.content
    assert output.display.files[0].is_new


async def test_empty_old_text_never_touches_an_existing_file(workspace):
    workspace.put_seen("f.txt", "")
    assert "exists" in await workspace.refusal("Edit", file_path="f.txt", old_string="", new_string="x")


async def test_result_has_changed_lines_for_the_model_and_a_diff(workspace):
    workspace.put_seen("src/a.py", "".join(f"line {number}\n" for number in range(1, 31)))

    output = await edit(workspace, "src/a.py", "line 10\n", "line ten\nline ten and a half\n")

    assert output.content == (
        "edited src/a.py: 1 replacement (+2 -1 lines)\n"
        "     9\tline 9\n    10\tline ten\n    11\tline ten and a half\n    12\tline 11"
    )
    assert isinstance(output.display, DiffDisplay)
    (diff,) = output.display.files
    assert (diff.path, diff.added, diff.removed, diff.is_new) == ("src/a.py", 2, 1, False)
    assert diff.diff == (
        "@@ -7,7 +7,8 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n+line ten and a half\n"
        " line 11\n line 12\n line 13"
    )


async def test_result_of_a_huge_change_is_short(workspace):
    workspace.put_seen("f.txt", "x y\n" * 20_000)
    output = await edit(workspace, "f.txt", "x", "z", replace_all=True)
    assert len(output.content) < 2_000
    assert len(output.display.files[0].diff) < 20_000
    assert (output.display.files[0].added, output.display.files[0].removed) == (20_000, 20_000)


class TestNotFound:
    async def missing(self, workspace, content, old):
        workspace.put_seen("f.py", content)
        text = await workspace.refusal("Edit", file_path="f.py", old_string=old, new_string="something else")
        assert "was not found in f.py" in text
        return text

    async def test_differing_whitespace_is_shown(self, workspace):
        text = await self.missing(workspace, "def f():\n\treturn 1\n", "def f():\n    return 1\n")
        assert "whitespace" in text
        assert "→return·1" in text
        assert "····return·1" in text
        assert "     2\t" in text

    async def test_trailing_blanks_are_shown(self, workspace):
        text = await self.missing(workspace, "a = 1  \nb = 2\n", "a = 1\nb = 2")
        assert "a·=·1··" in text

    async def test_nearest_text_is_shown_with_line_numbers(self, workspace):
        content = (
            "import os\n\n\ndef total(values):\n    result = 0\n    for value in values:\n        result += value\n"
        )
        text = await self.missing(workspace, content, "    result = 0\n    for v in values:\n        result += v\n")
        assert "nearest text is lines 5-7" in text
        assert "     6\t    for value in values:" in text

    async def test_nearest_part_of_a_line_is_shown(self, workspace):
        text = await self.missing(workspace, "alpha\nprint('hello, world', file=out)\n", "'hello, wurld'")
        assert "     2\tprint('hello, world', file=out)" in text

    async def test_line_numbers_in_the_old_text_are_recognised(self, workspace):
        text = await self.missing(workspace, "a\nb\n", "     1\ta\n     2\tb")
        assert "leave out the line numbers" in text

    async def test_carriage_returns_in_the_old_text_are_recognised(self, workspace):
        assert "line breaks" in await self.missing(workspace, "a\nb\n", "a\r\nb")

    async def test_missing_final_line_break_is_named(self, workspace):
        assert "without the line break at its end" in await self.missing(workspace, "a\nb", "b\n")

    async def test_text_within_a_line_is_compared_from_there(self, workspace):
        text = await self.missing(workspace, "x = foo(1,\n\t2)\n", "foo(1,\n  2)")
        assert "     1\t" not in text
        assert "     2\tfile: →2)" in text

    async def test_text_without_likeness_is_reported(self, workspace):
        assert "nothing in the file is like it" in await self.missing(workspace, "alpha\n", "ZZZZZZZZZ 12345")

    async def test_text_missing_in_an_empty_file_is_reported(self, workspace):
        assert "nothing in the file is like it" in await self.missing(workspace, "", "abc")

    async def test_blank_text_is_reported_as_missing(self, workspace):
        assert "not found" in await self.missing(workspace, "alpha\nbeta\n", "\n\n\n")

    async def test_message_stays_short_for_a_long_text(self, workspace):
        content = "".join(f"value_{number} = compute({number})\n" for number in range(3_000))
        text = await self.missing(workspace, content, content[:50_000].replace("compute", "compose"))
        assert len(text) < 8_000


BINARY = [b"\x80\x04\x95\0\0pickle\0", b"\0" * 50, b"PK\x03\x04\0\0zip"]


@pytest.mark.parametrize("data", BINARY)
@pytest.mark.parametrize("reads_first", [False, True])
async def test_edit_says_that_a_binary_file_needs_bash(workspace, data, reads_first):
    workspace.put("model.bin", data)
    if reads_first:
        with pytest.raises(ToolError):
            await workspace.call("Read", file_path="model.bin")

    with pytest.raises(ToolError, match=r"is binary, which Read cannot show.* with Bash") as edited:
        await edit(workspace, "model.bin", "a", "b")
    with pytest.raises(ToolError, match="is binary, which Read cannot show") as written:
        await workspace.call("Write", file_path="model.bin", content="x")

    assert "use Read" not in f"{edited.value} {written.value}"
    assert (workspace.root / "model.bin").read_bytes() == data


async def test_edit_asks_to_read_a_readable_file(workspace):
    workspace.put("a.png", b"\x89PNG\r\n\x1a\n\0\0")

    with pytest.raises(ToolError, match="use Read on it first"):
        await workspace.call("Write", file_path="a.png", content="x")
