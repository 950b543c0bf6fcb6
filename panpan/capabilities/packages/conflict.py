"""Reasons why a package manager failed: conflicts that its solver reports, and well-known failures with advice."""

import re
from collections.abc import Iterator, Sequence

from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.permission import PACKAGE_INDEXES, network_flag

# The reason is parsed from output whose form may change, so if parsing fails, the output is shown as it is. The forms
# are those of pip's resolver, uv's derivation, the trees of libmamba and rattler, and the lists of old conda; the tests
# have samples of each version (`tests/capabilities/packages/printed/`).

_MOST_NEEDS = 12
_YOU = "the request"
_PACKAGE = r"[A-Za-z0-9][\w.-]*(?:\[[\w,.-]*\])?"
_VERSIONS = r"(?:[<>=!~]=?=?[\w.*+!-]+(?:,\s?[<>=!~]=?=?[\w.*+!-]+)*)"
_REQUIREMENT = rf"{_PACKAGE}(?:{_VERSIONS})?"

_PIP_NEEDS = compile_late(r"^ {4}(?P<who>\S+ \S+) depends on (?P<what>.+)$", re.MULTILINE)
_PIP_ASKS = compile_late(r"^ {4}The user requested (?:\(constraint\) )?(?P<what>.+)$", re.MULTILINE)
_PIP_BROKEN = compile_late(
    r"^(?P<who>\S+ \S+) requires (?P<what>[^\n]+?), "
    r"(?:but you (?:have|'ll have) (?P<has>\S+ \S+) which is|which is not)",
    re.MULTILINE,
)
_PIP_MISSING = compile_late(r"satisfies the requirement (?P<what>.+?) \(from versions: (?P<versions>[^)]*)\)")

_UV_CONCLUSION = compile_late(r"we can conclude that .*?\.(?=\s|$)")
_UV_NEEDS = compile_late(rf"(?P<who>(?:all versions of )?{_REQUIREMENT}) depends? on (?P<what>{_REQUIREMENT})")
_UV_ASKS = compile_late(
    rf"(?:you require|your (?:project|workspace)(?:'s)? (?:requires|depends on)) "
    rf"(?P<all>{_REQUIREMENT}(?:(?:, and |, | and )(?:your project |you )?(?!all versions|only|there)"
    rf"{_REQUIREMENT}(?=[,. ]|$)(?! depend| was| has| is))*)"
)
_UV_MISSING = compile_late(
    rf"there (?:is|are) no versions? of (?P<no>{_REQUIREMENT})|(?P<none>{_REQUIREMENT}) was not found in"
)

_FRAME = compile_late("[│╰├▶─\u00d7]")
"""Characters with which uv frames its messages."""
_TREE_LINE = compile_late(r"^(?P<indent>[\s│]*)[├└]─+ ?(?P<text>.+)$")
_TREE_PARENT = compile_late(
    r"(?P<who>.+?)\s+(?:is (?:not )?(?:installable|requested)|would require|can(?:not)? be installed|requires\b)"
)
_TREE_LEAF_END = compile_late(r"\s*,\s*(?:for )?which\b|\s+but there are|;|\.$|\s+cannot be installed")
_NO_CANDIDATES = compile_late(r"no candidates were found|does not exist|nothing provides")
_RATTLER_MISSING = compile_late(r"No candidates were found for (?P<what>[^\n]+?)\s*\*?\.(?:\s|$)")
_LEGACY_NEEDS = compile_late(r"- package (?P<who>\S+) requires (?P<what>[^\n]+?), but none of the providers")
_LEGACY_MISSING = compile_late(
    r"- nothing provides (?:requested )?(?P<what>[^\n]+?)(?: needed by (?P<who>\S+))?$", re.MULTILINE
)
_CLASSIC = compile_late(
    r"^\s*(?:- )?(?P<who>[\w.-]+(?:[=<>!~][^\s]*)?)(?: -> [^\n]+?)* -> "
    r"(?P<name>[\w.-]+)\[version='(?P<versions>[^']*)'\]",
    re.MULTILINE,
)
_CONDA_MISSING = compile_late(r"not available from current channels:\s+((?:^\s*- \S.*\n?)+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Need:
    """A package with versions that another package, or the request, needs."""

    who: str
    package: str
    versions: str = ""
    """Version range, such as `<2`; empty if any version will do."""

    def __str__(self) -> str:
        verb = "asks for" if self.who == _YOU else "needs"
        return f"{self.who} {verb} {self.package}{self.versions}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Reasons why a solver found no solution."""

    needs: tuple[Need, ...] = ()
    missing: tuple[str, ...] = ()
    """Packages that no index has in these versions, each with the versions that exist if known."""

    def __str__(self) -> str:
        missing = [f"{one} is not to be had" for one in self.missing]
        return "; ".join(filter(None, (", ".join(map(str, self.needs)), *missing)))


def conflict_in(output: str) -> Conflict | None:
    """Return the conflict that a solver reported; None if the output has none that is understood."""
    needs = [*_of_pip(output), *_of_uv(output), *_of_trees(output), *_of_conda(output)]
    missing = [*_missing(output), *(f"{need.package}{need.versions}" for need in needs if need.who == "")]
    chosen = _contradicting([need for need in needs if need.who])
    if not chosen and not missing:
        return None
    return Conflict(tuple(chosen[:_MOST_NEEDS]), tuple(dict.fromkeys(missing))[:_MOST_NEEDS])


def _of_pip(text: str) -> Iterator[Need]:
    for match in _PIP_ASKS.finditer(text):
        yield _need(_YOU, match["what"])
    for match in _PIP_NEEDS.finditer(text):
        yield _need(match["who"], match["what"])
    for match in _PIP_BROKEN.finditer(text):
        yield _need(match["who"], match["what"])
        if match["has"]:
            name, _, version = match["has"].partition(" ")
            yield Need(_YOU, name, f"=={version}")


def _of_uv(text: str) -> Iterator[Need]:
    plain = " ".join(_FRAME.sub(" ", text).split())
    plain = _UV_CONCLUSION.sub("", plain)
    if "Because " not in plain:
        return
    for match in _UV_NEEDS.finditer(plain):
        who = match["who"].removeprefix("all versions of ")
        yield _need(_YOU if who == "project" else who, match["what"])
    for match in _UV_ASKS.finditer(plain):
        for what in re.split(r", and |, | and ", match["all"]):
            yield _need(_YOU, what)


def _of_trees(text: str) -> Iterator[Need]:
    """Yield the needs in a tree: a node that requires something, with its children."""
    parents: list[tuple[int, str]] = []
    for line in text.splitlines():
        found = _TREE_LINE.match(line)
        if found is None:
            continue
        depth, said = len(found["indent"]), found["text"].strip()
        while parents and parents[-1][0] >= depth:
            parents.pop()
        leaf = _TREE_LEAF_END.split(said, maxsplit=1)[0]
        if parents and parents[-1][1]:
            yield _need(parents[-1][1], leaf)
        if _NO_CANDIDATES.search(said):
            yield _need("", leaf)
        parent = _TREE_PARENT.match(said)
        requires = re.search(r"requires?\s*:?\s*$", said) is not None
        parents.append((depth, _who(parent["who"]) if parent and requires else ""))


def _of_conda(text: str) -> Iterator[Need]:
    for match in _LEGACY_NEEDS.finditer(text):
        yield _need(match["who"], match["what"])
    for match in _CLASSIC.finditer(text):
        yield Need(match["who"], match["name"], match["versions"])


def _missing(text: str) -> Iterator[str]:
    for match in _PIP_MISSING.finditer(text):
        has = match["versions"].strip()
        yield f"{match['what']}{'' if has in ('', 'none') else f' (there is {_some(has)})'}"
    plain = " ".join(_FRAME.sub(" ", text).split())
    for match in _UV_MISSING.finditer(plain):
        yield match["no"] or match["none"]
    for match in _RATTLER_MISSING.finditer(text):
        yield match["what"]
    for match in _LEGACY_MISSING.finditer(text):
        yield f"{match['what'].strip()}{' for ' + match['who'] if match['who'] else ''}"
    for match in _CONDA_MISSING.finditer(text):
        yield from (line.strip().removeprefix("- ") for line in match[1].splitlines() if line.strip())


def _contradicting(needs: Sequence[Need]) -> list[Need]:
    """Return the needs of packages that are wanted in different versions; all of them where none is."""
    unique = list(dict.fromkeys(needs))
    by_package: dict[str, list[Need]] = {}
    for need in unique:
        by_package.setdefault(need.package.lower(), []).append(need)
    clashing = [group for group in by_package.values() if len({need.versions for need in group} - {""}) > 1]
    return [need for group in clashing for need in group if need.versions] or [need for need in unique if need.versions]


def _need(who: str, what: str) -> Need:
    """Return a need from texts such as `shelf<2`, `shelf >=2,<3 *` or `shelf[extra]; python_version < "3.12"`."""
    match = re.match(r"\s*([A-Za-z0-9_][\w.-]*(?:\[[^\]]*\])?)\s*(.*)", what, re.DOTALL)
    if match is None:
        return Need(who, what.strip())
    versions = match[2].partition(";")[0].replace("(", "").replace(")", "").strip()
    versions = re.sub(r"\s*,\s*", ",", re.sub(r"(?:[\s,]+\*+|^\*+|(?<=\d)\*\*)$", "", versions).strip()).rstrip(",")
    return Need(who, match[1], f"=={versions}" if versions[:1].isdigit() else versions)


def _who(text: str) -> str:
    """Return the name of a node without the wildcards of its build, and not all of very many versions."""
    parts = re.sub(r"(?:\s*=?\*+)+$", "", text.strip()).split(" | ")
    return parts[0] if len(parts) == 1 else f"{parts[0]} to {parts[-1]}"


def _some(versions: str) -> str:
    parts = [part.strip() for part in versions.split(",")]
    return ", ".join(parts if len(parts) <= 6 else ["…", *parts[-5:]])


# The first match counts, so causes come before their effects. The result is a guess from text, and only advice.

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
"""Known failures, in the order in which they are looked for."""


def advice_for(output: str) -> str | None:
    """Return the advice for a known failure; None if it is not known."""
    known = _known(output)
    return known.advice if known else None


def is_unreached(output: str) -> bool:
    """True if the output of a failure says that an index was not reached."""
    known = _known(output)
    return known is not None and known.name == _UNREACHED


def _known(output: str) -> KnownFailure | None:
    end = output[-_MAX_CHARS:]
    return next((known for known in KNOWN_FAILURES if re.search(known.pattern, end, re.IGNORECASE)), None)
