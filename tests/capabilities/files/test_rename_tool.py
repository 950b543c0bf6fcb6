"""Rename: a name in several files, all or none."""

from contextlib import aclosing

from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.files.rename import RenameTool
from panpan.capabilities.search.grep import GrepWords
from panpan.editing.planned_edit import plan_rename
from panpan.errors import ToolError
from tests.fakes.context import context_in

NAMES = st.from_regex(r"[a-z_]{1,6}", fullmatch=True).filter(lambda name: name not in {"loads", "_load"})


async def rename(workspace, old, new, *paths):
    return await workspace.call("Rename", old_name=old, new_name=new, file_paths=list(paths))


async def refused(workspace, old, new, *paths):
    return await workspace.refusal("Rename", old_name=old, new_name=new, file_paths=list(paths))


async def test_rename_changes_whole_words_in_every_file(workspace):
    store = workspace.put(
        "store.py", b"\xef\xbb\xbfdef load(path):  # load it\r\n    reload(path); loads = 1; a.load\r\n"
    )
    main = workspace.put("sub/main.py", "from store import load\n\nload('load.txt')\n")
    output = await rename(workspace, "load", "fetch", "store.py", "sub/main.py")
    assert store.read_bytes() == (
        b"\xef\xbb\xbfdef fetch(path):  # fetch it\r\n    reload(path); loads = 1; a.fetch\r\n"
    )
    assert main.read_text() == "from store import fetch\n\nfetch('fetch.txt')\n"
    assert "in store.py: 3 places" in output.text
    assert "in sub/main.py: 3 places" in output.text
    assert "from store import fetch" in output.text
    assert [file.path for file in output.display.files] == ["store.py", "sub/main.py"]


async def test_rename_without_the_name_in_a_file_changes_nothing(workspace):
    workspace.put("a.py", "load()\n")
    workspace.put("b.py", "loads()\n")
    assert "does not occur in b.py" in await refused(workspace, "load", "fetch", "a.py", "b.py")


async def test_rename_refuses_missing_binary_and_equal_names(workspace):
    workspace.put("a.py", "load()\n")
    workspace.put("b.bin", b"load \x00\x01\x02")
    missing = "aa.py does not exist; there is a.py; gone does not exist; no file was changed"
    assert missing in await refused(workspace, "load", "fetch", "aa.py", "a.py", "gone")
    assert "gone.py does not exist" in await refused(workspace, "load", "fetch", "a.py", "gone.py")
    assert "b.bin is binary" in await refused(workspace, "load", "fetch", "a.py", "b.bin")
    assert "both load" in await refused(workspace, "load", "load", "a.py")


async def test_rename_refuses_a_file_changed_since_reading(workspace):
    path = workspace.put_seen("a.py", "load()\n")
    path.write_text("load() + load()\n")
    assert "changed since" in await refused(workspace, "load", "fetch", "a.py")


async def test_rename_reports_a_new_name_that_was_present(workspace):
    workspace.put("a.py", "load(fetch)\n")
    assert "fetch was a name there already" in (await rename(workspace, "load", "fetch", "a.py")).content


async def test_rename_leaves_unread_files_unread_and_read_ones_known(workspace):
    workspace.put("a.py", "load()\n")
    workspace.put_seen("b.py", "load()\n")
    await rename(workspace, "load", "fetch", "a.py", "b.py")
    assert "not been read" in await workspace.refusal("Edit", file_path="a.py", old_string="f", new_string="g")
    await workspace.call("Edit", file_path="b.py", old_string="fetch", new_string="get")


async def test_rename_counts_two_paths_to_one_file_once(workspace):
    path = workspace.put("a.py", "load()\n")
    output = await rename(workspace, "load", "fetch", "a.py", "./a.py")
    assert path.read_text() == "fetch()\n"
    assert output.text.count("renamed") == 1


async def test_rename_refuses_an_unencodable_name(workspace):
    workspace.put("a.txt", "naïve load, déjà vu, café\n".encode("latin-1"))
    assert "a.txt" in await refused(workspace, "load", "获取", "a.txt")


@given(
    text=st.lists(st.sampled_from(["load", "loads", "_load", "load_2", ".", " ", "\n", "(", "é"]), max_size=30).map(
        "".join
    ),
    new=NAMES,
)
def test_rename_there_and_back_round_trips(tmp_path_factory, text, new):
    root = tmp_path_factory.mktemp("rename")
    ctx = context_in(root)
    data = text.encode()
    (root / "f").write_bytes(data)
    try:
        (there,) = plan_rename("load", new, ["f"], ctx).changes
    except ToolError:
        return
    (root / "f").write_bytes(there.after)
    (back,) = plan_rename(new, "load", ["f"], ctx).changes
    assert back.after == data


async def test_rename_names_other_places_of_the_old_name(workspace):
    workspace.put("a.py", "load()\n")
    workspace.put("b.py", "loads()\nx = load\n")
    content = (await rename(workspace, "load", "fetch", "a.py")).text
    assert "b.py:2:x = load" in content
    assert "load is still in" not in (await rename(workspace, "load", "fetch", "b.py")).text


async def test_rename_does_not_show_secret_files(workspace):
    workspace.put("a.py", "load()\n")
    workspace.put(".env", "load=hunter2\n")
    assert "hunter2" not in (await rename(workspace, "load", "fetch", "a.py")).text


async def test_rename_does_not_show_lines_that_a_rule_closes(workspace):
    workspace.put("a.py", "load()\n")
    workspace.put("closed/b.py", "load = 'hunter2'\n")
    workspace.put("open.py", "load\n")
    tool = RenameTool(lambda: GrepWords(lambda path, root: path.is_relative_to(root / "closed")))
    args = tool.input_model(old_name="load", new_name="fetch", file_paths=["a.py"])
    async with aclosing(tool.run(args, workspace.ctx)) as yields:
        (output,) = [one async for one in yields]
    assert "open.py:1:load" in output.text
    assert "hunter2" not in output.text


async def test_rename_reports_exchanged_names(workspace):
    workspace.put("a.py", "fetch()\n")
    assert "a.py has fetch and no load" in await refused(workspace, "load", "fetch", "a.py")
