"""Sources of plug-ins: what users and catalogues write, and what may not be in it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.plugins.source import Source, parse_source, source_of_entry
from panpan.errors import ConfigError

COMMIT = "0123456789" * 4
HASH = "ab" * 32


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("https://github.com/a/b", Source("git", "https://github.com/a/b")),
        ("https://github.com/a/b.git#v1", Source("git", "https://github.com/a/b.git", "v1")),
        ("git@example.org:a/b.git#main", Source("git", "git@example.org:a/b.git", "main")),
        ("ssh://git@example.org/a.git", Source("git", "ssh://git@example.org/a.git")),
        ("git+https://example.org/a", Source("git", "https://example.org/a")),
        ("a/b", Source("git", "https://github.com/a/b")),
        ("npm:acme", Source("npm", "acme")),
        ("npm:@acme/tools@1.2.3", Source("npm", "@acme/tools", "1.2.3")),
        ("https://example.org/a.tar.gz", Source("url", "https://example.org/a.tar.gz")),
    ],
)
def test_source_is_read(text: str, source: Source, tmp_path: Path) -> None:
    assert parse_source(text, tmp_path) == replace(source, is_users=True)


def test_folder_and_archive_are_read_from_here(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme.zip").touch()
    (tmp_path / "notes.txt").touch()

    assert parse_source("acme", tmp_path) == Source("folder", str(tmp_path / "acme"), is_users=True)
    assert parse_source("./acme.zip", tmp_path) == Source("archive", str(tmp_path / "acme.zip"), is_users=True)
    with pytest.raises(ConfigError, match="neither a folder nor an archive"):
        parse_source("notes.txt", tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "nowhere", "--upload-pack=x", "ext::sh -c x", "https://example.org/a#--x", "npm:", "npm:../x", "npm:a@--x",
     "git@-host:a/../..\n"],
)  # fmt: skip
def test_source_of_no_kind_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        parse_source(text, tmp_path)


CATALOGUE = Source("git", "https://example.org/all", "main")


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ("./plugins/a", Source("git", "https://example.org/all", "main", "plugins/a")),
        ("./", Source("git", "https://example.org/all", "main")),
        ({"source": "local", "path": "./plugins/a"}, Source("git", "https://example.org/all", "main", "plugins/a")),
        ({"source": "github", "repo": "a/b", "ref": "v1"}, Source("git", "https://github.com/a/b", "v1")),
        (
            {"source": "url", "url": "https://example.org/a.git", "sha": COMMIT},
            Source("git", "https://example.org/a.git", pinned=COMMIT),
        ),
        (
            {"source": "git-subdir", "url": "a/b", "path": "x/y", "ref": "main"},
            Source("git", "https://github.com/a/b", "main", "x/y"),
        ),
        ({"source": "npm", "package": "@a/b", "version": "1.0.0"}, Source("npm", "@a/b", "1.0.0")),
        (
            {"source": "archive", "url": "https://example.org/a.zip", "sha256": HASH},
            Source("url", "https://example.org/a.zip", pinned=HASH),
        ),
    ],
)
def test_entry_of_a_catalogue_names_its_source(given: Any, source: Source) -> None:
    assert source_of_entry(given, CATALOGUE) == source


@pytest.mark.parametrize(
    "given",
    [
        None,
        3,
        {},
        "../out",
        "/etc",
        {"source": "git-subdir", "url": "a/b", "path": "../x"},
        {"source": "command", "command": ["rm", "-rf", "/"]},
        {"source": "archive", "url": "https://example.org/a.zip"},
        {"source": "archive", "url": "http://example.org/a.zip", "sha256": HASH},
        {"source": "github", "repo": "--upload-pack=x"},
        {"source": "url", "url": "ext::sh"},
        {"source": "url", "url": "file:///home/me/secret"},
        {"source": "url", "url": "--upload-pack=x"},
        {"source": "url", "url": "https://example.org/a", "ref": "--x"},
        {"source": "url", "url": "https://example.org/a", "sha": "main"},
        {"source": "npm", "package": "a", "registry": "http://127.0.0.1:1"},
        {"source": "unheard"},
    ],
)
def test_entry_without_a_usable_source_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError):
        source_of_entry(given, CATALOGUE)
