import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.config.locations import Locations, find_project_root, panpan_home, project_slug
from panpan.errors import ConfigError


def test_home_is_in_the_users_folder_unless_a_variable_moves_it(tmp_path: Path) -> None:
    assert panpan_home({"HOME": str(tmp_path)}, Path("/")) == tmp_path.resolve() / ".panpan"
    assert panpan_home({"HOME": str(tmp_path), "PANPAN_HOME": ""}, Path("/")) == tmp_path.resolve() / ".panpan"
    assert panpan_home({"PANPAN_HOME": "/some/where"}, Path("/")) == Path("/some/where")


def test_relative_or_tilde_home_becomes_absolute(tmp_path: Path) -> None:
    assert panpan_home({"PANPAN_HOME": "state"}, tmp_path) == tmp_path.resolve() / "state"
    assert panpan_home({"PANPAN_HOME": "~/state", "HOME": str(tmp_path)}, Path("/")) == tmp_path.resolve() / "state"


def test_unusable_home_is_an_error_for_the_user() -> None:
    with pytest.raises(ConfigError, match="PANPAN_HOME"):
        panpan_home({"PANPAN_HOME": "a\0b"}, Path("/"))


@pytest.mark.parametrize("target", ["gone", "link"])
@pytest.mark.parametrize(
    ("env", "link"),
    [
        ({"HOME": "h"}, "h/.panpan"),
        ({"HOME": "h"}, "h"),
        ({"PANPAN_HOME": "p/state"}, "p"),
        ({"PANPAN_HOME": "p"}, "p"),
    ],
)
def test_home_behind_a_lost_link_is_an_error(tmp_path: Path, env: dict[str, str], link: str, target: str) -> None:
    lost = tmp_path / link
    lost.parent.mkdir(exist_ok=True)
    lost.symlink_to(lost if target == "link" else tmp_path / "gone")

    with pytest.raises(ConfigError, match=f"the link {lost} leads nowhere"):
        panpan_home({name: str(tmp_path / value) for name, value in env.items()}, Path("/"))


@pytest.mark.parametrize("is_worktree", [False, True])
def test_project_root_is_the_nearest_repository_upwards(tmp_path: Path, is_worktree: bool) -> None:
    inner = tmp_path / "outer" / "inner"
    deep = inner / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "outer" / ".git").mkdir()
    if is_worktree:
        (inner / ".git").write_text("gitdir: /elsewhere\n")
    else:
        (inner / ".git").mkdir()

    assert find_project_root(deep) == inner.resolve()
    assert find_project_root(tmp_path / "outer") == (tmp_path / "outer").resolve()


def test_project_root_without_git_is_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    assert find_project_root(tmp_path / "a") == (tmp_path / "a").resolve()


def test_link_and_its_target_are_the_same_project(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    assert Locations.find(tmp_path / "link", {}) == Locations.find(tmp_path / "real", {})


@pytest.mark.parametrize("name", ["missing", "file", "loop", "a\0b", "x" * 5000])
def test_unusable_folder_is_an_error_for_the_user(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(ConfigError, match="cannot work in"):
        find_project_root(tmp_path / name)


def test_locations_are_below_the_home_and_nothing_is_made(tmp_path: Path) -> None:
    locations = Locations.find(tmp_path, {"PANPAN_HOME": str(tmp_path / "home")})

    kept = [
        locations.sessions_folder,
        locations.outputs_folder,
        locations.user_settings,
        locations.local_settings,
        locations.debug_folder,
    ]
    assert all(path.is_relative_to(tmp_path.resolve() / "home") for path in kept)
    assert not (tmp_path / "home").exists()
    assert locations.project_settings == tmp_path.resolve() / ".panpan" / "settings.toml"


_NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=80)


@given(st.lists(_NAMES, min_size=1, max_size=8), st.lists(_NAMES, min_size=1, max_size=8))
def test_project_slugs_are_unique_plain_file_names(first: list[str], second: list[str]) -> None:
    paths = [Path("/", *first), Path("/", *second)]

    slugs = [project_slug(path) for path in paths]

    assert (slugs[0] == slugs[1]) == (paths[0] == paths[1])
    for slug in slugs:
        assert slug.isascii()
        assert slug[0].isalnum()
        assert len(slug) < 100
        assert "/" not in slug


def test_project_slug_shows_the_end_of_the_path() -> None:
    assert project_slug(Path("/home/me/my project")).startswith("home-me-my-project-")
    assert "the-end" in project_slug(Path("/" + "x/" * 100 + "the-end"))


def test_project_slug_exists_for_a_name_that_is_no_unicode() -> None:
    assert project_slug(Path(os.fsdecode(b"/p/\xff\xfe"))) != project_slug(Path(os.fsdecode(b"/p/\xff\xfd")))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every folder")
def test_unreadable_parent_folder_is_skipped(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    try:
        (tmp_path / "closed").chmod(stat.S_IXUSR)
        assert find_project_root(inner) == inner
    finally:
        (tmp_path / "closed").chmod(0o700)


@pytest.mark.parametrize(
    ("home", "project", "path", "said"),
    [
        ("me", "me/work", "me/.panpan/settings.toml", "~/.panpan/settings.toml"),
        ("me", "me/work", "me/work/state/settings.toml", "./state/settings.toml"),
        ("me/work", "me", "me/work/settings.toml", "~/settings.toml"),
        ("me", "me/work", "elsewhere/settings.toml", None),
        ("me", "me/work", "me-too/settings.toml", None),
    ],
)
def test_shown_path_is_as_short_as_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, project: str, path: str, said: str | None
) -> None:
    top = tmp_path.resolve()
    (top / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(top / "link"))

    assert Locations(top / ".panpan", top / project).shown(top / path) == (said or str(top / path))


@given(st.lists(_NAMES, min_size=1, max_size=4), st.lists(_NAMES, min_size=1, max_size=4), st.booleans())
def test_shown_path_leads_to_the_same_place(project: list[str], names: list[str], is_inside: bool) -> None:
    root = Path("/", *project)
    path = root.joinpath(*names) if is_inside else Path("/", *names)

    shown = Locations(Path("/kept"), root).shown(path)

    folders = {"~": Path.home().resolve(), ".": root}
    folder, _, rest = shown.partition("/")
    assert (folders[folder] / rest if folder else Path(shown)) == path
