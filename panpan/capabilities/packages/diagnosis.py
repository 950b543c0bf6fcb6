"""Well-known failures of package managers, each with one line of advice.

The rule: the first that fits is told, so what causes others stands before them; it is a guess from a text, and advice.
"""

import re
from collections.abc import Sequence

from panpan.types.allowing_flags import PACKAGE_INDEXES, network_flag
from panpan.types.dataclass import dataclass

_MAX_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A failure that is told from what was printed."""

    name: str
    pattern: str
    """Regular expression; case does not matter."""
    advice: str


_UNREACHED = "network"

KNOWN_FAILURES: Sequence[KnownFailure] = (
    KnownFailure(
        "no space",
        r"no space left on device|\bENOSPC\b|disk quota exceeded",
        "the disk is full: make room, or let the user move the cache to another disk",
    ),
    KnownFailure(
        "hash mismatch",
        r"do not match the hashes|hash mismatch|checksum ?mismatch|sha256 ?mismatch",
        "a file is not the one whose hash was noted: do not go around this; look whether the lock or requirements file "
        "is of another release, or whether a mirror serves an old file",
    ),
    KnownFailure(
        "externally managed",
        r"externally[- ]managed",
        "this Python belongs to the system's package manager: create an environment and install there",
    ),
    KnownFailure(
        "certificate",
        r"certificate_verify_failed|self[- ]signed certificate|unknownissuer|invalid peer certificate",
        "the certificate of a host is not trusted here: the user has to name the right one, such as in SSL_CERT_FILE",
    ),
    KnownFailure(
        _UNREACHED,
        r"temporary failure in name resolution|name or service not known|nameresolutionerror|newconnectionerror"
        r"|failed to establish a new connection|network is unreachable|connection refused|dns error"
        r"|could(?: not|n't) (?:resolve host|connect to server)|timeout was reached|condahttperror: http 000"
        r"|error sending request|client error \(connect\)|tunnel connection failed"
        r"|read timed out|\b50[234] (?:server error|bad gateway|service unavailable|gateway time-?out)",
        "the index was not reached: without the network, name a folder of wheels in `wheels`; in the sandbox the usual "
        f"indexes are opened by the user's setting sandbox.domains, or {network_flag([PACKAGE_INDEXES])}",
    ),
    KnownFailure(
        "no ensurepip",
        r"no module named ensurepip\b|ensurepip is (?:disabled|not available)",
        "this environment has no pip, and its Python cannot bring one: use the uv tool for it, or let the user install "
        "what holds ensurepip (python3-venv on Debian)",
    ),
    KnownFailure(
        "no pip",
        r"no module named pip\b",
        "this environment has no pip: use the uv tool for it, or create an environment with pip",
    ),
    KnownFailure(
        "no such Python",
        r"no interpreter found for|no python at '|could not find (?:a )?suitable (?:python )?interpreter",
        "that version of Python is not installed here: name another one, or create the environment with conda or pixi, "
        "which bring their own",
    ),
    KnownFailure(
        "no compiler",
        r"(?:gcc|g\+\+|clang|cc|c\+\+|nvcc|gfortran|cmake|ninja|rustc|cargo)['\"]?:? (?:command )?not found"
        r"|no such file or directory: '(?:[^'\n]*/)?(?:gcc|g\+\+|clang|cc|c\+\+|nvcc|gfortran|cmake|ninja)'"
        r"|command '[^'\n]*(?:gcc|g\+\+|clang|cc)' failed|can't find rust compiler|unknown compiler"
        r"|CMAKE_C(?:XX)?_COMPILER not set|failed to find (?:a )?c compiler",
        "it is built from source here and a compiler is missing: ask for a version that has a wheel for this Python, "
        "or let the user install the compiler",
    ),
    KnownFailure(
        "no header",
        r"fatal error: \S+\.(?:h|hpp|cuh): no such file|(?:^|\s)\S+\.h: no such file or directory|cuda_home"
        r"|pg_config executable not found|mysql_config not found",
        "it is built from source here and a header or library is missing: ask for a version that has a wheel for this "
        "Python, or let the user install the development package",
    ),
    KnownFailure(
        "undeclared build dependency",
        r"modulenotfounderror: no module named '(?:torch|numpy|cython|setuptools|pkg_resources|packaging|wheel)'",
        "its build imports a package that it does not say it needs: install that first, or take a version with a wheel",
    ),
    KnownFailure(
        "wrong Python",
        r"requires a different python|requires-python|require different python version|not a supported wheel"
        r"|no wheels? (?:with a )?match|no wheels are available|we only found wheels for"
        r"|doesn't have a (?:source distribution or )?wheel for the current platform"
        r"|depends on python[<>=]|requires python ?[<>=]",
        "nothing of it fits this Python or platform: ask for another version of the package, or create an environment "
        "with the version of Python that it was made for",
    ),
    KnownFailure(
        "stale lock",
        r"lock ?file .{0,60}(?:needs to be updated|not up[- ]to[- ]date|out of date)",
        "the lock file does not fit its manifest any more: lock again",
    ),
)
"""In the order in which they are looked for."""


def advice_for(output: str) -> str | None:
    """Return what to do about a failure that is known; None where it is not."""
    known = _known(output)
    return known.advice if known else None


def is_unreached(output: str) -> bool:
    """Return whether an index was not reached, as far as the output of a failure tells."""
    known = _known(output)
    return known is not None and known.name == _UNREACHED


def _known(output: str) -> KnownFailure | None:
    end = output[-_MAX_CHARS:]
    return next((known for known in KNOWN_FAILURES if re.search(known.pattern, end, re.IGNORECASE)), None)
