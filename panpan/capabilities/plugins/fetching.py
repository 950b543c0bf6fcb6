"""Fetching of plug-ins: from a folder, an archive, a git repository or a package registry, into memory.

The rule: nothing that is fetched runs: no hooks of git, no submodules, no scripts of packages. What is pinned must be
what comes. It is read with the limits of the store.
"""

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

from anyio import to_thread

from panpan.capabilities.plugins.source import Source
from panpan.config.plugins.manifest import PluginError
from panpan.config.plugins.store import MAX_BYTES, MAX_FILES, SourceFile, read_folder
from panpan.errors import ConfigError, ToolError
from panpan.system.files.archive import UnpackLimits, unpack
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.folder_tree import temporary_folder
from panpan.system.files.read_file import read_users_file
from panpan.system.git.fetching import GitAddress, fetch_repository, run_fetching_git
from panpan.system.web.network import GuardedClient, WebNetwork
from panpan.types.dataclass import dataclass

REGISTRY = "https://registry.npmjs.org"
DOWNLOAD_S = 300.0
"""Most seconds to read one answer."""
_MAX_METADATA_BYTES = 50_000_000
_LIMITS = UnpackLimits(max_bytes=MAX_BYTES, max_ratio=200, max_places=4 * MAX_FILES, takes_protected=True)


@dataclass(frozen=True, slots=True)
class Fetched:
    """Content of a source."""

    files: Mapping[str, SourceFile]
    revision: str = ""
    """Commit, version of a package, or SHA-256 of an archive; empty for a folder."""
    left_out: Sequence[str] = ()
    """Files that are left out, each with the reason."""
    folder_name: str = ""
    """Name of a plug-in that has none itself."""

    def below(self, path: str) -> "Fetched":
        """Return the content of one of its folders; raise `ConfigError` where there is none."""
        if not path:
            return self
        files = {name.removeprefix(f"{path}/"): one for name, one in self.files.items() if name.startswith(f"{path}/")}
        if not files:
            raise ConfigError(f"the source has no folder {path}")
        left_out = [line.removeprefix(f"{path}/") for line in self.left_out if line.startswith(f"{path}/")]
        return Fetched(files, self.revision, left_out, path.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches plug-ins."""

    network: WebNetwork
    user_agent: str
    env: Mapping[str, str]
    """The environment of panpan."""
    only_folders: bool = False
    """True if nothing but folders of this machine is read."""

    async def fetch(self, source: Source) -> Fetched:
        """Return the content of a source.

        Raises:
            ConfigError: It cannot be fetched, or is not what is pinned.
        """
        if self.only_folders and source.kind != "folder":
            raise ConfigError(f"{source.location} is not in this folder; panpan plugin add fetches it")
        try:
            with temporary_folder("panpan-plugin-") as folder:
                match source.kind:
                    case "folder":
                        found = await to_thread.run_sync(_read, Path(source.location), "")
                    case "archive":
                        data = await to_thread.run_sync(_read_archive, source.location)
                        found = await to_thread.run_sync(_unpacked, data, source.location, folder, source)
                    case "url":
                        data = await self._get(source.location, MAX_BYTES, is_own=source.is_users)
                        found = await to_thread.run_sync(_unpacked, data, source.location, folder, source)
                    case "git":
                        found = await self._from_git(source, folder)
                    case "npm":
                        found = await self._from_npm(source, folder)
            return found.below(source.path)
        except (ToolError, PluginError, OSError) as error:
            raise ConfigError(f"{source.location} could not be fetched: {error}") from error

    # Web

    async def _get(self, url: str, max_bytes: int, *, is_own: bool) -> bytes:
        own = (url,) if is_own else ()
        async with (
            GuardedClient(self.network, user_agent=self.user_agent, own=own) as client,
            client.stream("GET", url, headers={"accept-encoding": "identity"}) as response,
        ):
            if response.status != 200:
                raise ToolError(f"the server answered {response.status}")
            return await response.read(max_bytes, within_s=DOWNLOAD_S)

    async def _from_npm(self, source: Source, folder: Path) -> Fetched:
        registry = source.registry or self.env.get("npm_config_registry") or self.env.get("NPM_CONFIG_REGISTRY")
        address = f"{(registry or REGISTRY).rstrip('/')}/{quote(source.location, safe='@')}"
        try:
            is_own = not source.registry  # the user's environment names it
            told = json.loads(await self._get(address, _MAX_METADATA_BYTES, is_own=is_own))
            version = told.get("dist-tags", {}).get(source.ref or "latest", source.ref)
            dist = told["versions"][version]["dist"]
            tarball, integrity = urljoin(address, dist["tarball"]), dist["integrity"]
            is_own = is_own and urlsplit(tarball).netloc == urlsplit(address).netloc
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ToolError(f"the registry has no version {source.ref or 'latest'} of {source.location}") from None
        data = await self._get(tarball, MAX_BYTES, is_own=is_own)
        _require_integrity(data, integrity)
        found = await to_thread.run_sync(_unpacked, data, "package.tgz", folder, Source("archive", ""))
        name = source.location.rpartition("/")[2]
        return Fetched(found.files, f"{version} ({integrity})", found.left_out, name)

    # git

    async def _from_git(self, source: Source, folder: Path) -> Fetched:
        checkout = folder / "checkout"
        checkout.mkdir()
        address = GitAddress(source.location, source.ref)
        commit = await fetch_repository(address, checkout, self.env, pinned=source.pinned)
        name = source.location.rstrip("/").rpartition("/")[2].removesuffix(".git")
        return await to_thread.run_sync(_read, checkout, commit, name)

    async def is_tag(self, source: Source) -> bool:
        """Return True if the source is a git repository, and its ref a tag."""
        if source.kind != "git" or not source.ref:
            return False
        bare = source.ref.removeprefix("refs/").removeprefix("tags/")
        try:
            with temporary_folder("panpan-plugin-") as folder:
                asking = ["ls-remote", "--", source.location, f"refs/tags/{bare}"]
                listed = await run_fetching_git(asking, folder, self.env)
        except ToolError:
            return False
        return bool(listed.strip())


def _read(folder: Path, revision: str, name: str = "") -> Fetched:
    files, left_out = read_folder(folder)
    return Fetched(files, revision, left_out, name or folder.name)


def _read_archive(path: str) -> bytes:
    return read_users_file(path, max_bytes=MAX_BYTES)


def _unpacked(data: bytes, name: str, folder: Path, source: Source) -> Fetched:
    digest = hashlib.sha256(data).hexdigest()
    if source.pinned and digest != source.pinned:
        raise ToolError(f"it has the SHA-256 {digest[:12]}…, and not {source.pinned[:12]}…")
    last = name.rstrip("/").rpartition("/")[2]
    archive, unpacked = folder / last, folder / "unpacked"
    archive.write_bytes(data)
    unpack(archive, unpacked, _LIMITS)
    inside = canonical_path(unpacked)
    found = os.listdir(inside)  # noqa: PTH208 - only names are needed
    only = inside / found[0] if len(found) == 1 else inside
    if only.is_dir() and is_below(only, inside) and not found[0].startswith("."):
        inside = only  # such as `package` in a package, or `NAME-1.0` in a release
    return _read(inside, digest, last.partition(".")[0])


def _require_integrity(data: bytes, integrity: object) -> None:
    """Compare a package with the digest that its registry tells (Subresource Integrity).

    Raises:
        ToolError: They differ, or there is none.
    """
    algorithm, _, told = str(integrity).partition("-")
    if algorithm not in ("sha512", "sha384", "sha256"):
        raise ToolError("the registry tells no digest of it")
    if base64.b64encode(hashlib.new(algorithm, data).digest()).decode() != told.partition("?")[0]:
        raise ToolError("the package is not the one that the registry tells of; its digest differs")
