import json
import sys
from contextlib import suppress
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.documents.read_notebook import NotebookText
from panpan.errors import ToolError


def code(source, cell_id=None, outputs=(), count=None):
    cell = {"cell_type": "code", "execution_count": count, "metadata": {}, "outputs": list(outputs), "source": source}
    return cell if cell_id is None else cell | {"id": cell_id}


def markdown(source, cell_id=None):
    cell = {"cell_type": "markdown", "metadata": {}, "source": source}
    return cell if cell_id is None else cell | {"id": cell_id}


def notebook(*cells, minor=5):
    return {
        "cells": list(cells),
        "metadata": {"kernelspec": {"name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": minor,
    }


def as_jupyter(value):
    """Write it as Jupyter does: https://nbformat.readthedocs.io, `nbformat.write`."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, separators=(",", ": ")) + "\n"


OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["old\n"]}


async def edit(workspace, **arguments):
    return await workspace.call("NotebookEdit", file_path="f.ipynb", **arguments)


async def test_replaced_cell_loses_its_old_outputs(workspace):
    path = workspace.put_seen(
        "f.ipynb", as_jupyter(notebook(markdown(["# é\n"], "aa"), code(["x = 1"], "bb", [OUTPUT], 7)))
    )

    output = await edit(workspace, cell="bb", source="x = 2\nprint(x)\n")

    assert path.read_text() == as_jupyter(notebook(markdown(["# é\n"], "aa"), code(["x = 2\n", "print(x)\n"], "bb")))
    assert output.text.startswith("replaced cell 2 of f.ipynb; the outputs of its old source are gone")


async def test_display_shows_the_change_of_the_cell_without_json(workspace):
    cells = [markdown(["# a\n", "b"], "aa"), code(["x = 1\n", 'y = "é"'], "bb", [OUTPUT], 7), code("z", "cc")]
    workspace.put_seen("f.ipynb", as_jupyter(notebook(*cells)))

    replaced = await edit(workspace, cell="bb", source='x = 2\ny = "é"')
    inserted = await edit(workspace, cell="0", source="new", cell_type="markdown", mode="insert")

    (first,), (second,) = replaced.display.files, inserted.display.files
    assert first.diff.splitlines()[1:] == [
        " ── markdown, id aa ──", " # a", " b",
        "-── code [7], id bb ──", "-x = 1", "+── code, id bb ──", "+x = 2",
        ' y = "é"', "-(1 output)", " ── code, id cc ──", " z",
    ]  # fmt: skip
    assert (first.added, first.removed) == (2, 3)
    assert [line for line in second.diff.splitlines() if line[0] in "+-"][1:] == ["+new"]


async def test_cell_without_an_id_is_found_by_its_number(workspace):
    path = workspace.put_seen("f.ipynb", as_jupyter(notebook(code("a"), code("b"), minor=4)))

    await edit(workspace, cell="2", source="c")

    assert json.loads(path.read_text())["cells"] == [code("a"), code("c")]


@pytest.mark.parametrize(("behind", "place"), [("0", 0), ("1", 1), ("bb", 2)])
async def test_cell_is_inserted(workspace, behind, place):
    cells = [code(["a"], "aa"), code(["b"], "bb")]
    path = workspace.put_seen("f.ipynb", as_jupyter(notebook(*cells)))

    await edit(workspace, cell=behind, source="# new\n", cell_type="markdown", mode="insert")

    written = json.loads(path.read_text())
    new_id = written["cells"][place]["id"]
    cells.insert(place, markdown(["# new\n"], new_id))
    assert written == notebook(*cells)
    assert path.read_text() == as_jupyter(written)
    assert new_id not in {"aa", "bb"}


async def test_first_cell_of_an_empty_notebook_is_inserted(workspace):
    path = workspace.put_seen("f.ipynb", as_jupyter(notebook(minor=4)))

    await edit(workspace, cell="0", source="x", mode="insert")

    assert path.read_text() == as_jupyter(notebook(code(["x"]), minor=4))


@pytest.mark.parametrize("gone", [0, 1, 2])
async def test_cell_is_deleted(workspace, gone):
    cells = [code(["a"], "aa"), markdown(["b"], "bb"), code(["c"], "cc")]
    path = workspace.put_seen("f.ipynb", as_jupyter(notebook(*cells)))

    await edit(workspace, cell=cells.pop(gone)["id"], mode="delete")

    assert path.read_text() == as_jupyter(notebook(*cells))


async def test_only_cell_is_deleted(workspace):
    path = workspace.put_seen("f.ipynb", as_jupyter(notebook(code(["a"], "aa"))))

    await edit(workspace, cell="1", mode="delete")

    assert path.read_text() == as_jupyter(notebook())


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        pytest.param(code(["a"], "aa", [OUTPUT], 3), "markdown", markdown(["b"], "aa"), id="to Markdown"),
        pytest.param(markdown(["a"], "aa") | {"attachments": {"p.png": {}}}, "code", code(["b"], "aa"), id="to code"),
    ],
)
async def test_type_of_a_cell_is_changed(workspace, before, kind, after):
    path = workspace.put_seen("f.ipynb", as_jupyter(notebook(before)))

    await edit(workspace, cell="aa", source="b", cell_type=kind)

    assert json.loads(path.read_text()) == notebook(after)


async def test_unusual_layout_of_a_notebook_is_kept(workspace):
    text = (
        '{"nbformat":4,"cells":[\r\n\t{"cell_type": "code","source":"a","x":1.50,"outputs":[]},'
        '{"source":"\\u00e9","cell_type":"raw"}],\t"metadata":{}}'
    )
    path = workspace.put_seen("f.ipynb", text)

    await edit(workspace, cell="1", source='é"\n')

    assert path.read_bytes().decode() == text.replace('"a"', '"\\u00e9\\"\\n"')


async def test_preview_shows_the_change_before_the_yes(workspace):
    workspace.put_seen("f.ipynb", as_jupyter(notebook(code(["a"], "aa"))))

    preview = await workspace.preview("NotebookEdit", file_path="f.ipynb", cell="0", source="b", mode="insert")
    again = await workspace.preview("NotebookEdit", file_path="f.ipynb", cell="0", source="b", mode="insert")

    assert "+b" in preview.files[0].diff.splitlines()
    assert preview == again


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"cell": "zz", "source": "x"}, "no cell 'zz'"),
        ({"cell": "0", "source": "x"}, "no cell '0'"),
        ({"cell": "9", "source": "x"}, "no cell '9' but 3 cells"),
        ({"cell": "2", "source": "x"}, "means several cells of f.ipynb: 1, 2"),
        ({"cell": "aa", "source": "x"}, "means several cells of f.ipynb: 2, 3"),
        ({"cell": "1", "mode": "insert"}, "insert needs source"),
        ({"cell": "1"}, "replace needs source"),
        ({"cell": "1", "source": "x", "mode": "delete"}, "delete takes neither"),
        ({"cell": "1", "source": "\ud800"}, "cannot hold"),
    ],
)
async def test_unclear_edit_changes_nothing(workspace, arguments, reason):
    workspace.put_seen("f.ipynb", as_jupyter(notebook(code("a", "2"), code("b", "aa"), code("c", "aa"))))

    assert reason in await workspace.refusal("NotebookEdit", file_path="f.ipynb", **arguments)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"cells": {}}', '{"cells": [1]}', '{"worksheets": []}', "[" * 100_000, '{"cells": ' + "[" * 9_000],
    ids=["empty", "cut", "a list", "no list", "no objects", "version 3", "deep", "deep cells"],
)
async def test_file_that_is_no_notebook_is_refused(workspace, text):
    workspace.put_seen("f.ipynb", text)

    assert "not a notebook" in await workspace.refusal("NotebookEdit", file_path="f.ipynb", cell="1", source="x")


async def test_unread_or_missing_notebook_is_refused(workspace):
    workspace.put("f.ipynb", as_jupyter(notebook(code("a"))))

    unread = await workspace.refusal("NotebookEdit", file_path="f.ipynb", cell="1", source="x")
    missing = await workspace.refusal("NotebookEdit", file_path="g.ipynb", cell="1", source="x")

    assert "not been read" in unread
    assert "does not exist" in missing


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
KINDS = st.sampled_from(["code", "markdown", "raw"])
CELLS = st.lists(
    st.fixed_dictionaries(
        {"cell_type": KINDS, "source": TEXTS | st.lists(TEXTS, max_size=3), "metadata": st.just({})},
        optional={"outputs": st.just([OUTPUT]), "execution_count": st.just(3), 'we"ird\n': TEXTS},
    ),
    min_size=1,
    max_size=5,
)
LAYOUTS = st.sampled_from([
    {"indent": 1, "sort_keys": True, "ensure_ascii": False},
    {"indent": 4},
    {"indent": "\t"},
    {"separators": (",", ":")},
    {},
])  # fmt: skip


@given(cells=CELLS, layout=LAYOUTS, source=TEXTS, kind=KINDS, data=st.data())
def test_edit_changes_one_cell_and_no_other_byte(cells, layout, source, kind, data):
    place = data.draw(st.integers(0, len(cells) - 1))
    text = json.dumps(notebook(*cells, minor=4), **layout)
    whole = NotebookText(text, "f.ipynb")
    before, after = text[: whole.cells[place].start], text[whole.cells[place].end :]

    replaced = whole.replace(place, source, kind)
    inserted = json.loads(whole.insert(place + 1, source, kind))
    deleted = json.loads(whole.delete(place))

    assert replaced.startswith(before)
    assert replaced.endswith(after)
    new = json.loads(replaced)["cells"][place]
    assert "".join(new["source"]) == source
    assert new["cell_type"] == kind
    assert not new.get("outputs")
    rest = deepcopy(cells)
    del rest[place]
    assert deleted == notebook(*rest, minor=4)
    assert "".join(inserted["cells"].pop(place + 1)["source"]) == source
    assert inserted == notebook(*cells, minor=4)


@given(text=st.text(max_size=60) | st.text('{}[]":,cels source\n', max_size=60))
def test_notebook_text_refuses_anything_but_a_notebook(text):
    with pytest.raises(ToolError, match="not a notebook"):
        NotebookText(text, "f.ipynb")


async def test_half_surrogate_in_a_rewritten_cell_is_kept(workspace):
    text = as_jupyter(notebook(code("é", "aa"))).replace('"metadata": {},', '"metadata": {"x": "\\ud83d"},')
    path = workspace.put_seen("f.ipynb", text)

    await edit(workspace, cell="aa", source="é", cell_type="markdown")

    assert path.read_text() == as_jupyter(notebook(markdown("é", "aa"))).replace(
        '"metadata": {},', '"metadata": {\n    "x": "\\ud83d"\n   },'
    )


def test_deeply_nested_cell_is_written_or_refused_in_words():
    def text(depth):
        cell = '{"cell_type": "code", "metadata": {}, "outputs": [], "source": "", "x": ' + "[" * depth + "]" * depth
        return '{\n "cells": [\n  ' + cell + "}\n ],\n" + ' "nbformat": 4\n}'

    def reads(depth):
        try:
            return NotebookText(text(depth), "f.ipynb")
        except ToolError:
            return None

    deepest = max(filter(reads, range(sys.getrecursionlimit() - 200, sys.getrecursionlimit())))
    for depth in range(deepest - 5, deepest + 1):
        with suppress(ToolError):
            reads(depth).replace(0, "x", "markdown")
