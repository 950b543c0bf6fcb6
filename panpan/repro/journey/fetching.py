"""Fetching: bring the repository and the paper into the folder of the reproduction.

The rule: both appear whole, by a rename, so that a kill leaves nothing that is taken for them. Nothing of them runs.
"""

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from anyio import to_thread

from panpan.batch.store.folder import write_whole
from panpan.config.locations import Locations
from panpan.config.settings import NetworkSettings
from panpan.config.sources import load_settings
from panpan.documents.read_pdf import is_pdf
from panpan.errors import ConfigError, OutputError, ToolError
from panpan.repro.journey.given import Given
from panpan.repro.journey.reproduction_folder import JourneyState, ReproductionFolder
from panpan.system.files.canonical import is_below
from panpan.system.files.folder_tree import remove_tree
from panpan.system.files.read_file import read_users_file
from panpan.system.git.fetching import GitAddress, fetch_repository, run_fetching_git
from panpan.system.web.network import GuardedClient, WebNetwork
from panpan.version import __version__

_MAX_PAPER_BYTES = 100_000_000
_DOWNLOAD_S = 300.0
_PART = "source.part-"

Say = Callable[[str], None]


async def fetch(
    folder: ReproductionFolder,
    state: JourneyState,
    source: Given | None,
    paper: Given | None,
    env: Mapping[str, str],
    say: Say,
    network: WebNetwork | None = None,
) -> JourneyState:
    """Bring what is still missing, and return the state with its origins.

    Args:
        folder: The folder of the reproduction.
        state: The state so far.
        source: Repository or folder; None if it is there, or there is none.
        paper: The paper; None if it is there, or there is none.
        env: The user's environment.
        say: Gets a line for people.
        network: The way to the outside; None: by the user's settings.

    Raises:
        ConfigError: Something cannot be fetched, or is not what is there already.
        OutputError: The folder cannot be written.
    """
    if source is not None:
        if state.source and state.source != _origin(source):
            raise ConfigError(f"{folder.path} is about {state.source}; choose another folder with --into")
        state = state.model_copy(update={"source": _origin(source)})
        if not folder.source.exists():
            state = await _fetch_source(folder, state, source, env, say)
        await to_thread.run_sync(folder.write_state, state)
    if paper is not None and folder.paper is None:
        suffix, data = await _paper_data(paper, env, network)
        await to_thread.run_sync(write_whole, folder.path / f"paper{suffix}", data)
        state = state.model_copy(update={"paper": paper.url or paper.text})
        await to_thread.run_sync(folder.write_state, state)
        say(f"paper: {paper.url or paper.text}, {len(data):,} bytes")
    return state


def _origin(source: Given) -> str:
    if source.address is None:
        return str(source.path)
    return f"{source.address.location}#{source.address.ref}".removesuffix("#")


async def _fetch_source(
    folder: ReproductionFolder, state: JourneyState, source: Given, env: Mapping[str, str], say: Say
) -> JourneyState:
    await to_thread.run_sync(_remove_parts, folder.path)
    if source.path is not None:
        await to_thread.run_sync(_link, folder, source.path)
        say(f"works on {source.path}")
        return state
    assert source.address is not None
    commit = await _clone(folder, source.address, env)
    say(f"cloned {source.address.location} at {commit[:12]}")
    if await to_thread.run_sync((folder.source / ".gitmodules").exists):
        say("its submodules were not fetched; claims whose commands need them will not run")
    return state.model_copy(update={"commit": commit})


async def _clone(folder: ReproductionFolder, address: GitAddress, env: Mapping[str, str]) -> str:
    part = folder.path / f"{_PART}{secrets.token_hex(4)}"
    try:
        part.mkdir()
        commit = await fetch_repository(address, part, env)
        # so that the commit is known to be published there
        await run_fetching_git(["remote", "add", "origin", address.location], part, env)
        await run_fetching_git(["update-ref", "refs/remotes/origin/fetched", commit], part, env)
        part.rename(folder.source)
    except ToolError as error:
        raise ConfigError(f"{address.location} could not be fetched: {error}") from error
    except OSError as error:
        raise OutputError(f"{folder.path} cannot be written: {error.strerror}") from error
    return commit


def _link(folder: ReproductionFolder, target: Path) -> None:
    if is_below(folder.path, target):
        raise ConfigError(f"{folder.path} lies in the folder {target} itself; choose a place outside it with --into")
    part = folder.path / f"{_PART}{secrets.token_hex(4)}"
    try:
        part.symlink_to(target, target_is_directory=True)
        part.rename(folder.source)
    except OSError as error:
        raise OutputError(f"{folder.path} cannot be written: {error.strerror}") from error


def _remove_parts(folder: Path) -> None:
    """Remove what a kill left."""
    for name in os.listdir(folder):  # noqa: PTH208
        if name.startswith(_PART):
            with suppress(OSError):
                path = folder / name
                path.unlink() if path.is_symlink() else remove_tree(path)


async def _paper_data(paper: Given, env: Mapping[str, str], network: WebNetwork | None) -> tuple[str, bytes]:
    """Return the suffix of the paper's file, and its content."""
    try:
        if paper.path is not None:
            data = await to_thread.run_sync(_read, str(paper.path))
            suffix = paper.path.suffix.lower()
            return ".html" if suffix == ".htm" else suffix, data
        data = await _download(paper.url, env, network)
    except ToolError as error:
        raise ConfigError(f"the paper {paper.url or paper.path} could not be fetched: {error}") from error
    suffix = Path(urlsplit(paper.url).path).suffix.lower()
    if is_pdf(data):
        return ".pdf", data
    return (suffix if suffix in (".md", ".tex") else ".html"), data


def _read(path: str) -> bytes:
    return read_users_file(path, max_bytes=_MAX_PAPER_BYTES)


async def users_network(env: Mapping[str, str]) -> WebNetwork:
    """Return the way to the outside by the user's settings."""
    settings = await _web_settings(env)
    return WebNetwork().as_set_up(settings.private_hosts, settings.proxy_url)


async def _web_settings(env: Mapping[str, str]) -> NetworkSettings:
    here = Path("/")
    return (await to_thread.run_sync(lambda: load_settings(here, env, {}, Locations.find(here, env)))).settings.web


async def _download(url: str, env: Mapping[str, str], network: WebNetwork | None) -> bytes:
    network = network or await users_network(env)
    user_agent = (await _web_settings(env)).user_agent or f"panpan/{__version__}"
    async with (
        GuardedClient(network, user_agent=user_agent, own=(url,)) as client,
        client.stream("GET", url, headers={"accept-encoding": "identity"}) as response,
    ):
        if response.status != 200:
            raise ToolError(f"the server answered {response.status}")
        return await response.read(_MAX_PAPER_BYTES, within_s=_DOWNLOAD_S)
