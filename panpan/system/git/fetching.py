"""Fetching of git repositories from addresses that the user or a catalogue names.

The rule: nothing that is fetched runs: no hooks, no filters, no submodules, no remote helpers but git's own.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from anyio import to_thread

from panpan.errors import ConfigError, ToolError
from panpan.system.environment import user_environment
from panpan.system.git.git import git_program
from panpan.system.processes.process import capture
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

GIT_S = 300.0
"""Most seconds of one command of git."""

GITHUB = compile_late(r"[A-Za-z0-9](?:[\w.-]*\w)?/[\w.-]*\w")
"""OWNER/NAME on GitHub."""
SCP = compile_late(r"[\w.-]+@[\w.-]+:(?!//).+")
"""Address such as `git@example.org:owner/name.git`."""
GIT_SCHEMES = ("git+https://", "git+ssh://", "git+file://", "ssh://", "git://", "file://")
"""Beginnings of addresses that only git understands."""
_REF = compile_late(r"\w[\w./+@-]*")
_SETTINGS: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "transfer.fsckObjects": "true",
}
_NO_SETTINGS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class GitAddress:
    """Place of a repository."""

    location: str
    """As git takes it."""
    ref: str = ""
    """Branch, tag or commit; empty for the repository's usual branch."""
    is_at: tuple[str, ...] = ()
    """HOST:PORT and the IP addresses at which alone it is asked for, without redirects; empty for any."""

    @property
    def name(self) -> str:
        """Last part of the address."""
        return self.location.rstrip("/").replace(":", "/").rpartition("/")[2].removesuffix(".git")


def git_address(text: str) -> GitAddress | None:
    """Return the address of a repository that a user wrote, with `#REF` at its end if they want; None if it is none.

    Raises:
        ConfigError: It is one, but cannot be used.
    """
    written, _, ref = text.partition("#")
    if written.startswith(("https://", "http://", *GIT_SCHEMES)) or SCP.fullmatch(written):
        return checked_address(written.removeprefix("git+"), ref)
    if GITHUB.fullmatch(written):
        return checked_address(f"https://github.com/{written}", ref)
    return None


def checked_address(location: str, ref: str) -> GitAddress:
    """Return an address; raise `ConfigError` if git would take a part of it for something else."""
    if ref and not _REF.fullmatch(ref):
        raise ConfigError(f"#{ref} names no branch, tag or commit")
    if location.startswith("-"):
        raise ConfigError(f"{location} is no address")
    return GitAddress(location, ref)


async def fetch_repository(address: GitAddress, into: Path, env: Mapping[str, str], *, pinned: str = "") -> str:
    """Make a repository with the files of one commit, without its history, and return the commit.

    Args:
        address: Where it comes from.
        into: An empty folder.
        env: The user's environment, which may hold proxies and ssh agents.
        pinned: Commit that it must be; empty for any.

    Raises:
        ToolError: git failed, or the commit is another one.
    """
    await run_fetching_git(["init", "--quiet", "--template=", "."], into, env)
    fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", address.location]
    place = _place(address)
    try:
        await run_fetching_git([*fetch, pinned or address.ref or "HEAD"], into, env, place)
    except ToolError:
        if not pinned:
            raise
        await run_fetching_git(
            [*fetch, address.ref or "HEAD"], into, env, place
        )  # a server that gives no single commits
    commit = (await run_fetching_git(["rev-parse", "FETCH_HEAD^{commit}"], into, env)).strip()
    if pinned and commit != pinned:
        raise ToolError(f"{address.ref or 'it'} is now {commit[:12]}, and not the commit {pinned[:12]}")
    # stronger than the repository's own attributes, by which it could choose among the filters of the user
    await to_thread.run_sync(_write_attributes, into / ".git" / "info")
    await run_fetching_git(["checkout", "--quiet", "--detach", "FETCH_HEAD"], into, env)
    return commit


def _place(address: GitAddress) -> Mapping[str, str]:
    """Return the settings that hold git to the place of an address."""
    if not address.is_at:
        return {}
    host, *found = address.is_at
    addresses = ",".join(f"[{one}]" if ":" in one else one for one in found)
    return {"http.followRedirects": "false", "http.curloptResolve": f"{host}:{addresses}"}


async def run_fetching_git(
    args: Sequence[str], cwd: Path, env: Mapping[str, str], settings: Mapping[str, str] = _NO_SETTINGS
) -> str:
    """Run a command of git that may use the network, and return what it printed.

    Args:
        args: The command.
        cwd: Folder of the repository.
        env: The user's environment.
        settings: Further settings of git.

    Raises:
        ToolError: It failed.
    """
    options = [part for key, value in {**_SETTINGS, **settings}.items() for part in ("-c", f"{key}={value}")]
    variables = {name: value for name, value in user_environment(env).items() if not name.startswith("GIT_DIR")}
    variables |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
    }
    command = [git_program(cwd), *options, *args]
    ran = await capture(command, cwd=cwd, env=variables, timeout_s=GIT_S, max_bytes=1_000_000)
    if ran.timed_out:
        raise ToolError(f"git {args[0]} took longer than {GIT_S:g} s")
    if ran.exit_code != 0:
        said = [clean_line(line) for line in ran.stderr.decode(errors="replace").splitlines() if line.strip()]
        told = next((line for line in said if line.startswith("fatal:")), said[-1] if said else f"code {ran.exit_code}")
        raise ToolError(f"git {args[0]} failed: {told.removeprefix('fatal: ')}")
    return ran.stdout.decode(errors="replace")


def _write_attributes(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "attributes").write_text("* -filter -ident -text -working-tree-encoding\n")
