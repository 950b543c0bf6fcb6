"""Locating many paths of one call gives the same as locating each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.permissions.reach.located import LocatedUse, Locator
from panpan.system.files.paths import Location, PathResolver

NAMES = [
    "a.py", ".env", "src", "link", "out", "up", "real", "deep", "x.pem", "home", ".git", "config", "odd", "nowhere",
    ".", "..", "", "readable", "id_rsa", "conf.d", "settings.toml",
]  # fmt: skip


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> PathResolver:
    place = tmp_path_factory.mktemp("located").resolve()
    root = place / "work"
    for name in (
        "src/a.py", "src/deep/a.py", ".git/config", "home/settings.toml", "real/odd", "real/a.py", "src/id_rsa",
        "src/x.pem", "conf.d/a.py", "../outside/a.py", "../outside/readable/a.py", "a.py",
    ):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    for link, target in ((".env", "real/odd"), ("link", "src"), ("out", "../outside"), ("src/up", "..")):
        (root / link).symlink_to(target)
    (root / ".bashrc").symlink_to("real/a.py")
    (root / "src/link").symlink_to("a.py")
    return PathResolver(
        root, readable_roots=(place / "outside/readable",), protected_roots=(root / "home",), home=place / "user"
    )


def one_by_one(path: str, paths: PathResolver) -> Location | None:
    try:
        return paths.locate(path)
    except ToolError:
        return None


def together(path: str, locator: Locator) -> LocatedUse | None:
    try:
        return locator.locate_use(PathUse(path, "read"))
    except ToolError:
        return None


paths_in_it = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(paths_in_it, min_size=1, max_size=8), st.booleans())
def test_locator_agrees_with_single_lookups(paths: PathResolver, some: Sequence[str], is_absolute: bool) -> None:
    locator = Locator(paths)

    for path in some:
        written = f"{paths.root}/{path}" if is_absolute else path
        found = together(written, locator)

        assert (found.location if found else None) == one_by_one(written, paths), written
        if found is not None:
            assert found.spellings[0] == found.location.path
            assert len(found.spellings) == 1 or found.spellings[1].is_absolute()


def test_locator_keeps_targets_of_protected_names_protected(paths: PathResolver) -> None:
    locator = Locator(paths)

    assert locator.locate_use(PathUse("real/odd", "read")).location.is_secret
    assert locator.locate_use(PathUse("real/a.py", "write")).location.is_protected
    assert not locator.locate_use(PathUse("src/a.py", "write")).location.is_protected


def regular_files(folder: Path) -> list[str]:
    return [place.name for place in folder.iterdir() if place.is_file() and not place.is_symlink()]


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(paths_in_it, st.sampled_from(["read", "write"]))
def test_locator_treats_plain_files_of_a_folder_alike(
    paths: PathResolver, folder: str, access: Literal["read", "write"]
) -> None:
    folder = f"./{folder}"
    place = paths.root / folder
    names = regular_files(place) if place.is_dir() else []

    plain = Locator(paths).plain_files(PathUse(folder, access), dict.fromkeys(names, "a command"))

    for name in plain.commands:
        alone = Locator(paths).locate_use(PathUse(f"{folder}/{name}", access), command="a command")
        assert plain.use(name).location == alone.location == paths.locate(f"{folder}/{name}")
        assert plain.use(name).spellings == alone.spellings
        assert alone.is_open
        assert not alone.needs_a_person
    # What else is there needs more than a look at its folder.
    others = [paths.locate(f"{folder}/{name}") for name in names if name not in plain.commands]
    assert all(other.is_protected or other.is_secret or not other.is_inside or odd(other.path) for other in others)


def odd(path: Path) -> bool:
    return path.name == "config"  # the end of a protected name


@pytest.mark.parametrize("name", ["home", "readable", "added"])
def test_locator_does_not_judge_a_missing_root_as_its_folder(tmp_path: Path, name: str) -> None:
    root = tmp_path.resolve() / "work"
    (root / "added").mkdir(parents=True)
    paths = PathResolver(
        root / "added",
        extra_roots=(root / "added",),
        readable_roots=(root / "readable",),
        protected_roots=(root / "home",),
        home=tmp_path,
    )
    locator = Locator(paths)

    locator.locate_use(PathUse(str(root / "other"), "write"))

    assert locator.locate_use(PathUse(str(root / name), "write")).location == paths.locate(str(root / name))
