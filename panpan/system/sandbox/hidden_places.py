"""Places that a box does not show: secrets, places that rules close and, unless the user was asked, the home.

The rule: a place is hidden whatever a command calls it, since the box has nothing there. Files that git tracks in a
workspace are no secrets, since they are in every copy of the repository.
"""

import os
import pwd
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below, names_in, user_home, walk
from panpan.system.files.protected import PROTECTED_GROUPS
from panpan.system.git.git_places import GitIndex
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_ALSO_IN_HOME = (
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history",
    ".lesshst", ".local/share/fish/fish_history", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
    ".config/vivaldi", ".config/opera", ".thunderbird", ".librewolf", ".var/app/org.mozilla.firefox",
    "snap/firefox/common/.mozilla", "snap/chromium", ".local/share/kwalletd", ".config/op", ".config/1Password",
    ".config/Bitwarden", ".config/keepassxc", ".config/containers/auth.json",
    ".config/doctl", ".config/heroku", ".config/configstore", ".config/sops", ".config/age", ".age", ".oci", ".aliyun",
    ".databrickscfg", ".snowflake", ".snowsql", ".dbt/profiles.yml", ".ngrok2", ".config/ngrok", ".fly", ".netlify",
    ".config/netlify", ".vercel", ".config/hcloud", ".config/linode-cli", ".minikube", ".helm", ".config/helm",
    ".composer/auth.json", ".m2/settings.xml", ".gradle/gradle.properties", ".hex/hex.config",
    ".config/hf", ".config/kaggle", ".openai", ".anthropic", ".claude", ".claude.json", ".codex",
    ".gemini", ".config/github-copilot", ".local/share/opencode", "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox", "Library/Application Support/Microsoft Edge",
    "Library/Application Support/BraveSoftware", "Library/Application Support/Chromium", "Library/Cookies",
    "Library/Safari", "Library/Messages", "Library/Mail",
)  # fmt: skip
"""Browser profiles, keyrings, histories and further credentials, beside those that are protected wherever they lie."""

_READ_BY_TOOLS = frozenset({
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".curlrc", "_curlrc", ".wgetrc", "pip.conf", ".pip", "pip", ".htpasswd",
    ".terraformrc", ".terraform.d",
})  # fmt: skip
"""Names of settings that may hold credentials: secret in the home, and needed by the tools of a workspace."""

_ALWAYS_SECRET = frozenset({".htpasswd", ".terraform.d"})
_CREDENTIAL = compile_late(rb"(?i)token|passw|_auth|secret|credential|^\s*(proxy-)?user\b|://[^/\s]*@", re.MULTILINE)
"""Text of settings that hold a credential; any command may know an index of packages without one."""
_GIT_CREDENTIAL = compile_late(rb"(?i)token|passw|extraheader|://[^/\s]*@")
_MOST_BYTES = 1 << 18

_PROGRAMS = frozenset({"bin", "sbin", "shims", "condabin"})
_BESIDE = {
    ".cargo": (".rustup",),
    ".juliaup": (".julia",),
    ".local": (".local/lib", ".local/share/uv", ".local/pipx", ".local/share/pipx"),
    ".ghcup": (".cabal", ".stack"),
}
"""Further folders that programs in these folders of the home need."""
_ENVIRONMENTS = (".venv", "venv", "env", ".env")
_MOST_PROGRAMS = 1_000
"""Entries of one folder of programs that are looked at."""
_OF_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/etc", "/lib", "/dev", "/proc", "/sys")))


def _no_place(_: Path) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ReadRules:
    """The user's rules about reading, as far as a box can enforce them."""

    closed: tuple[Path, ...] = ()
    """Canonical places that no command reads."""
    opened: tuple[Path, ...] = ()
    """Canonical places that commands may read although they hold secrets, or lie in the home."""
    closes: Callable[[Path], bool] = _no_place
    """True for a file of the workspace that no command reads."""
    opens: Callable[[Path], bool] = _no_place
    """True for a secret place that commands may read."""

    @property
    def may_close(self) -> bool:
        """True if a file of the workspace may be closed."""
        return self.closes is not _no_place


NO_READ_RULES = ReadRules()


def secrets_of_user(home: Path) -> Iterator[Path]:
    """Yield the places of the machine that hold the user's secrets, as far as they exist; canonical.

    Args:
        home: The user's; that which the system knows counts beside it.
    """
    homes = [home]
    with suppress(KeyError):
        homes.append(Path(pwd.getpwuid(os.geteuid()).pw_dir))
    places = [folder / name for folder in dict.fromkeys(homes) for name in names_in(folder, _NAMES_IN_HOME)]
    for place in (*places, *filter(os.path.lexists, _ANCHORED)):
        if os.access(place, os.R_OK) and not _is_plain(place):
            with suppress(ToolError):
                yield canonical_path(place)


def _is_plain(place: Path) -> bool:
    """Return whether a place is settings of a tool, and holds no credential."""
    if place.name not in _READ_BY_TOOLS - _ALWAYS_SECRET:
        return False
    try:
        files = [one for one in place.iterdir() if not one.name.startswith(".")] if place.is_dir() else [place]
        return not any(_holds(_CREDENTIAL, one) for one in files if one.is_file())
    except OSError:
        return False


def _holds(credential: re.Pattern[bytes], file: Path) -> bool:
    """Return whether a file holds a credential, or is too large to tell; raise `OSError` where it cannot be read."""
    return file.stat().st_size > _MOST_BYTES or credential.search(file.read_bytes()) is not None


def is_secret_of_workspace(place: Path) -> bool:
    """Return whether a place that is protected as a secret is one also in a workspace, whose tools read settings."""
    return place.name.casefold() not in _READ_BY_TOOLS and not (place / "pyvenv.cfg").is_file()


def is_tracked(place: Path) -> bool:
    """Return whether git tracks the file; it is in every copy of the repository then, and so no secret."""
    index = GitIndex.around(place.parent)
    return index is not None and index.has(place)


def hidden_home(roots: Sequence[Path]) -> Path | None:
    """Return the home, canonical, where it can be hidden from a command that works in `roots`; else None."""
    try:
        home = canonical_path(user_home())
    except ToolError:
        return None
    is_needed = any(is_below(home, root) for root in roots) or any(is_below(place, home) for place in _OF_SYSTEM)
    return None if is_needed or not home.is_dir() else home


def toolchains(home: Path, variables: Mapping[str, str], roots: Iterable[Path]) -> list[Path]:
    """Return what programs need of the home that a command finds: on PATH, and in virtual environments; git's settings.

    Args:
        home: The home, canonical.
        variables: The command's.
        roots: Workspaces, whose virtual environments count.

    Returns:
        Folders that exist, and links, for each program is named as the user names it.
    """
    found: dict[Path, None] = {}

    def show(folder: Path) -> None:
        """Show a folder of programs, with what belongs to it, and the links on the way."""
        try:
            way = walk(str(folder))
        except ToolError:
            return
        found.update(dict.fromkeys(link for link in way.links if is_below(link, home)))
        if is_below(way.end, home):
            needed = (one for one in _needed_with(way.end, home) if one != home and one.is_dir())
            found.update(dict.fromkeys(needed))

    for name in variables.get("PATH", "").split(os.pathsep):
        folder = Path(name)
        if folder.is_absolute():
            show(folder)
            for target in _programs_elsewhere(folder) if is_below(folder, home) else ():
                show(target.parent)
    environments = [root / name for root in roots for name in _ENVIRONMENTS]
    environments += (Path(variables[name]) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if variables.get(name))
    for environment in environments:
        show(environment / "bin")
        with suppress(ToolError):
            show(canonical_path(environment / "bin" / "python").parent)
    for prefix in (sys.prefix, sys.base_prefix):  # Python of the launcher, which starts the command inside
        show(Path(prefix) / "bin")
    for settings in (home / ".gitconfig", home / ".config/git/config"):  # git cannot commit without a name
        with suppress(ToolError, OSError):
            way = walk(str(settings))
            if is_below(way.end, home) and way.end.is_file() and not _holds(_GIT_CREDENTIAL, way.end):
                found.update(dict.fromkeys((*way.links, way.end)))
    return list(found)


def _needed_with(folder: Path, home: Path) -> Iterator[Path]:
    """Yield a folder of programs, and what lies around and beside it and belongs to them."""
    yield folder
    around = folder.parent if folder.name in _PROGRAMS else folder
    if around not in (home, home / ".local"):
        yield around
    names = around.relative_to(home).parts
    yield from (home / name for name in _BESIDE.get(names[0] if names else "", ()))


def _programs_elsewhere(folder: Path) -> Iterator[Path]:
    """Yield where the links of a folder of programs lead."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, _MOST_PROGRAMS):
            if entry.is_symlink():
                with suppress(ToolError):
                    yield canonical_path(Path(entry.path))


def links_to(places: Collection[Path], home: Path) -> Iterator[Path]:
    """Yield the links in the home itself that lead to, or into, one of the places; commands may name them so."""
    with suppress(OSError), os.scandir(home) as entries:
        for entry in entries:
            if entry.is_symlink():
                with suppress(ToolError):
                    target = canonical_path(Path(entry.path))
                    if any(is_below(place, target) or is_below(target, place) for place in places):
                        yield Path(entry.path)


_SECRET_NAMES = tuple(name for group in PROTECTED_GROUPS if group.is_secret for name in group.names if "*" not in name)
_NAMES_IN_HOME = tuple(dict.fromkeys((*(name for name in _SECRET_NAMES if not name.startswith("/")), *_ALSO_IN_HOME)))
_ANCHORED = tuple(Path(name) for name in _SECRET_NAMES if name.startswith("/etc/") and name != "/etc/ssh")
