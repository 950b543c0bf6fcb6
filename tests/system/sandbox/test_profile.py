from pathlib import Path

import pytest

from panpan.system.sandbox.profile import ALWAYS, MAX_ENTRIES, Profile, protected_places, read_only, workspace_write


def made(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return root


def found_in(root: Path) -> set[str]:
    return {str(place.relative_to(root)) for place in protected_places(root).places}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (".envrc", ".envrc"),
        (".ENVRC", ".ENVRC"),
        (".env.local", ".env.local"),
        (".vscode/tasks.json", ".vscode"),
        ("mine.code-workspace", "mine.code-workspace"),
        (".github/workflows/ci.yml", ".github"),
        (".docker/config.json", ".docker"),
        ("packages/web/.npmrc", "packages/web/.npmrc"),
        ("packages/web/.git/config", "packages/web/.git"),
        ("packages/web/.config/git/config", "packages/web/.config"),
        (".cache/huggingface/token", ".cache"),
        (".venv/pip.conf", ".venv/pip.conf"),
        ("a/.hidden/b/.envrc", "a/.hidden/b/.envrc"),
        ("lib/sitecustomize.py", "lib/sitecustomize.py"),
        (".travis.yml", ".travis.yml"),
        ("sub/.woodpecker/x.yml", "sub/.woodpecker"),
        (".ssh/x.pem", ".ssh"),
    ],
)
def test_protected_places_are_found(tmp_path: Path, name: str, place: str) -> None:
    assert found_in(made(tmp_path, name)) == {*ALWAYS, place}


@pytest.mark.parametrize(
    "name",
    [
        ".env.example", ".github/ISSUE_TEMPLATE/bug.md", "src/git.py", ".gitignore", "etc/shadow", "certs/server.pem",
        "site-packages/x.pth", ".yarn/releases/yarn.cjs",
    ],
)  # fmt: skip
def test_unprotected_places_are_left_alone(tmp_path: Path, name: str) -> None:
    assert found_in(made(tmp_path, name)) == set(ALWAYS)


def test_place_of_the_root_does_not_matter(tmp_path: Path) -> None:
    root = made(tmp_path / ".vscode" / ".git" / "root", "a", ".envrc")

    assert found_in(root) == {*ALWAYS, ".envrc"}


def test_links_are_not_followed_but_a_protected_target_is_kept(tmp_path: Path) -> None:
    root = made(tmp_path / "root", "real/x")
    made(tmp_path / "other", ".envrc")
    (root / ".env").symlink_to("real/x")
    (root / "other").symlink_to(tmp_path / "other")

    assert set(workspace_write([root]).protected) == {root / name for name in (*ALWAYS, ".env", "real/x")}


def test_lookup_is_bounded_and_finds_the_nearest(tmp_path: Path) -> None:
    made(tmp_path, *(f"many/{number}" for number in range(MAX_ENTRIES)), "many-more/.envrc/x", "few/.npmrc")
    (tmp_path / "few" / "z").mkdir()
    made(tmp_path, ".envrc")

    places = found_in(tmp_path)

    assert {*ALWAYS, ".envrc"} <= places
    assert len(places) <= len(ALWAYS) + 3


def test_unreadable_root_still_protects_its_own_places(tmp_path: Path) -> None:
    assert found_in(tmp_path / "gone") == set(ALWAYS)


def test_profiles_are_canonical(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    profile = workspace_write([tmp_path / "real"], temporary=tmp_path / "link" / "..")

    assert profile.writable == (tmp_path / "real", tmp_path)
    assert profile.protected == tuple(tmp_path / "real" / name for name in ALWAYS)
    assert not profile.has_network
    assert profile.also_writing(tmp_path / "link" / "x").writable == (
        tmp_path / "real",
        tmp_path,
        tmp_path / "real" / "x",
    )


def test_root_replaced_by_a_link_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").symlink_to("elsewhere")

    assert workspace_write([tmp_path / "root"]) == workspace_write([])


@pytest.mark.parametrize("root", ["/", "/proc", "/proc/self", "/sys", "/sys/fs/cgroup", "/dev", "/dev/pts"])
def test_system_folders_are_never_writable(root: str) -> None:
    assert workspace_write([Path(root)]).writable == ()


def test_read_only_profile_writes_only_temporary_files(tmp_path: Path) -> None:
    assert read_only() == Profile()
    assert read_only(temporary=tmp_path, has_network=True) == Profile(writable=(tmp_path,), has_network=True)
