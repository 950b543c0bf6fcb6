import json
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.config.locations import Locations, find_project_root, project_slug
from panpan.config.project_files import ProjectFiles, read_project_files
from panpan.config.sources import load_settings
from panpan.config.trust import (
    Changed,
    FileChange,
    Trusted,
    TrustState,
    TrustStore,
    Untrusted,
    changes_since,
    known_files,
    trust_of,
    wide_root,
)
from panpan.errors import ConfigError
from tests.config.conftest import Place
from tests.config.test_project_files import NAMES, OTHERS, write

ROOT = Path("/project")


class Project:
    """A project, and what the user says of it."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.home = home
        self.store = TrustStore(home)

    @property
    def files(self) -> ProjectFiles:
        return read_project_files(self.root, self.home)

    def says(self, is_trusted: bool) -> None:
        self.store.keep(self.files, is_trusted=is_trusted)

    @property
    def state(self) -> TrustState:
        return self.store.state(self.files)

    @property
    def path(self) -> Path:
        return self.home / "projects" / project_slug(self.root) / "trust.json"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    write(root, ".panpan/settings.toml", b"[permission]\nallow = []\n")
    return Project(root, tmp_path / "home")


def test_new_project_is_untrusted_until_the_user_trusts_it(project: Project) -> None:
    assert project.state == Untrusted()

    project.says(True)

    assert project.state == Trusted()
    assert stat.S_IMODE(project.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(project.path.parent.stat().st_mode) == 0o700


def test_refusal_is_remembered_until_something_changes(project: Project) -> None:
    project.says(False)
    assert project.state == Untrusted(is_refused=True)

    write(project.root, ".mcp.json")
    assert project.state == Untrusted()


@pytest.mark.parametrize("name", NAMES.values())
def test_added_changed_or_removed_file_asks_again(project: Project, name: str) -> None:
    (project.root / ".panpan" / "settings.toml").unlink()
    project.says(True)
    beginning = "---" if name == "agents/reviewer.md" else ""
    path = write(project.root, name, f"{beginning}A=1\n".encode())
    added = "+A=…" if name == ".env" else f"+{beginning}A=1"
    assert project.state == Changed((FileChange(name, "new", (added,)),))

    project.says(True)
    path.write_text(f"{beginning}A=2\n")
    lines = () if name == ".env" else ("@@ -1 +1 @@", f"-{beginning}A=1", f"+{beginning}A=2")
    assert project.state == Changed((FileChange(name, "changed", lines),))

    project.says(True)
    path.unlink()
    assert project.state == Changed(
        (FileChange(name, "gone", ("@@ -1 +0,0 @@", "-A=…" if name == ".env" else f"-{beginning}A=2")),)
    )


@given(
    st.dictionaries(st.sampled_from(sorted(NAMES.values())), st.binary(min_size=1, max_size=60), min_size=1), st.data()
)
def test_changed_byte_of_any_file_asks_again(content: dict[str, bytes], data: st.DataObject) -> None:
    known = known_files(ProjectFiles(ROOT, content))
    name = data.draw(st.sampled_from(sorted(content)))
    at = data.draw(st.integers(0, len(content[name]) - 1))
    other = bytearray(content[name])
    other[at] ^= data.draw(st.integers(1, 255))

    [change] = changes_since(known, ProjectFiles(ROOT, content | {name: bytes(other)}))

    assert (change.name, change.kind) == (name, "changed")
    assert all(line.replace("\t", " ").isprintable() for line in change.lines)
    assert not changes_since(known, ProjectFiles(ROOT, dict(content)))


@given(st.text(max_size=200), st.text(max_size=200))
def test_secret_values_of_files_are_neither_kept_nor_shown(name: str, value: str) -> None:
    text = f"SAFE={name}-hunter2\n{value}hunter2\n# old: hunter2\n"
    files = ProjectFiles(ROOT, {".env": text.encode(errors="replace")})

    known = known_files(files)[".env"]

    assert known.text is not None
    assert "hunter2" not in known.text
    assert not any("hunter2" in line for change in changes_since({}, files) for line in change.lines)


def test_unlisted_files_never_ask(project: Project) -> None:
    project.says(True)
    for name in OTHERS:
        write(project.root, name, name.encode())

    assert project.state == Trusted()


def test_repository_in_a_trusted_one_is_not_trusted(project: Project) -> None:
    (project.root / ".git").mkdir()
    nested = project.root / "vendor" / "lib"
    write(nested, ".panpan/settings.toml", b"[permission]\nallow = []\n")
    (nested / ".git").write_text("gitdir: elsewhere\n")
    project.says(True)

    assert find_project_root(nested) == nested
    assert Project(nested, project.home).state == Untrusted()


def test_folder_is_trusted_under_its_canonical_name_only(project: Project, tmp_path: Path) -> None:
    project.says(True)
    (tmp_path / "link").symlink_to(project.root)
    env = {"PANPAN_HOME": str(project.home)}
    assert trust_of(Locations.find(tmp_path / "link", env)).state == Trusted()

    project.root.rename(tmp_path / "renamed")
    assert trust_of(Locations.find(tmp_path / "renamed", env)).state == Untrusted()


def test_folder_with_unreadable_files_is_never_trusted(project: Project) -> None:
    project.says(True)
    os.mkfifo(project.root / ".mcp.json")

    assert isinstance(project.state, Untrusted)
    assert ".mcp.json cannot be read whole: " in project.state.problem
    assert not trust_of(Locations(project.home, project.root)).for_this_run().is_trusted
    with pytest.raises(ConfigError, match=r"cannot be trusted: \.mcp\.json: .*FIFO"):
        project.says(True)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "not JSON": lambda path: path.write_text("{"),
    "empty": lambda path: path.write_text(""),
    "a list": lambda path: path.write_text("[]"),
    "deep": lambda path: path.write_text("[" * 200_000),
    "a later version": lambda path: path.write_text(path.read_text().replace('"version": 1', '"version": 2')),
    "no digests": lambda path: path.write_text(path.read_text().replace('"digest"', '"digets"')),
    "a file that others may write": lambda path: path.chmod(0o622),
    "a link": lambda path: path.rename(path.with_name("x")) and path.symlink_to("x"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_unreadable_answer_is_no_trust(project: Project, damage: str) -> None:
    project.says(True)
    DAMAGES[damage](project.path)

    assert isinstance(project.state, Untrusted)
    assert f"{project.path} is not believed: " in project.state.problem


def test_answer_about_another_project_does_not_count(project: Project) -> None:
    project.says(True)
    kept = json.loads(project.path.read_text())
    project.path.write_text(json.dumps(kept | {"root": "/elsewhere"}))

    assert project.state == Untrusted()


def test_simultaneous_answers_leave_one_whole_answer(project: Project) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(project.says, [True, False] * 20))

    assert project.state in (Trusted(), Untrusted(is_refused=True))
    assert [path.name for path in project.path.parent.iterdir()] == ["trust.json"]


def test_trusted_projects_are_listed_and_forgotten(project: Project, tmp_path: Path) -> None:
    other = Project(tmp_path / "other", project.home)
    other.root.mkdir()
    project.says(True)
    other.says(False)
    assert list(project.store.trusted_roots()) == [project.root]

    assert project.store.remove(project.root)
    assert not project.store.remove(project.root)
    assert project.state == Untrusted()


def test_long_files_are_compared_by_digest(project: Project) -> None:
    write(project.root, ".panpan/plugins/data", b"\xff" * 100)
    write(project.root, ".panpan/plugins/long.py", b"x\n" * 2_000)
    project.says(True)
    write(project.root, ".panpan/plugins/data", b"\xfe" * 100)
    write(project.root, ".panpan/plugins/long.py", b"y\n" * 2_000)

    assert isinstance(project.state, Changed)
    assert [change.lines for change in project.state.changes] == [
        ("(100 bytes, too many or no text to be shown)",),
        ("(4,000 bytes, too many or no text to be shown)",),
    ]


def test_difference_says_what_it_omits(project: Project) -> None:
    project.says(True)
    write(project.root, ".panpan/settings.toml", "[permission]\nallow = ['\u202e\x1b[2J']\r\n".encode())

    assert isinstance(project.state, Changed)
    assert project.state.changes[0].lines[-1] == "+allow = ['<U+202E><U+001B>[2J']<U+000D>"


@pytest.mark.parametrize(
    ("root", "said"),
    [
        ("/", "the root of the file system"),
        ("/home/me", "your whole home folder"),
        ("/home", "a folder with your home folder in it"),
        ("/home/me/project", ""),
        ("/home/mel", ""),
    ],
)
def test_root_that_is_more_than_a_project_is_named(monkeypatch: pytest.MonkeyPatch, root: str, said: str) -> None:
    monkeypatch.setenv("HOME", "/home/me")

    assert wide_root(Path(root)) == said


def test_bytes_that_were_judged_are_those_that_count(place: Place) -> None:
    place.project('permission.allow = ["Bash(ls *)"]\n')
    place.trust()
    trust = trust_of(place.locations)
    place.project('permission.allow = ["Bash"]\n')  # between the look and the use

    loaded = load_settings(place.locations.project_root, {}, {}, place.locations, trust=trust)

    assert loaded.settings.permission.allow == ("Bash(ls *)",)
    assert place.load().settings.permission.allow == ()
    assert "since it changed after you trusted it" in place.load().warnings[0]


def test_settings_added_after_the_check_are_not_believed(place: Place) -> None:
    place.trust()
    trust = trust_of(place.locations)
    place.project('permission.allow = ["Bash"]\npermission.deny = ["Write"]\n')

    permission = load_settings(place.locations.project_root, {}, {}, place.locations, trust=trust).settings.permission

    assert (permission.allow, permission.deny) == ((), ("Write",))


def test_settings_behind_a_link_out_of_the_project_only_tighten(place: Place, tmp_path: Path) -> None:
    path = place.project("")
    path.unlink()
    (tmp_path / "outside.toml").write_text('permission.allow = ["Bash"]\npermission.deny = ["Write"]\n')
    path.symlink_to(tmp_path / "outside.toml")

    loaded = place.load()

    assert (loaded.settings.permission.allow, loaded.settings.permission.deny) == ((), ("Write",))
    assert "leads out of the project" in loaded.warnings[0]


def test_trust_for_a_run_names_the_believed_files(place: Place) -> None:
    path = place.project('permission.allow = ["Bash(ls *)"]\neffort = "low"\n')
    trust = trust_of(place.locations).for_this_run()

    loaded = load_settings(place.locations.project_root, {}, {}, place.locations, trust=trust)

    assert loaded.warnings == (f"--trust: {path} is believed for this run: permission.allow, effort",)
    assert loaded.settings.permission.allow == ("Bash(ls *)",)
    assert trust_of(place.locations).state == Untrusted()
