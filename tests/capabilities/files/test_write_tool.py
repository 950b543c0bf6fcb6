import os
import stat

import pytest


async def write(workspace, name, content):
    return await workspace.call("Write", file_path=name, content=content)


async def test_new_file_is_written_as_given(workspace):
    content = "a\r\n\tb\n\nno end: é漢🎉"
    output = await write(workspace, "deep/er/f.txt", content)
    assert (workspace.root / "deep/er/f.txt").read_bytes() == content.encode()
    assert output.content == "created deep/er/f.txt (+4 -0 lines)"
    assert output.display.files[0].is_new


async def test_empty_file_can_be_written(workspace):
    await write(workspace, "empty", "")
    assert (workspace.root / "empty").read_bytes() == b""


async def test_written_file_counts_as_read(workspace):
    await write(workspace, "f.txt", "one\n")
    await write(workspace, "f.txt", "two\n")
    assert (workspace.root / "f.txt").read_bytes() == b"two\n"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        pytest.param(b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n", id="CRLF is kept"),
        pytest.param(b"a\r\nb\n", "x\ny\n", b"x\ny\n", id="mixed: as given"),
        pytest.param(b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\n", id="a CR that the model writes is meant"),
        pytest.param(b"a", "x\ny", b"x\ny", id="no line break before"),
        pytest.param(b"\xef\xbb\xbfa\n", "é\n", b"\xef\xbb\xbf\xc3\xa9\n", id="BOM is kept"),
        pytest.param(b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n", id="BOM is not doubled"),
        pytest.param("ä\n".encode("utf-16"), "ö\n", "ö\n".encode("utf-16"), id="UTF-16 is kept"),
        pytest.param("ä b\n".encode("latin-1"), "cä\n", b"c\xe4\n", id="Latin-1 is kept"),
        pytest.param(b"\xc3\xa9\xc3\xa9\xff\n", "é\n", b"\xc3\xa9\n", id="damaged UTF-8 becomes UTF-8"),
    ],
)
async def test_old_encoding_and_line_breaks_are_kept(workspace, before, content, after):
    path = workspace.put_seen("f.txt", before)
    await write(workspace, "f.txt", content)
    assert path.read_bytes() == after


async def test_mode_and_link_survive(workspace):
    path = workspace.put_seen("run.sh", "a\n")
    path.chmod(0o755)
    (workspace.root / "link").symlink_to("run.sh")

    await write(workspace, "link", "b\n")

    assert (workspace.root / "link").is_symlink()
    assert path.read_bytes() == b"b\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


async def test_unread_existing_file_is_refused(workspace):
    workspace.put("f.txt", "precious\n")
    assert "not been read" in await workspace.refusal("Write", file_path="f.txt", content="x")


async def test_file_changed_since_reading_is_refused(workspace):
    path = workspace.put_seen("f.txt", "a\n")
    path.write_text("b\n")
    assert "changed since" in await workspace.refusal("Write", file_path="f.txt", content="x")


async def test_unencodable_text_is_refused(workspace):
    workspace.put_seen("f.txt", "ä b\n".encode("latin-1"))
    assert "Windows-1252" in await workspace.refusal("Write", file_path="f.txt", content="漢")


async def test_lone_surrogate_is_refused(workspace):
    assert "cannot hold" in await workspace.refusal("Write", file_path="f.txt", content="\ud800")


async def test_same_content_is_neither_an_error_nor_a_write(workspace):
    path = workspace.put_seen("f.txt", "a\n")
    before = path.stat().st_mtime_ns, path.stat().st_ino
    output = await write(workspace, "f.txt", "a\n")
    assert "nothing was written" in output.content
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


async def test_picture_that_was_read_can_be_replaced_by_text(workspace):
    path = workspace.put_seen("f.png", b"\x89PNG\r\n\x1a\n\0\0")
    await write(workspace, "f.png", "text\n")
    assert path.read_bytes() == b"text\n"


@pytest.mark.parametrize("name", ["folder", "pipe", "file.txt/below", "", "a\0b", "../outside.txt"])
async def test_path_that_is_no_place_for_a_file_is_refused(workspace, name):
    (workspace.root / "folder").mkdir()
    os.mkfifo(workspace.root / "pipe")
    workspace.put("file.txt", "x")
    await workspace.refusal("Write", file_path=name, content="x")


async def test_folders_made_for_a_failed_write_are_removed(workspace):
    name = "a/b/" + "n" * 300
    await workspace.refusal("Write", file_path=name, content="x")
    assert list(workspace.root.iterdir()) == []
