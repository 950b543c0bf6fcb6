"""The sandbox of one session's commands: its choice, the profile of each command, and cleaning up after them.

The rule: it is looked for once, before the first command. If it is wanted and does not
work, the gate is informed; no command silently runs outside of a box.
"""

import fcntl
import hashlib
import os
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio import CancelScope, to_thread

from panpan.errors import ConfigError, PanpanError, ToolError
from panpan.system.files.canonical import canonical_path, user_home
from panpan.system.files.folder_tree import make_private_folder, open_private_file, remove_tree
from panpan.system.git.git_places import folder_of_worktree
from panpan.system.sandbox.hidden_places import (
    NO_READ_RULES,
    ReadRules,
    hidden_home,
    links_to,
    secrets_of_user,
    toolchains,
)
from panpan.system.sandbox.profile import Profile, Sandbox, empty_places, read_only, with_loader_inside, workspace_write
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.permission import network_flag

if TYPE_CHECKING:
    from panpan.system.sandbox.choice import SandboxChoice
    from panpan.system.sandbox.domain_proxy import CommandProxy, DomainAccess

_NO_DOMAINS = (
    f"it cannot let commands to single hosts, so that sandbox.domains opens none; sandbox.network, or {network_flag()} "
    "without hosts, opens the whole network"
)
_OWN_FOLDER = compile_late(r"panpan-[0-9a-f]{16}")
"""Name of a session's folder for temporary files."""

FindSandbox: TypeAlias = "Callable[[], Awaitable[SandboxChoice]]"


async def find_when_needed() -> "SandboxChoice":
    """Look which sandbox works on this machine."""
    from panpan.system.sandbox.choice import find_sandbox  # not needed before the first command

    return await find_sandbox()


@dataclass(frozen=True, slots=True)
class Domains:
    """The hosts that commands may reach although the network is off."""

    named: Sequence[str] = ()
    """Hosts that the settings name, and the usual ones."""
    own: Sequence[str] = ()
    """Hosts of the user's own setup, which may be in their own network."""


NO_DOMAINS = Domains()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Needs of one command, out of what may be had."""

    is_read_only: bool
    """True if it is known only to look."""
    roots: Sequence[Path] = ()
    """The workspace and the folders that were added to it, canonical as they were named."""
    opened: frozenset[Path] = frozenset()
    """Canonical places that the user has opened to this command, also protected ones; they need not exist."""
    own_files: Sequence[Path] = ()
    """Files of panpan's that it writes, whatever else it may do."""
    has_network: bool = False
    hosts: Sequence[str] = ()
    """Further hosts that it may reach, as the setting `sandbox.domains` names them."""
    is_outside: bool = False
    """True if the user has let it out of the sandbox."""
    shown: frozenset[Path] = frozenset()
    """Canonical places that it may read although they lie in the home, or hold secrets."""
    hides_home: bool = False
    """True if it sees of the home only `roots`, `shown`, and the programs that it finds."""
    is_server: bool = False
    """True for a server that reads the workspace, and changes and reaches nothing but `opened` and `hosts`, whatever
    commands may do."""
    may_outlive: bool = False
    """True if it may go on when it is not waited for any more, and the session after it."""


@dataclass(frozen=True, slots=True)
class Start:
    """A command line to start, in its box if there is one."""

    argv: Sequence[str]
    env: Mapping[str, str]
    profile: Profile | None = None
    """Its bounds, but for files of panpan's that it writes, too; None if nothing holds it."""
    proxy: "CommandProxy | None" = None
    """Its way to the granted domains, which knows what was refused."""
    pass_fds: Sequence[int] = ()
    box: str = "off"
    """Name of the sandbox that holds it; "off" if none does."""

    @property
    def network(self) -> bool | Sequence[str]:
        """True if it has the network; or the hosts that it can reach."""
        if self.profile is None or self.profile.has_network:
            return True
        return tuple(self.proxy.grants.domains) if self.proxy is not None else False


class CommandSandbox:
    """Puts commands into the sandbox that works here.

    Args:
        is_on: Whether commands are to run in one.
        writable: Folders that commands may change beside the workspace.
        home: Panpan's own folder: no command changes it. In its `claims`, sessions say which empty folders their boxes
            need.
        protected: Folders that no command sees or changes.
        kept: Folders that no command changes, but for a workspace that lies in one.
        has_network: Whether all commands may use the network.
        domains: Hosts that commands may reach although the network is off; while `serve` runs.
        reading: What rules say about reading.
        expand: Returns the hosts that a list means which is written like the setting.
        lets_out: True for a command line that may leave it without asking, by the user's settings; only ever advice.
        find: Looks which sandbox works.

    Raises:
        ConfigError: A domain is none.
    """

    def __init__(
        self,
        *,
        is_on: bool = False,
        writable: Sequence[Path] = (),
        home: Path | None = None,
        protected: Sequence[Path] = (),
        kept: Sequence[Path] = (),
        has_network: bool = False,
        domains: Domains = NO_DOMAINS,
        reading: ReadRules = NO_READ_RULES,
        expand: Callable[[Sequence[str]], Domains] = Domains,
        lets_out: Callable[[str], bool] = lambda _: False,
        find: FindSandbox = find_when_needed,
    ) -> None:
        self.is_on = is_on
        self.has_network = has_network
        self.network = _Network(domains, expand)
        """The way to single hosts."""
        self.lets_out = lets_out
        self.temporary = _folder_for_temporary_files() / f"panpan-{secrets.token_hex(8)}"
        """Folder for the temporary files of the session's commands; made for the first of them."""
        self.writable = writable
        self._left_behind: Collection[Path] = ()
        """Leavings that commands which go on after the session need."""
        self._protected = (*(() if home is None else (home,)), *(path for path in protected if path.is_dir()))
        self._kept = tuple(path for path in kept if path.is_dir())
        self._reading = reading
        self._find = find
        self._lock = anyio.Lock()
        self._choice: SandboxChoice | None = None
        self._has_warned = False
        self._tidying = anyio.Lock()
        self._untidy: anyio.Event | None = None
        """Set when a command has ended; None where nobody cleans up beside the calls."""
        self._claims = PlaceClaims(None if home is None else home / "claims")
        self._in_use = Counter[Path]()
        """Placeholders for protected places in boxes that run, or are being made."""
        self._old_folders: tuple[Path, ...] = ()
        """Folders for temporary files of sessions that left commands running."""
        self._old_placeholders: set[Path] = set()
        self._repositories: dict[Path, tuple[int, int]] = {}

    @property
    def repositories(self) -> frozenset[Path]:
        """Git folders that commands may change, as far as they are those that were given."""
        return frozenset(place for place, file in self._repositories.items() if _file_at(place) == file)

    def give_repository(self, git_folder: Path, file: tuple[int, int]) -> None:
        """Let commands change a git folder, but for what would have git run something.

        Args:
            git_folder: The folder, canonical.
            file: Its device and inode, as they were when it was looked at: another one may have come in its place.
        """
        self._repositories[git_folder] = file

    def take_repository(self, git_folder: Path) -> None:
        """Keep a git folder as it is again."""
        self._repositories.pop(git_folder, None)

    @property
    def leavings(self) -> Sequence[Path]:
        """Places that commands which go on after the session need, and that its end would remove; see `take_over`."""
        if self._choice is None or self._choice.sandbox is None:
            return ()
        return (self.temporary, *self._old_folders, *sorted(self._choice.sandbox.placeholders))

    def take_over(self, leavings: Sequence[Path]) -> None:
        """Remove at the end of this session the `leavings` of an earlier one."""
        folders = [path for path in leavings if _OWN_FOLDER.fullmatch(path.name)]
        self._old_folders = tuple(path for path in folders if path.parent == self.temporary.parent)
        self._old_placeholders = {path for path in leavings if path not in folders}

    async def choice(self) -> "SandboxChoice":
        """Return the sandbox that works here; it is looked for at the first call."""
        async with self._lock:
            if self._choice is None:
                self._choice = await self._find()
            return self._choice

    @property
    def trouble(self) -> str:
        """Reason that no command can run in the sandbox, as far as one is known; empty if commands can."""
        if not self.is_on:
            return 'the sandbox is off (sandbox.mode = "off")'
        if self._choice is not None and self._choice.sandbox is None:
            return f"no sandbox works here: {'; '.join(self._choice.passed_over)}"
        return ""

    async def find_trouble(self) -> str:
        """Look whether a sandbox works here, unless that is known, and return `trouble`."""
        if self.is_on:
            await self.choice()
        return self.trouble

    async def is_missing(self) -> bool:
        """True if commands are to run in a sandbox, and none works."""
        return self.is_on and (await self.choice()).sandbox is None

    async def take_warning(self) -> str | None:
        """Return, once, what the user should know before the first command; None if all is well."""
        if not self.is_on:
            return None
        choice = await self.choice()
        if self._has_warned:  # another call may have warned meanwhile
            return None
        self._has_warned = True
        reasons = "; ".join(choice.passed_over)
        if choice.sandbox is None:
            return (
                f"no sandbox works here, so allowed commands run with all your rights: {reasons}. To hide this, set "
                'sandbox.mode = "off"'
            )
        if self.domains and not choice.sandbox.can_grant_domains:
            reasons = "; ".join(filter(None, (reasons, _NO_DOMAINS)))
        return f"commands run in the sandbox {choice.sandbox.name}: {reasons}" if reasons else None

    @property
    def domains(self) -> Sequence[str]:
        """Hosts that every command may reach although the network is off."""
        return self.network.domains

    async def serve(self) -> None:
        """Let commands reach the granted domains until it is cancelled; returns where no command is boxed."""
        if self.is_on:
            await self.network.serve()

    async def keep_tidy(self) -> None:
        """Clean up after each command beside its call, which need not wait then, until it is cancelled."""
        self._untidy = anyio.Event()
        try:
            while True:
                await self._untidy.wait()
                await anyio.sleep(_TIDIED_AFTER_S)
                self._untidy = anyio.Event()
                await self._tidy_up()
        finally:
            self._untidy = None

    @asynccontextmanager
    async def boxed(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, bounds: Bounds
    ) -> AsyncGenerator[Start, None]:
        """Give the way to start `argv` within `bounds`; as it is where the sandbox is off or none works.

        Leave it when the command has ended; what it left in the background stays in its box.

        Raises:
            ToolError: A place of the bounds leads nowhere, too many commands use the network, or files are open.
            ConfigError: The folder for temporary files cannot be made.
        """
        sandbox = (await self.choice()).sandbox if self.is_on and not bounds.is_outside else None
        if sandbox is None:
            yield Start(argv, env)
            return
        try:
            profile = await to_thread.run_sync(self._profile, bounds, env)
        except OSError as error:
            raise ToolError(f"the sandbox cannot be made: {error.strerror}; run fewer calls at once") from error
        env = {**env, "TMPDIR": str(self.temporary)}
        with ExitStack() as stack:
            proxy = await self._proxy(sandbox, bounds)
            if proxy is not None:
                stack.callback(proxy.close)
                profile = replace(profile, proxy=proxy.endpoint)
                env |= proxy.environment()
            inside, env = with_loader_inside(argv, env)
            async with self._tidying:
                claimed = await to_thread.run_sync(self._claim, sandbox, profile)
                try:
                    boxed = stack.enter_context(sandbox.wrap(inside, profile.also_writing(*bounds.own_files), cwd))
                except BaseException:
                    self._claims.let_go(claimed)
                    raise
                self._in_use.update(boxed.placeholders)
            has_ended = False
            try:
                yield Start(boxed.argv, env, profile, proxy, boxed.pass_fds, sandbox.name)
                has_ended = True
            finally:
                if has_ended or not bounds.may_outlive:
                    with CancelScope(shield=True):
                        async with self._tidying:
                            self._in_use.subtract(boxed.placeholders)
                            self._claims.let_go(claimed)
                if self._untidy is None:
                    await self._tidy_up()
                else:
                    self._untidy.set()

    def leave_behind(self, paths: Collection[Path]) -> None:
        """Keep what commands that outlive the session need, instead of what was kept until now."""
        self._left_behind = paths

    async def aclose(self) -> None:
        """Remove what the session's commands left behind in folders of panpan's, once they have ended."""
        if self._old_placeholders:
            await self.choice()
        if self._choice is not None and self._choice.sandbox is not None:
            self._choice.sandbox.adopt(self._old_placeholders)
            await self._tidy(self._choice.sandbox, self._left_behind)
        self._claims.close()
        for folder in (self.temporary, *self._old_folders):
            if folder not in self._left_behind:
                with suppress(OSError):
                    await to_thread.run_sync(remove_tree, folder)

    def _claim(self, sandbox: Sandbox, profile: Profile) -> Collection[Path]:
        """Claim the places for which a box may need an empty folder; one of another panpan's is its own, too."""
        places = empty_places(profile.protected)
        if places:
            sandbox.adopt(empty_places(self._claims.hold(places)))
        return places

    async def _tidy_up(self) -> None:
        sandbox = (await self.choice()).sandbox
        if sandbox is not None:
            with CancelScope(shield=True):
                async with self._tidying:
                    await self._tidy(sandbox, +self._in_use)

    async def _tidy(self, sandbox: Sandbox, needed: Collection[Path]) -> None:
        with self._claims.alone(sandbox.placeholders.difference(needed)) as free:
            await sandbox.tidy({*needed, *sandbox.placeholders.difference(free)})

    async def _proxy(self, sandbox: Sandbox, bounds: Bounds) -> "CommandProxy | None":
        of_server = bounds.has_network or not bounds.hosts
        of_command = bounds.is_read_only or bounds.has_network or self.has_network
        if (of_server if bounds.is_server else of_command) or not sandbox.can_grant_domains:
            return None
        return await self.network.open(bounds.hosts, shares_loopback=sandbox.shares_loopback)

    def _profile(self, bounds: Bounds, env: Mapping[str, str]) -> Profile:
        make_private_folder(self.temporary)
        roots = [root for root in (*bounds.roots, *map(canonical_path, self.writable)) if root != self.temporary]
        if bounds.is_server:
            profile = read_only(
                temporary=self.temporary, has_network=bounds.has_network, roots=roots, reading=self._reading
            ).opening(bounds.opened)
        elif bounds.is_read_only:
            profile = read_only(temporary=self.temporary, roots=roots, reading=self._reading)
            profile = replace(profile, ends_with_command=not bounds.may_outlive)
        else:
            profile = workspace_write(
                roots,
                temporary=self.temporary,
                protected=(*self._protected, *self._kept),
                has_network=self.has_network or bounds.has_network,
                reading=self._reading,
                repositories=self.repositories,
            ).opening(bounds.opened)
        return profile.hiding(self._hidden(bounds), shown=self._shown(bounds, roots, env))

    def _hidden(self, bounds: Bounds) -> Iterator[Path]:
        """Yield what holds secrets and what rules close, as far as this command must not see it."""
        secrets = (place for place in secrets_of_user(user_home()) if not self._reading.opens(place))
        yield from {*secrets, *self._protected} - bounds.shown
        yield from self._reading.closed
        if bounds.hides_home and (home := hidden_home(bounds.roots)) is not None:
            yield home

    def _shown(self, bounds: Bounds, roots: Sequence[Path], env: Mapping[str, str]) -> Iterator[Path]:
        """Yield the places in hidden folders that it can read."""
        shown = [place for place in (*self._reading.opened, *bounds.shown) if place not in self._reading.closed]
        yield from shown
        yield from filter(None, map(folder_of_worktree, roots))
        if bounds.hides_home and (home := hidden_home(bounds.roots)) is not None:
            found = toolchains(home, env, roots)
            yield from found
            yield from links_to((*roots, *shown, *found), home)


class _Network:
    """The way of commands to single hosts; its proxy starts when the first command needs it.

    Raises:
        ConfigError: A domain is none.
    """

    def __init__(self, domains: Domains, expand: Callable[[Sequence[str]], Domains]) -> None:
        self._granted = domains
        self._expand = expand
        if self.domains:
            self._made()
        self._is_serving = False
        self._is_wanted, self._is_ready = anyio.Event(), anyio.Event()
        self._access: DomainAccess | None = None

    @property
    def domains(self) -> Sequence[str]:
        return tuple(dict.fromkeys((*self._granted.named, *self._granted.own)))

    def missing(self, hosts: Sequence[str]) -> Sequence[str]:
        """Return those of the hosts, as the setting names them, that are not granted yet."""
        granted = set(self.domains)

        def is_granted(host: str) -> bool:
            found = self._expand([host])
            return granted.issuperset((*found.named, *found.own))

        return [host for host in hosts if not is_granted(host)]

    def grant(self, hosts: Sequence[str]) -> None:
        """Let all later commands reach further hosts; raise `ToolError` where one is none."""
        more = self._expand(hosts)
        if self._access is not None:
            self._access.grant(more.named, more.own)
        self._granted = Domains((*self._granted.named, *more.named), (*self._granted.own, *more.own))

    async def open(self, hosts: Sequence[str], *, shares_loopback: bool) -> "CommandProxy | None":
        """Return the way of one command to the granted hosts and these; None if there are none, or no proxy runs."""
        if not (self._is_serving and (hosts or self.domains)):
            return None
        self._is_wanted.set()
        await self._is_ready.wait()
        assert self._access is not None
        more = self._expand(hosts)
        return self._access.open(more.named, more.own, shares_loopback=shares_loopback)

    async def serve(self) -> None:
        """Serve until it is cancelled, from the first command on that needs it."""
        self._is_serving = True
        try:
            await self._is_wanted.wait()
            async with self._made() as self._access:
                self._is_ready.set()
                await anyio.sleep_forever()
        finally:
            self._is_serving = False

    def _made(self) -> "DomainAccess":
        from panpan.system.sandbox.domain_proxy import DomainAccess  # few sessions grant domains

        return DomainAccess(self._granted.named, own_hosts=self._granted.own)


def _folder_for_temporary_files() -> Path:
    """Return where the system keeps them, canonical; raise `ConfigError` on a full disk, say."""
    try:
        return canonical_path(Path(tempfile.gettempdir()))
    except FileNotFoundError as error:
        raise ConfigError(
            "no folder for temporary files can be written; is the disk full? The variable TMPDIR can name another one"
        ) from error


_TIDIED_AFTER_S = 0.05
"""Until the result of a command has become a request."""
WAIT_S = 5.0
"""Seconds to wait while another process removes a place, which takes milliseconds."""
_POLL_S = 0.002


class PlaceClaims:
    """Places that several panpans use at the same time: who is in them keeps the others from taking them away.

    A claim is a shared lock on a file of panpan's own in a private folder, one for each place; who wants to remove the
    place needs it alone. The claims of a panpan go with it, however it ends.
    """

    def __init__(self, folder: Path | None, *, wait_s: float = WAIT_S) -> None:
        self._folder = folder
        self._wait_s = wait_s
        self._held: dict[Path, tuple[int | None, int]] = {}
        """Descriptor of the lock file of each place, and number of the session's boxes use it."""

    def hold(self, places: Collection[Path]) -> set[Path]:
        """Claim places, and return those of which another panpan had a claim already. Blocks while one is removed.

        Raises:
            ToolError: Somebody who removes one of them does not end.
        """
        shared, claimed = set[Path](), list[Path]()
        try:
            for place in places:
                if self._hold(place):
                    shared.add(place)
                claimed.append(place)
        except BaseException:
            self.let_go(claimed)
            raise
        return shared

    def _hold(self, place: Path) -> bool:
        if place in self._held:
            fd, count = self._held[place]
            self._held[place] = fd, count + 1
            return False  # the first claim has checked for other processes
        fd = self._opened(place)
        try:
            is_shared = not _locked(fd, fcntl.LOCK_EX)
            deadline = time.monotonic() + self._wait_s
            while not _locked(fd, fcntl.LOCK_SH):
                if time.monotonic() > deadline:
                    raise ToolError(
                        f"the sandbox cannot be made: another panpan has kept {place} for {self._wait_s:g} s"
                    )
                time.sleep(_POLL_S)
        except BaseException:
            _close(fd)
            raise
        self._held[place] = fd, 1
        return is_shared

    def let_go(self, places: Collection[Path]) -> None:
        """Take back claims that `hold` has made, as far as `close` has not."""
        for place in self._held.keys() & places:
            fd, count = self._held.pop(place)
            if count > 1:
                self._held[place] = fd, count - 1
            else:
                _close(fd)

    def close(self) -> None:
        """Take all claims back, those for boxes that outlive the session, too: these are seen by what is mounted."""
        for fd, _ in self._held.values():
            _close(fd)
        self._held.clear()

    @contextmanager
    def alone(self, places: Collection[Path]) -> Iterator[set[Path]]:
        """Yield the places that no process claims, and that none can claim while the block runs."""
        with ExitStack() as opened:
            free = set[Path]()
            for place in places:
                fd = self._opened(place)
                opened.callback(_close, fd)
                if _locked(fd, fcntl.LOCK_EX):
                    free.add(place)
            yield free

    def _opened(self, place: Path) -> int | None:
        if self._folder is None:
            return None
        name = hashlib.blake2b(os.fsencode(place), digest_size=16).hexdigest()
        try:
            try:
                return open_private_file(self._folder / name, os.O_RDWR | os.O_CREAT)
            except FileNotFoundError:
                make_private_folder(self._folder)
                return open_private_file(self._folder / name, os.O_RDWR | os.O_CREAT)
        except (OSError, PanpanError):  # such as a full disk: the box matters more than the claim
            return None


def _file_at(place: Path) -> tuple[int, int] | None:
    """Return what tells one folder from another of the same name; None if there is none."""
    try:
        found = place.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _locked(fd: int | None, how: int) -> bool:
    """Lock without waiting; return False only if another process holds the lock."""
    if fd is None:
        return True
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _close(fd: int | None) -> None:
    if fd is not None:
        os.close(fd)
