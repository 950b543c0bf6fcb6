"""What a person has to know who decides about a project; nothing that the project says drives the terminal."""

from collections.abc import Iterable, Iterator, Sequence

from panpan.config.keys import shown
from panpan.config.project_files import setting_of
from panpan.config.trust import Changed, FileChange, ProjectTrust, Untrusted, changes_since, wide_root
from panpan.system.text.terminal_text import spelled_out

_NO_FILES = "It has no files that would need it; language servers are started in trusted projects only."


def trust_lines(trust: ProjectTrust) -> Sequence[str]:
    """Return whether the project is trusted, and what it brings along."""
    return tuple(_lines(trust))


def _lines(trust: ProjectTrust) -> Iterator[str]:
    root = spelled_out(str(trust.files.root))
    match trust.state:
        case Changed(changes):
            yield f"{root} changed since you trusted it:"
            for change in changes:
                yield from _of_change(change)
        case Untrusted(problem=problem) if problem:
            yield f"{root} is not trusted, since {spelled_out(problem)}"
        case Untrusted():
            files = "It has files that could run programs or configure panpan:"
            yield f"{root} is not trusted. {files if trust.files.content else _NO_FILES}"
            for change in changes_since({}, trust.files):
                yield from _of_change(change)
        case _:
            what_counts = ". These files count:" if trust.files.content else ", and has no file that could run programs"
            yield f"{root} is trusted{what_counts}"
            yield from indented(_named(name) for name in trust.files.content)
    if wide := wide_root(trust.files.root):
        yield f"This is {wide}: what is trusted holds wherever you work in it, but in repositories of their own."


def _of_change(change: FileChange) -> Iterator[str]:
    kind = "" if change.kind == "new" else f"{change.kind}: "
    yield f"  {kind}{_named(change.name)}"
    if change.lines:
        yield from indented(change.lines, "    ")
    elif change.kind == "changed":
        yield "    (values in it, which are not shown)"


def _named(name: str) -> str:
    setting = setting_of(name)
    return f"{spelled_out(name)}{f' ({setting.reason})' if setting else ''}"


def indented(lines: Iterable[str], by: str = "  ") -> Iterator[str]:
    """Yield the lines with blanks in front."""
    for line in lines:
        yield f"{by}{line}"


def summary(trust: ProjectTrust) -> str:
    """Return in one line whether the project is trusted."""
    match trust.state:
        case Changed(changes):
            return f"not trusted: {len(changes)} of its files changed since you trusted it"
        case Untrusted(problem=problem) if problem:
            return f"not trusted: {shown(problem)}"
        case Untrusted(is_refused=True):
            return "not trusted, as you said"
        case Untrusted():
            return "not trusted yet" if trust.files.content else "not trusted; it has no files that would need it"
        case _:
            count = len(trust.files.content)
            return f"trusted, with {count} file{'' if count == 1 else 's'} that could run or configure panpan"
