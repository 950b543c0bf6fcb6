"""What the project asks of its environment, and whether it gets it."""

from collections.abc import Iterator

from panpan.tools.environment.advice import judged
from panpan.tools.environment.facts import Facts
from panpan.tools.environment.filling import filling
from panpan.tools.environment.layers import Constraint, Finding, State
from panpan.tools.environment.metadata import normalised
from panpan.tools.environment.needs import applying, fits_python, is_requirement, marker_values, unmet
from panpan.tools.environment.project_wishes import ProjectWishes


def project_findings(wishes: ProjectWishes) -> list[Finding]:
    """Return what is asked for, for the report."""
    python = [_finding("python", one.specifier, one.source) for one in wishes.python]
    return [*python, *(_finding("package", one.text, one.source) for one in wishes.packages)]


def project_constraints(facts: Facts, wishes: ProjectWishes) -> Iterator[Constraint]:
    """Yield what the project asks for, and whether the environment has it."""
    yield from _python(facts, wishes)
    yield from _packages(facts, wishes)
    for one in wishes.unclear:
        yield judged("project-unclear", "unknown", one.source, one.what)


def _python(facts: Facts, wishes: ProjectWishes) -> Iterator[Constraint]:
    version = facts.python.version
    for one in wishes.python if version else ():
        fits = fits_python(one.specifier, version)
        state: State = "unknown" if fits is None else "holds" if fits else "broken"
        yield judged("project-python", state, f"{one.source} asks for Python {one.specifier}", f"it is {version}")


def _packages(facts: Facts, wishes: ProjectWishes) -> Iterator[Constraint]:
    markers, is_condas = marker_values(facts), facts.environment.kind == "conda"
    of_conda = {normalised(name): version for name, version in facts.python.of_conda}
    versions = {**of_conda, **facts.python.versions}
    met = missed = 0
    left_out: dict[str, int] = {}
    for wish in wishes.packages:
        if wish.is_condas and not is_condas:
            file = wish.source.partition(":")[0]
            left_out[file] = left_out.get(file, 0) + 1
            continue
        requirement = applying(wish.text, markers)
        if requirement is None:
            if not is_requirement(wish.text):
                yield judged("project-unclear", "unknown", wish.source, wish.text)
            continue
        is_own = normalised(requirement.name) == wishes.name
        if is_own or (wish.is_bound and normalised(requirement.name) not in versions):
            continue
        has = unmet(requirement, versions)
        if not has:
            met += 1
            continue
        missed += 1
        needs = f"{wish.source} asks for {requirement.name}{requirement.specifier}"
        yield judged("project-package", "broken", needs, has, command=filling(facts, wishes, wish))
    if met and not missed:
        needs = f"what the project asks for ({met} package{'' if met == 1 else 's'})"
        yield judged("project-package", "holds", needs, "all of it is there")
    for file, count in left_out.items():
        has = f"{facts.environment.path} is none of conda's"
        yield judged("project-unclear", "unknown", f"{file} asks conda for {count} packages", has)


def _finding(name: str, value: str, source: str) -> Finding:
    return Finding(layer="python", name=name, value=value, role="required", source=source)
