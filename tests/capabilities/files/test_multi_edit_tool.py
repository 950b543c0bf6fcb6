async def multi_edit(workspace, name, *edits):
    arguments = [dict(zip(("old_string", "new_string", "replace_all"), edit, strict=False)) for edit in edits]
    return await workspace.call("MultiEdit", file_path=name, edits=arguments)


async def refused(workspace, name, *edits):
    arguments = [{"old_string": old, "new_string": new} for old, new in edits]
    return await workspace.refusal("MultiEdit", file_path=name, edits=arguments)


async def test_multi_edit_makes_each_edit_on_the_previous_result(workspace):
    path = workspace.put_seen("f.txt", b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    output = await multi_edit(workspace, "f.txt", ("one", "two"), ("two", "2", True), ("2\nthree", "2\n3\n4"))
    assert path.read_bytes() == b"\xef\xbb\xbf2\r\n2\r\n3\r\n4"
    assert "4 replacements" in output.content
    assert len(output.display.files) == 1


async def test_multi_edit_failure_names_the_edit_and_changes_nothing(workspace):
    workspace.put_seen("f.txt", "one\ntwo\n")
    text = await refused(workspace, "f.txt", ("one", "1"), ("zwei", "2"))
    assert text.startswith("edit 2: ")
    assert "none of the edits was made" in text


async def test_multi_edit_refuses_edits_that_cancel_out(workspace):
    workspace.put_seen("f.txt", "one\n")
    assert "leave f.txt as it is" in await refused(workspace, "f.txt", ("one", "two"), ("two", "one"))


async def test_first_edit_may_create_the_file(workspace):
    await multi_edit(workspace, "f.txt", ("", "a\nb\n"), ("b", "c"))
    assert (workspace.root / "f.txt").read_text() == "a\nc\n"


async def test_later_empty_old_text_is_refused(workspace):
    workspace.put_seen("f.txt", "one\n")
    assert "edit 2: old_string is empty" in await refused(workspace, "f.txt", ("one", "two"), ("", "x"))


async def test_failing_edit_leaves_no_new_file(workspace):
    await refused(workspace, "f.txt", ("", "a\n"), ("b", "c"))
    assert workspace.contents() == {}


async def test_unread_file_is_refused(workspace):
    workspace.put("f.txt", "x\n")
    assert "not been read" in await refused(workspace, "f.txt", ("x", "y"))
