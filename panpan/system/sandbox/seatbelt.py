"""The sandbox of macOS: Seatbelt, applied by the system's program sandbox-exec (sandbox-exec(1)).

The rule: the text of a profile holds no path. Each path is a parameter, which nothing parses, so that no name of a file
can change the rules. The last rule that fits decides, so they go from the outside in. A rule for one operation never
precedes one for its group that could overrule it: then it does not matter which of the two counts more.

The kernel judges where a path really leads, by the one name that it has for the place. A place that does not exist has
no such name yet, and most volumes take `.GIT` for `.git`: there a rule has to fit in any case of the letters.
"""

import fcntl
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from panpan.system.files.canonical import is_below
from panpan.system.sandbox.profile import ALWAYS, Boxed, Profile

SANDBOX_EXEC = "/usr/bin/sandbox-exec"

_FOR_ALL = """(version 1)
(deny default)
(allow process-exec*)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow file-read*)
(allow file-map-executable)
(deny file-link file-clone)
(deny file-read-data (subpath "/System/Volumes/Data"))
(deny file-read* file-write* (subpath "/dev"))
(allow file-read* (literal "/dev"))
(allow file-read-metadata (subpath "/dev"))
(allow file-read* file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom") (literal "/dev/tty")
  (literal "/dev/stdin") (literal "/dev/stdout") (literal "/dev/stderr") (subpath "/dev/fd") (literal "/dev/ptmx"))
(allow file-read* file-write-data file-ioctl
  (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow ipc-posix-shm* (ipc-posix-name-regex #"^/(psm_|torch_|loky-|__KMP_REGISTERED_LIB_)"))
(allow ipc-posix-shm-read* (ipc-posix-name "apple.shm.notification_center"))
(allow system-socket (socket-domain AF_UNIX))
(allow sysctl-read
  (sysctl-name-prefix "hw.") (sysctl-name-prefix "machdep.cpu.") (sysctl-name-prefix "kern.os")
  (sysctl-name-prefix "net.routetable") (sysctl-name-prefix "sysctl.") (sysctl-name "vm.loadavg")
  (sysctl-name "kern.argmax") (sysctl-name "kern.boottime") (sysctl-name "kern.hostname") (sysctl-name "kern.maxfiles")
  (sysctl-name "kern.maxfilesperproc") (sysctl-name "kern.maxproc") (sysctl-name "kern.maxprocperuid")
  (sysctl-name "kern.ngroups") (sysctl-name "kern.secure_kernel") (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.system.notification_center") (global-name "com.apple.system.logger")
  (global-name "com.apple.logd") (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.SystemConfiguration.configd"))
"""
"""Rules that developers' programs need: processes, terminals of their own, locks of Python and OpenMP, facts about the
machine, names of users. Services that act for any caller are missing: the keychain, the clipboard, preferences,
starting applications and jobs. No other process tells its arguments and variables (`kern.procargs2`).

A hard link would be another name for a file that is closed, and a clone of a folder would copy closed files in it. The
volume with the user's files has a second place, `/System/Volumes/Data`, by which nothing is to be read."""

_NETWORK = """(allow system-socket)
(allow network-outbound (remote ip "*:*"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
(allow network-inbound network-bind (local ip "*:*"))
(allow mach-lookup
  (global-name "com.apple.dnssd.service") (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.trustd") (global-name "com.apple.trustd.agent"))
"""
"""Addresses and names, but no unix sockets. `trustd` judges certificates, and asks hosts that these name."""


def kernel_name(place: Path) -> Path:
    """Return the name that the kernel has for a place: on a Mac, a path may spell it in other letters."""
    if sys.platform == "darwin":
        for known in (place, *place.parents):
            try:
                fd = os.open(known, os.O_EVTONLY | os.O_SYMLINK | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                found = fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).partition(b"\0")[0]
            finally:
                os.close(fd)
            return Path(os.fsdecode(found), place.relative_to(known))
    return place


class Seatbelt:
    """Boxes made by sandbox-exec.

    Args:
        program: sandbox-exec.
        name_of: Returns the name that the kernel has for a place.
    """

    name = "Seatbelt"
    can_grant_domains = True
    shares_loopback = True
    can_seal = False
    limits: Sequence[str] = (
        "no hard links can be made, and programs with rights of their own, such as ps and sudo, do not run",
        "with the network off no servers can be started, and none for the command itself",
        "hidden folders cannot be listed",
        "named semaphores, and shared memory with a name of Python or PyTorch, can be those of your other programs",
        "graphics processors cannot be used",
        "while a command runs that may reach single hosts, other programs on this machine can use its way to them",
        "with single hosts granted, programs that let the system judge certificates, such as those in Go, fail",
        "a command that leaves its session and its environment behind can outlive the session",
    )

    def __init__(self, program: str = SANDBOX_EXEC, *, name_of: Callable[[Path], Path] = kernel_name) -> None:
        self._program = program
        self._name_of = name_of
        self.placeholders: set[Path] = set()

    def adopt(self, placeholders: Collection[Path]) -> None:
        self.placeholders |= set(placeholders)

    @contextmanager
    def wrap(self, argv: Sequence[str], profile: Profile, cwd: Path) -> Iterator[Boxed]:
        text, parameters = rules(_renamed(profile, self._name_of))
        options = [f"-D{name}={place}" for place, name in parameters.items()]
        proxy = None if profile.has_network else profile.proxy
        yield Boxed([self._program, "-p", text, *options, "--", *argv], () if proxy is None else proxy.pass_fds)

    async def tidy(self, needed: Collection[Path] = ()) -> None:
        """Do nothing: this sandbox makes no placeholders."""


def _renamed(profile: Profile, name_of: Callable[[Path], Path]) -> Profile:
    def named(places: Iterable[Path]) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(map(name_of, places)))

    return replace(
        profile,
        writable=named(profile.writable),
        protected=named(profile.protected),
        held=named(profile.held),
        hidden=named(profile.hidden),
        shown=named(profile.shown),
    )


def rules(profile: Profile) -> tuple[str, dict[Path, str]]:
    """Return the rules that hold a command to a profile, and the parameter that each place has in them."""
    names: dict[Path, str] = {}

    def at(kind: str, places: Iterable[Path]) -> str:
        return " ".join(f'({kind} (param "{names.setdefault(place, f"P{len(names)}")}"))' for place in places)

    lines = []
    kinds = dict.fromkeys(profile.writable, "writable")
    kinds |= dict.fromkeys((place for place in profile.protected if _is_in(place, profile.writable)), "protected")
    kinds |= dict.fromkeys(profile.hidden, "hidden")
    kinds |= dict.fromkeys((place for place in profile.shown if _is_in(place, profile.hidden)), "shown")
    for place in sorted(kinds, key=lambda one: len(one.parts)):
        here = at("subpath", [place])
        match kinds[place]:
            case "writable":
                lines.append(f"(allow file-read* file-write* {here})")
            case "protected":
                lines.append(f"(deny file-write* {here})")
                if place.name in ALWAYS:
                    root = at("subpath", [place.parent])
                    lines.append(f'(deny file-write* (require-all {root} (regex #"{_in_any_case(place)}")))')
            case "hidden":
                lines.append(f"(deny file-read* file-write* {here} (with errno ENOENT))")
            case _:
                lines += [f"(allow file-read* {here})", f"(deny file-write* {here})"]
    if profile.devices:
        lines.append(f"(allow file-read* file-write-data file-ioctl {at('literal', profile.devices)})")
    open_places = (*profile.writable, *profile.shown)
    on_the_way = (folder for place in open_places for folder in place.parents if _is_in(folder, profile.hidden))
    if profile.hidden:
        lines.append(f"(allow file-read-metadata {at('literal', dict.fromkeys((*profile.hidden, *on_the_way)))})")
    around = dict.fromkeys(folder for place in (*kinds, *profile.held) for folder in (place, *place.parents))
    if kept := [folder for folder in around if _is_in(folder, profile.writable)]:  # renamed, they escape the rules
        lines.append(f"(deny file-write-unlink {at('literal', kept)})")
    if profile.has_network:
        lines.append(_NETWORK)
    elif profile.proxy is not None:
        lines.append(f'(allow network-outbound (remote ip "localhost:{profile.proxy.port}"))')
    return _FOR_ALL + "\n".join(lines), names


def _is_in(place: Path, folders: Iterable[Path]) -> bool:
    return any(is_below(place, folder) for folder in folders)


def _in_any_case(place: Path) -> str:
    """Return a pattern of all spellings of the last part of a path; that of the others is any that is as deep."""
    letters = (f"[{char}{char.upper()}]" if char.isalpha() else f"\\{char}" for char in place.name)
    return f"^{'/[^/]+' * (len(place.parts) - 2)}/{''.join(letters)}($|/)"
