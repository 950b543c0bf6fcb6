"""A fault of the small model that is mended: sed, whose silence it takes for success."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.local_model.call_repair import replace_sed_with_edit
from panpan.types.content import ToolUseBlock


def bash(command: object) -> ToolUseBlock:
    return ToolUseBlock(id="c1", name="Bash", input={"command": command})


@pytest.mark.parametrize(
    ("command", "path", "old", "new"),
    [
        ("sed -i 's/red/blue/g' a.txt", "a.txt", "red", "blue"),
        ("sed -i 's/red/blue/' notes/a.txt", "notes/a.txt", "red", "blue"),
        ('sed -i "s/light red/blue/g" a.txt', "a.txt", "light red", "blue"),
        ("sed -i 's|a/b|c/d|g' ./a.txt", "./a.txt", "a/b", "c/d"),
        ("sed -i 's/red//g' a.txt\n", "a.txt", "red", ""),
    ],
)
def test_plain_sed_becomes_an_edit(command: str, path: str, old: str, new: str) -> None:
    use = replace_sed_with_edit(bash(command))

    assert (use.id, use.name) == ("c1", "Edit")
    assert use.input == {"file_path": path, "old_string": old, "new_string": new, "replace_all": True}


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 's/r.d/blue/g' a.txt",
        "sed -i 's/^red/blue/' a.txt",
        "sed -i 's/red/&s/' a.txt",
        "sed -i 's/a/b/c/' a.txt",
        "sed -i 's/red/blue/2' a.txt",
        "sed -i 's/red/blue/g' *.txt",
        "sed -i 's/red/blue/g' a.txt b.txt",
        "sed -i 's/red/blue/g' a.txt; rm a.txt",
        "sed 's/red/blue/g' a.txt",
        "sed -i.bak 's/red/blue/g' a.txt",
        "sed -i '3s/red/blue/' a.txt",
        'sed -i "s/$HOME/blue/" a.txt',
        "sed -i 's/red/blue/g\" a.txt",
        "sed -i 's/red/blue/g' -n",
        "ls",
        3,
    ],
)
def test_other_commands_stay_commands(command: object) -> None:
    assert replace_sed_with_edit(bash(command)) == bash(command)


WORDS = st.text(st.sampled_from("ab -:,/_1"), min_size=1, max_size=6)


@given(WORDS, WORDS, st.text(st.sampled_from("ab -:,/_1\n"), max_size=40), st.sampled_from("/|,#"))
def test_edit_does_the_same_as_sed(
    tmp_path_factory: pytest.TempPathFactory, old: str, new: str, text: str, mark: str
) -> None:
    folder = tmp_path_factory.mktemp("sed")
    command = f"sed -i 's{mark}{old}{mark}{new}{mark}g' a.txt"
    use = replace_sed_with_edit(bash(command))
    if use.name == "Bash":
        return
    (folder / "a.txt").write_text(text)
    subprocess.run(["bash", "-c", command], cwd=folder, check=True)

    assert (folder / "a.txt").read_text() == text.replace(str(use.input["old_string"]), str(use.input["new_string"]))


def test_other_tool_is_left_alone(tmp_path: Path) -> None:
    use = ToolUseBlock(id="c1", name="Read", input={"command": "sed -i 's/a/b/' a.txt"})

    assert replace_sed_with_edit(use) == use
