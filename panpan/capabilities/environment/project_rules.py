"""What the project asks of its environment, and whether it gets it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from panpan.capabilities.environment.advice import judged
from panpan.capabilities.environment.facts import Facts
from panpan.capabilities.environment.filling import filling, lacking, remaking
from panpan.capabilities.environment.layers import Constraint, Finding, State
from panpan.capabilities.environment.metadata import normalised
from panpan.capabilities.environment.needs import applying, fits_python, is_requirement, marker_values, unmet
from panpan.capabilities.environment.project.project_wishes import ProjectWishes
from panpan.capabilities.environment.project.wish import Unclear, Wish, file_of, is_for_conda

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def project_findings(wishes: ProjectWishes) -> list[Finding]:
    """Return what is asked for, for the report; with what belongs to extras and groups, which nobody has to install."""
    python = (_finding("python", one.specifier, one.source) for one in wishes.python)
    kinds = ((f"package of {one.group}" if one.group else "package", one) for one in wishes.packages)
    return [*python, *(_finding(kind, one.text, one.source) for kind, one in kinds)]


def project_constraints(facts: Facts, wishes: ProjectWishes) -> Iterator[Constraint]:
    """Yield what the project asks for, and whether the environment has it."""
    apart = _files_for_others(facts, wishes)
    for file in sorted(apart):
        has = f"{facts.environment.path} is none of conda's, and other files say what belongs into it"
        yield judged("project-unclear", "unknown", f"what {file} asks for", has, source=file)
    yield from _python(facts, wishes, apart)
    yield from _packages(facts, wishes, apart)
    for one in wishes.unclear:
        if file_of(one.source) not in apart:
            yield _told(one)


def _files_for_others(facts: Facts, wishes: ProjectWishes) -> frozenset[str]:
    """Return the manifests of conda's that an environment of another kind was not made from, as others say more."""
    files = {wish.file for wish in wishes.packages if not (wish.group or wish.is_bound)}
    if facts.environment.kind == "conda" or not any(not is_for_conda(file) for file in files):
        return frozenset()
    return frozenset(file for file in (*files, *(one.file for one in wishes.python)) if is_for_conda(file))


def _python(facts: Facts, wishes: ProjectWishes, apart: frozenset[str]) -> Iterator[Constraint]:
    version = facts.python.version
    asked = [(one, fits_python(one.specifier, version)) for one in wishes.python if version and one.file not in apart]
    mend = ""
    if any(fits is False for _, fits in asked):
        mend = remaking(facts, wishes.folder, [one.specifier for one, _ in asked])
    for one, fits in asked:
        state: State = "unknown" if fits is None else "holds" if fits else "broken"
        needs, command = f"{one.source} asks for Python {one.specifier}", mend if state == "broken" else ""
        first, has = lacking(facts.root, command), f"it is {version}"
        yield judged("project-python", state, needs, has, source=one.source, command=command, first=first)


def _packages(facts: Facts, wishes: ProjectWishes, apart: frozenset[str]) -> Iterator[Constraint]:
    needed = [wish for wish in wishes.packages if not wish.group and wish.file not in apart]
    is_condas = facts.environment.kind == "conda"
    left_out = Counter(wish.file for wish in needed if wish.is_condas and not is_condas)
    for file, count in left_out.items():
        needs = f"{file} asks conda for {_packages_in_words(count)}"
        has = f"{facts.environment.path} is none of conda's"
        yield judged("project-unclear", "unknown", needs, has, source=file)
    of_conda = {normalised(name): version for name, version in facts.python.of_conda}
    versions, markers = {**of_conda, **facts.python.versions}, marker_values(facts)
    refused = {wish.file: wish.source for wish in reversed(needed) if not is_requirement(wish.text)}
    met = missed = 0
    for wish in [wish for wish in needed if is_condas or not wish.is_condas]:
        requirement = applying(wish.text, markers)
        if requirement is None and not is_requirement(wish.text):
            yield _told(Unclear(wish.source, "it is no requirement", wish.text))
        if requirement is None or not _counts(requirement, wish, wishes, versions):
            continue
        lacks = dict(_lacks(facts, requirement, versions, markers))
        missed, met = missed + any(lacks.values()), met + ({*lacks.values()} == {""})
        for what, lack in lacks.items():
            if lack is None:
                yield _told(Unclear(wish.source, "its version cannot be compared", what))
            elif lack:
                needs, command = f"{wish.source} asks for {what}", filling(facts, wishes, wish)
                line = refused.get(wish.file)
                first = f"correct {line}, for which the whole file is refused" if line else ""
                yield judged("project-package", "broken", needs, lack, source=wish.source, command=command, first=first)
    if met and not missed:
        needs = f"what the project asks for ({_packages_in_words(met)})"
        yield judged("project-package", "holds", needs, "all of it is there")


def _counts(requirement: "Requirement", wish: Wish, wishes: ProjectWishes, versions: Mapping[str, str]) -> bool:
    """Return whether it has to be there: the project itself has not, nor what is only bound to a version."""
    name = normalised(requirement.name)
    return name not in wishes.names and (name in versions or not wish.is_bound)


def _lacks(
    facts: Facts, requirement: "Requirement", versions: Mapping[str, str], markers: Mapping[str, str]
) -> Iterator[tuple[str, str | None]]:
    """Yield what is asked for, also by the extras of it, with what is there in its place, as `unmet` says."""
    yield f"{requirement.name}{requirement.specifier}", unmet(requirement, versions)
    package = facts.python.package(normalised(requirement.name))
    for extra in sorted(requirement.extras) if package else ():
        for text in package.requires if package else ():
            needed = applying(text, {**markers, "extra": extra})
            if needed is not None and applying(text, markers) is None:
                what = f"{requirement.name}[{extra}], which needs {needed.name}{needed.specifier}"
                yield what, unmet(needed, versions)


def _packages_in_words(count: int) -> str:
    return f"{count} package{'' if count == 1 else 's'}"


def _told(one: Unclear) -> Constraint:
    needs = f"{one.source} asks for {one.text}" if one.text else f"what {one.source} asks for"
    return judged("project-unclear", "unknown", needs, one.why, source=one.source)


def _finding(name: str, value: str, source: str) -> Finding:
    return Finding(layer="python", name=name, value=value, role="required", source=source)
