"""Fetching plug-ins: from folders, archives, git and a registry, none of which runs anything."""

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from panpan.capabilities.plugins.adding import FoundPlugin, fetch_plugin, require_unmoved
from panpan.capabilities.plugins.fetching import Fetcher
from panpan.config.plugins.store import Installed
from panpan.errors import ConfigError
from tests.fakes.file_server import Files
from tests.fakes.outside import PUBLIC, Network, serving

PLUGIN = {
    ".claude-plugin/plugin.json": '{"name": "acme", "version": "1.0"}',
    "skills/deploy/SKILL.md": "---\nname: deploy\ndescription: d\n---\nx",
}
HOST = "plugins.example.org"


def write(folder: Path, texts: Mapping[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def fetcher(network: Network | None = None, **env: str) -> Fetcher:
    return Fetcher((network or Network()).web, "panpan/test", env)


async def fetch(source: str, cwd: Path, by: Fetcher | None = None, *, name: str = "", path: str = "") -> FoundPlugin:
    return await fetch_plugin(Installed("", source, name, path), cwd, by or fetcher())


async def refusal(source: str, cwd: Path, by: Fetcher | None = None, *, name: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        await fetch(source, cwd, by, name=name)
    return str(caught.value)


def tarball(texts: Mapping[str, str], prefix: str = "package/") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in texts.items():
            info = tarfile.TarInfo(f"{prefix}{name}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()


def git(folder: Path, *args: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main", *args]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, texts: Mapping[str, str]) -> str:
    write(folder, texts)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, PLUGIN)
    return folder


async def test_folder_is_fetched(tmp_path: Path) -> None:
    write(tmp_path / "acme", PLUGIN)

    found = await fetch("./acme", tmp_path)

    assert (found.plugin.name, found.version.version, found.source) == ("acme", "1.0", str(tmp_path / "acme"))
    assert set(found.files) == set(PLUGIN)


async def test_archives_are_fetched(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "acme.zip", "w") as packed:
        for name, text in PLUGIN.items():
            packed.writestr(f"acme-1.0/{name}", text)
    (tmp_path / "acme.tar.gz").write_bytes(tarball(PLUGIN, ""))

    for name in ("acme.zip", "acme.tar.gz"):
        found = await fetch(name, tmp_path)
        assert set(found.files) == set(PLUGIN)
        assert found.version.revision == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()


async def test_archive_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "slip.tgz").write_bytes(tarball({**PLUGIN, "../../out": "x"}))
    (tmp_path / "other.zip").write_bytes(b"PK no zip")

    assert "a name that leads elsewhere" in await refusal("slip.tgz", tmp_path)
    assert "damaged" in await refusal("other.zip", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["other.zip", "slip.tgz"]  # noqa: PTH208 - only names


async def test_repository_is_fetched_at_branch_tag_and_commit(tmp_path: Path, repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "v1")
    second = commit(repository, {"README.md": "x"})
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")

    for ref, expected in (("", second), ("#main", second), ("#v1", first), (f"#{first}", first)):
        found = await fetch(f"file://{repository}{ref}", tmp_path)
        assert found.version.revision == expected
        assert not any(name.startswith(".git/") for name in found.files)
    assert "git fetch failed" in await refusal(f"file://{repository}#gone", tmp_path)


async def test_fetching_a_repository_runs_nothing(tmp_path: Path, repository: Path) -> None:
    ran, home = tmp_path / "ran", tmp_path / "home"
    hooks = write(home / "hooks", {"post-checkout": f"#!/bin/sh\ntouch {ran}"})
    (hooks / "post-checkout").chmod(0o755)
    git(home, "config", "--file", ".gitconfig", "core.hooksPath", str(hooks))
    git(home, "config", "--file", ".gitconfig", "filter.bad.smudge", f"touch {ran}; cat")
    modules = f'[submodule "s"]\npath = s\nurl = {repository}'
    commit(repository, {".gitattributes": "* filter=bad", ".gitmodules": modules})

    found = await fetch(f"file://{repository}", tmp_path, fetcher(HOME=str(home), PATH=os.environ["PATH"]))

    assert ".gitattributes" in found.files
    assert not ran.exists()


async def test_tag_that_moved_is_refused(tmp_path: Path, repository: Path) -> None:
    git(repository, "tag", "v1")
    before = await fetch(f"file://{repository}#v1", tmp_path)
    whole = await fetch(f"file://{repository}#refs/tags/v1", tmp_path)
    branch = await fetch(f"file://{repository}#main", tmp_path)
    commit(repository, {"README.md": "x"})
    git(repository, "tag", "-f", "v1")
    after = await fetch(f"file://{repository}#v1", tmp_path)
    newer = await fetch(f"file://{repository}#main", tmp_path)
    after_whole = await fetch(f"file://{repository}#refs/tags/v1", tmp_path)

    with pytest.raises(ConfigError, match="the tag refs/tags/v1 has moved"):
        await require_unmoved(Installed("acme", whole.source, current=whole.version), after_whole, fetcher())
    with pytest.raises(ConfigError, match="the tag v1 has moved"):
        await require_unmoved(Installed("acme", before.source, current=before.version), after, fetcher())
    await require_unmoved(Installed("acme", branch.source, current=branch.version), newer, fetcher())


def catalogue(*entries: object) -> Mapping[str, str]:
    return {".claude-plugin/marketplace.json": json.dumps({"name": "all", "plugins": entries})}


async def test_catalogue_needs_the_name_of_one(tmp_path: Path) -> None:
    inside = {f"plugins/a/{name}": text for name, text in PLUGIN.items()}
    write(tmp_path / "all", {**catalogue({"name": "acme", "source": "./plugins/a"}, {"name": "b"}), **inside})

    assert "lists several plug-ins; say which: acme, b" in await refusal("all", tmp_path)
    assert set((await fetch("all", tmp_path, name="acme")).files) == set(PLUGIN)
    assert "has no plug-in c; it has acme, b" in await refusal("all", tmp_path, name="c")
    assert "gives no source" in await refusal("all", tmp_path, name="b")


async def test_only_plugin_of_a_catalogue_needs_no_name(tmp_path: Path) -> None:
    inside = {f"plugins/a/{name}": text for name, text in PLUGIN.items()}
    write(tmp_path / "one", {**catalogue({"name": "acme", "source": "./plugins/a"}), **inside})
    write(tmp_path / "none", catalogue())

    found = await fetch("one", tmp_path)

    assert set(found.files) == set(PLUGIN)
    assert found.plugin == (await fetch("one", tmp_path, name="acme")).plugin
    assert "is a catalogue without plug-ins" in await refusal("none", tmp_path)


async def test_catalogue_may_say_what_a_plugin_does_not(tmp_path: Path) -> None:
    entry = {"name": "forms", "source": "./", "strict": False, "skills": ["./pdf"], "description": "Forms"}
    write(tmp_path / "all", {**catalogue(entry), "pdf/SKILL.md": "---\nname: pdf\n---\nx", "doc/SKILL.md": "x"})

    plugin = (await fetch("all", tmp_path, name="forms")).plugin

    assert (plugin.name, plugin.description) == ("forms", "Forms")
    assert [part.path for part in plugin.parts] == ["pdf/SKILL.md"]
    assert plugin.problems == []


async def test_commit_that_a_catalogue_pins_must_be_what_comes(tmp_path: Path, repository: Path) -> None:
    entry = {"name": "acme", "source": {"source": "url", "url": f"file://{repository}", "ref": "main", "sha": "a" * 40}}
    write(tmp_path / "all", catalogue(entry))

    assert "and not the commit aaaaaaaaaaaa" in await refusal("all", tmp_path, name="acme")


@pytest.mark.parametrize("text", ["{", "[]", '{"plugins": 3}', '{"plugins": [{}]}'])
async def test_broken_catalogue_is_told(tmp_path: Path, text: str) -> None:
    write(tmp_path / "all", {".agents/plugins/marketplace.json": text})

    assert "is no catalogue of plug-ins" in await refusal("all", tmp_path)


# Packages of a registry


@asynccontextmanager
async def registry(files: Files) -> AsyncGenerator[Fetcher, None]:
    network = Network(names={HOST: [PUBLIC]})
    async with serving(files.serve) as port:
        network.ports[PUBLIC, 80] = port
        yield fetcher(network, npm_config_registry=f"http://{HOST}/npm/")


def packages(data: bytes, told: bytes | None = None) -> Files:
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(data if told is None else told).digest()).decode()}"
    version = {"dist": {"tarball": f"http://{HOST}/acme-1.0.0.tgz", "integrity": integrity}}
    listed = {"dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    return Files({"/npm/@a%2Facme": json.dumps(listed).encode(), "/acme-1.0.0.tgz": data})


async def test_package_is_fetched_without_its_scripts(tmp_path: Path) -> None:
    scripts = {"package.json": json.dumps({"scripts": {"postinstall": f"touch {tmp_path}/ran"}})}
    async with registry(packages(tarball({**PLUGIN, **scripts}))) as by:
        found = await fetch("npm:@a/acme", tmp_path, by)
        assert "has no version 2.0.0" in await refusal("npm:@a/acme@2.0.0", tmp_path, by)
        assert "404" in await refusal("npm:other", tmp_path, by)

    assert set(found.files) == {*PLUGIN, "package.json"}
    assert found.version.revision.startswith("1.0.0 (sha512-")
    assert not (tmp_path / "ran").exists()


async def test_package_with_other_content_is_refused(tmp_path: Path) -> None:
    async with registry(packages(tarball(PLUGIN), told=b"other")) as by:
        assert "its digest differs" in await refusal("npm:@a/acme", tmp_path, by)
    async with registry(packages(tarball(PLUGIN))) as by:
        before = await fetch("npm:@a/acme", tmp_path, by)
    async with registry(packages(tarball({**PLUGIN, "README.md": "x"}))) as by:
        after = await fetch("npm:@a/acme", tmp_path, by)
        with pytest.raises(ConfigError, match=r"version 1\.0\.0 of @a/acme has other content"):
            await require_unmoved(Installed("acme", before.source, current=before.version), after, by)


@pytest.mark.parametrize("tarball_address", [5, None, ["x"]])
async def test_registry_that_tells_nonsense_is_refused(tmp_path: Path, tarball_address: object) -> None:
    files = packages(tarball(PLUGIN))
    told = json.loads(files.contents["/npm/@a%2Facme"])
    told["versions"]["1.0.0"]["dist"]["tarball"] = tarball_address
    files.contents["/npm/@a%2Facme"] = json.dumps(told).encode()
    async with registry(files) as by:
        assert "could not be fetched" in await refusal("npm:@a/acme", tmp_path, by)


async def test_catalogue_does_not_lead_into_the_own_network(tmp_path: Path) -> None:
    source = {"source": "archive", "url": "https://127.0.0.1/a.zip", "sha256": "a" * 64}
    write(tmp_path / "all", catalogue({"name": "acme", "source": source}))

    assert "127.0.0.1" in await refusal("all", tmp_path, name="acme")


async def test_archive_is_fetched_from_the_web(tmp_path: Path) -> None:
    data = tarball(PLUGIN)
    async with registry(Files({"/a.tgz": data})) as by:
        found = await fetch(f"http://{HOST}/a.tgz", tmp_path, by)

    assert found.version.revision == hashlib.sha256(data).hexdigest()
