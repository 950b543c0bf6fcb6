"""Why a solver found no answer, as "A needs X<2, B needs X>=2", read from what package managers print.

The rule: it is read from text that others may change, so what is not understood leaves the output to speak for itself.
The forms are those of pip's resolver, uv's derivation, the trees of libmamba and rattler, and the lists of old conda;
the tests hold what each version prints (`tests/tools/packages/printed/`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from panpan.types.dataclass import dataclass

_MOST_NEEDS = 12
_YOU = "the request"
_PACKAGE = r"[A-Za-z0-9][\w.-]*(?:\[[\w,.-]*\])?"
_VERSIONS = r"(?:[<>=!~]=?=?[\w.*+!-]+(?:,\s?[<>=!~]=?=?[\w.*+!-]+)*)"
_REQUIREMENT = rf"{_PACKAGE}(?:{_VERSIONS})?"

_PIP_NEEDS = re.compile(r"^ {4}(?P<who>\S+ \S+) depends on (?P<what>.+)$", re.MULTILINE)
_PIP_ASKS = re.compile(r"^ {4}The user requested (?:\(constraint\) )?(?P<what>.+)$", re.MULTILINE)
_PIP_BROKEN = re.compile(
    r"^(?P<who>\S+ \S+) requires (?P<what>[^\n]+?), "
    r"(?:but you (?:have|'ll have) (?P<has>\S+ \S+) which is|which is not)",
    re.MULTILINE,
)
_PIP_MISSING = re.compile(r"satisfies the requirement (?P<what>.+?) \(from versions: (?P<versions>[^)]*)\)")

_UV_CONCLUSION = re.compile(r"we can conclude that .*?\.(?=\s|$)")
_UV_NEEDS = re.compile(rf"(?P<who>(?:all versions of )?{_REQUIREMENT}) depends? on (?P<what>{_REQUIREMENT})")
_UV_ASKS = re.compile(
    rf"(?:you require|your (?:project|workspace)(?:'s)? (?:requires|depends on)) "
    rf"(?P<all>{_REQUIREMENT}(?:(?:, and |, | and )(?:your project |you )?(?!all versions|only|there)"
    rf"{_REQUIREMENT}(?=[,. ]|$)(?! depend| was| has| is))*)"
)
_UV_MISSING = re.compile(
    rf"there (?:is|are) no versions? of (?P<no>{_REQUIREMENT})|(?P<none>{_REQUIREMENT}) was not found in"
)

_FRAME = re.compile("[│╰├▶─\u00d7]")
"""What uv draws around what it says."""
_TREE_LINE = re.compile(r"^(?P<indent>[\s│]*)[├└]─+ ?(?P<text>.+)$")
_TREE_PARENT = re.compile(
    r"(?P<who>.+?)\s+(?:is (?:not )?(?:installable|requested)|would require|can(?:not)? be installed|requires\b)"
)
_TREE_LEAF_END = re.compile(r"\s*,\s*(?:for )?which\b|\s+but there are|;|\.$|\s+cannot be installed")
_NO_CANDIDATES = re.compile(r"no candidates were found|does not exist|nothing provides")
_RATTLER_MISSING = re.compile(r"No candidates were found for (?P<what>[^\n]+?)\s*\*?\.(?:\s|$)")
_LEGACY_NEEDS = re.compile(r"- package (?P<who>\S+) requires (?P<what>[^\n]+?), but none of the providers")
_LEGACY_MISSING = re.compile(
    r"- nothing provides (?:requested )?(?P<what>[^\n]+?)(?: needed by (?P<who>\S+))?$", re.MULTILINE
)
_CLASSIC = re.compile(
    r"^\s*(?:- )?(?P<who>[\w.-]+(?:[=<>!~][^\s]*)?)(?: -> [^\n]+?)* -> "
    r"(?P<name>[\w.-]+)\[version='(?P<versions>[^']*)'\]",
    re.MULTILINE,
)
_CONDA_MISSING = re.compile(r"not available from current channels:\s+((?:^\s*- \S.*\n?)+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Need:
    """What somebody needs."""

    who: str
    package: str
    versions: str = ""
    """As in `<2`; empty where any will do."""

    def __str__(self) -> str:
        verb = "asks for" if self.who == _YOU else "needs"
        return f"{self.who} {verb} {self.package}{self.versions}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why there is no answer."""

    needs: tuple[Need, ...] = ()
    """What contradicts each other."""
    missing: tuple[str, ...] = ()
    """What is not to be had, each with what there is instead where that is known."""

    def __str__(self) -> str:
        missing = [f"{one} is not to be had" for one in self.missing]
        return "; ".join(filter(None, (", ".join(map(str, self.needs)), *missing)))


def conflict_in(output: str) -> Conflict | None:
    """Return why a solver found no answer; None where the output tells of none that is understood."""
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
    """Yield what the nodes of a tree require: a node that requires, and its children."""
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
    return [need for group in clashing for need in group if need.versions] or _needing_versions(unique)


def _needing_versions(needs: Iterable[Need]) -> list[Need]:
    return [need for need in needs if need.versions]


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
