"""The store of plug-ins: off until enabled, pinned by content, updates that wait."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.config.places import Places
from panpan.config.plugins import store as store_module
from panpan.config.plugins.manifest import PluginError
from panpan.config.plugins.store import Installed, PluginPlace, PluginStore, SourceFile, Version, changes, read_folder
from panpan.errors import ConfigError

SKILL = "---\nname: deploy\ndescription: Deploys\n---\nDeploy it."


def files(**more: str) -> Mapping[str, SourceFile]:
    texts = {"skills/deploy/SKILL.md": SKILL, **{name.replace("__", "/"): text for name, text in more.items()}}
    return {name: SourceFile(text.encode(), name.endswith("tool")) for name, text in texts.items()}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "panpan"


def add(home: Path, content: Mapping[str, SourceFile], name: str = "acme") -> Installed:
    return PluginStore(home).add(Installed(name, "/src", current=Version("")), content)


def enable(home: Path, name: str = "acme") -> Installed:
    store = PluginStore(home)
    one = store.installed[name]
    return store.enable(name, (one.waiting or one.current).digest)


def counting(home: Path) -> tuple[list[str], list[str]]:
    """Return the skills of plug-ins that count, and the problems."""
    places, problems = Places(home), list[str]()
    found = [file.data.decode() for file in places.files(["skills"], problems)]
    return found, [*places.plugin_problems, *problems]


def test_plugin_counts_only_while_it_is_enabled(home: Path) -> None:
    add(home, files())
    assert counting(home) == ([], [])

    enable(home)
    assert counting(home) == ([SKILL], [])

    PluginStore(home).disable("acme")
    assert counting(home) == ([], [])


def test_update_counts_only_when_it_is_accepted(home: Path) -> None:
    add(home, files())
    store = PluginStore(home)
    enable(home)
    old = store.installed["acme"].current
    newer = {"skills/deploy/SKILL.md": SourceFile(SKILL.replace("it", "all").encode())}
    version = store.keep(newer, "acme", Version(""))

    store.offer("acme", version)
    assert counting(home) == ([SKILL], [])
    enable(home)

    assert counting(home) == ([SKILL.replace("it", "all")], [])
    assert not store.place("acme", old).root.exists()
    assert store.installed["acme"].waiting is None


def test_file_that_changed_on_disk_is_not_used(home: Path) -> None:
    add(home, files())
    store = PluginStore(home)
    one = enable(home)
    file = store.place("acme", one.current).root / "skills/deploy/SKILL.md"
    file.chmod(0o600)
    file.write_text(f"{SKILL} And more.")

    found, problems = counting(home)

    assert found == []
    assert "skills/deploy/SKILL.md is new, missing or changed since you enabled it" in problems[0]


@pytest.mark.parametrize("name", ["hooks/run.sh", "bin/tool", "new.sh", ".git/config"])
def test_plugin_is_off_when_any_file_differs(home: Path, name: str) -> None:
    add(home, files(hooks__hooks_json="x") | {"hooks/hooks.json": SourceFile(b"{}"), "hooks/run.sh": SourceFile(b"a"),
                                              "bin/tool": SourceFile(b"b", is_program=True)})  # fmt: skip
    store = PluginStore(home)
    one = enable(home)
    file = store.place("acme", one.current).root / name
    file.parent.parent.chmod(0o700)
    file.parent.mkdir(exist_ok=True)
    file.parent.chmod(0o700)
    if file.exists():
        file.chmod(0o600)
    file.write_text("other")

    found, problems = counting(home)

    assert found == []
    assert problems == [f"the plug-in acme is not used: {name} is new, missing or changed since you enabled it; "
                        "to repair it: panpan plugin update acme"]  # fmt: skip
    assert changes(store.load("acme", one.current)) == [name]


def test_link_that_was_added_is_a_change(home: Path) -> None:
    add(home, files())
    store = PluginStore(home)
    one = enable(home)
    root = store.place("acme", one.current).root
    root.chmod(0o700)
    (root / "extra.sh").symlink_to("/etc/passwd")

    assert changes(store.load("acme", one.current)) == ["extra.sh"]
    assert counting(home)[0] == []


def test_enabling_takes_only_the_content_that_was_shown(home: Path) -> None:
    add(home, files())
    store = PluginStore(home)
    shown = store.installed["acme"].current.digest
    store.offer("acme", store.keep(files(README="x"), "acme", Version("")))

    with pytest.raises(ConfigError, match="acme has changed meanwhile"):
        store.enable("acme", shown)
    assert not PluginStore(home).installed["acme"].is_enabled


def test_list_of_files_is_pinned(home: Path) -> None:
    add(home, files())
    store = PluginStore(home)
    one = enable(home)
    listed = store.place("acme", one.current).root.with_name(f"{one.current.digest}.json")
    listed.write_text(listed.read_text().replace("deploy", "delete"))

    assert "the list of its files has changed" in counting(home)[1][0]


def test_second_plugin_of_one_name_is_refused(home: Path) -> None:
    add(home, files())

    with pytest.raises(ConfigError, match="there is a plug-in acme already, from /src"):
        add(home, files(README="x"))
    assert len(list((home / "plugins/files/acme").iterdir())) == 2


def test_removed_plugin_leaves_its_data(home: Path) -> None:
    add(home, files())
    store = PluginStore(home)
    data = store.place("acme", enable(home).current).data
    (data / "kept").write_text("x")

    store.remove("acme")

    assert (data / "kept").exists()
    assert not (home / "plugins/files/acme").exists()
    assert PluginStore(home).installed == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"plugins": 3}',
        '{"plugins": {"a": {}}}',
        '{"plugins": {"../a": {"source": "x", "current": {"digest": "a"}}}}',
        '{"plugins": {"a": {"source": "x", "current": {"digest": "../.."}}}}',
        '{"plugins": {"a": {"source": "x", "current": {"odd": 1}}}}',
        '{"plugins": {"a": {"source": "x", "current": {"digest": "a", "version": 5}}}}',
        '{"plugins": {"a": {"source": 3, "current": {"digest": "a"}}}}',
        '{"plugins": {"a\\u0000": {"source": "x", "current": {"digest": "a"}}}}',
    ],
)
def test_broken_list_is_one_problem_and_no_traceback(home: Path, text: str) -> None:
    (home / "plugins").mkdir(parents=True)
    (home / "plugins/plugins.json").write_text(text)

    found, problems = counting(home)

    assert found == []
    assert len(problems) == 1
    assert "plugins.json cannot be read" in problems[0]
    with pytest.raises(ConfigError):
        add(home, files())
    assert (home / "plugins/plugins.json").read_text() == text


# Folders


def test_links_out_of_a_folder_are_left_out(tmp_path: Path) -> None:
    folder, outside = tmp_path / "acme", tmp_path / "outside"
    (folder / "skills").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("x")
    (folder / "README.md").write_text("x")
    (folder / "skills/in").symlink_to("../README.md")
    (folder / "skills/out").symlink_to(outside / "secret")
    (folder / "skills/folder").symlink_to(outside)
    (folder / "skills/circle").symlink_to("..")
    (folder / "skills/nowhere").symlink_to("gone")
    os.mkfifo(folder / "pipe")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("x")

    found, left_out = read_folder(folder)

    assert set(found) == {"README.md", "skills/in"}
    assert [line.partition(":")[0] for line in left_out] == [
        "pipe", "skills/circle", "skills/folder", "skills/nowhere", "skills/out",
    ]  # fmt: skip


def test_folder_with_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        (tmp_path / str(number)).write_text("x" * 10)
    monkeypatch.setattr(store_module, "MAX_FILES", 3)
    with pytest.raises(PluginError, match="more than 3 files"):
        read_folder(tmp_path)
    monkeypatch.setattr(store_module, "MAX_FILES", 10)
    monkeypatch.setattr(store_module, "MAX_BYTES", 35)
    with pytest.raises(PluginError, match="more than 10 files or 0 MB"):
        read_folder(tmp_path)


def test_folder_of_links_ends_soon(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"d{number}").mkdir()
        for link in "abcd":
            (tmp_path / f"d{number}" / link).symlink_to(f"../d{number + 1}")

    with pytest.raises(PluginError, match=r"more than 10,000 folders|nested too deeply"):
        read_folder(tmp_path)


def test_name_that_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2Jb").write_text("x")

    with pytest.raises(PluginError, match="characters that cannot be shown"):
        read_folder(tmp_path)


PIECES = ["${PLUGIN_ROOT}", "${PLUGIN_DATA}", "${CLAUDE_PLUGIN_ROOT}", "$", "{", "}", "PLUGIN_ROOT", "a"]


@given(st.lists(st.sampled_from(PIECES)))
def test_places_are_filled_in_once(pieces: list[str]) -> None:
    place = PluginPlace("a", Path("/${PLUGIN_DATA}"), Path("/d"))
    expected = {"${PLUGIN_ROOT}": "/${PLUGIN_DATA}", "${CLAUDE_PLUGIN_ROOT}": "/${PLUGIN_DATA}", "${PLUGIN_DATA}": "/d"}
    text = "|".join(pieces)

    assert place.filled(text) == "|".join(expected.get(piece, piece) for piece in pieces)


def test_folder_on_the_command_line_counts_as_it_is(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "skills/deploy").mkdir(parents=True)
    (folder / "skills/deploy/SKILL.md").write_text(SKILL)
    add(home, files(README="x"), "mine")
    enable(home, "mine")

    places = Places(home, plugin_folders=(folder, tmp_path / "gone"))

    assert [str(file.plugin.root) for file in places.files(["skills"], []) if file.plugin] == [str(folder)]
    assert "gone" in places.plugin_problems[0]
