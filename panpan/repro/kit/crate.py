"""`ro-crate-metadata.json`: a kit as a Process Run Crate 0.5, on RO-Crate 1.1."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from panpan.types.dataclass import dataclass
from panpan.version import __version__

METADATA_FILE = "ro-crate-metadata.json"
_CRATE = "https://w3id.org/ro/crate/1.1"
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_TERMS = "https://w3id.org/ro/terms/workflow-run#"
_STATUS = "http://schema.org/{}ActionStatus"
_TYPES = {
    ".json": "application/json", ".jsonl": "application/jsonl", ".toml": "application/toml", ".csv": "text/csv",
    ".md": "text/markdown", ".html": "text/html", ".txt": "text/plain", ".sha256": "text/plain",
    ".sh": "application/x-sh", ".py": "text/x-python", ".gz": "application/gzip",
}  # fmt: skip

_Entity = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrateFacts:
    """Facts about a kit that its crate tells; every text is cleaned."""

    title: str
    description: str
    made_at: str
    """ISO 8601."""
    licence: str
    files: Mapping[str, tuple[int, str]]
    """Size and SHA-256 of each file in the kit, by path."""
    descriptions: Mapping[str, str]
    """Sentences about files, by path."""
    receipts: Sequence[Mapping[str, Any]]
    """Receipts of the runs, as in receipts.jsonl."""
    outputs: Mapping[str, Sequence[str]]
    """Paths in the kit of what a run wrote, by the receipt's id."""
    address: str
    """Address of the repository; empty if it has none."""
    archive: str
    """Path of the archive of the sources in the kit; empty if there is none."""
    version: str
    """Commit, or a digest of the sources."""
    packages: Sequence[str] = ()
    """Packages that the sources need, as they were in the runs: `name==version`."""


def crate(facts: CrateFacts) -> dict[str, Any]:
    """Return the content of the file."""
    context = [f"{_CRATE}/context", {name: f"{_TERMS}{name}" for name in ("sha256", "environment")}]
    return {"@context": context, "@graph": list(map(_compact, _entities(facts)))}


def _compact(entity: _Entity) -> _Entity:
    """Return an entity in the form that the specification wants: one value is no list, and no value no property."""
    lists = {key: value for key, value in entity.items() if isinstance(value, list) and len(value) < 2}
    return {key: lists[key][0] if key in lists else value for key, value in entity.items() if lists.get(key, True)}


def _entities(facts: CrateFacts) -> Iterator[_Entity]:
    actions = [_action(one, facts) for one in facts.receipts]
    known = {action["@id"] for action, _ in actions}
    yield {
        "@id": METADATA_FILE,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": _CRATE},
    }
    yield {
        "@id": "./",
        "@type": "Dataset",
        "name": facts.title,
        "description": facts.description,
        "datePublished": facts.made_at,
        "license": {"@id": _licence(facts.licence)["@id"]},
        "author": {"@id": "#user"},
        "conformsTo": {"@id": _PROFILE},
        "hasPart": [{"@id": _id_of(path)} for path in facts.files],
        "mentions": [{"@id": one} for one in sorted(known)],
    }
    yield {"@id": _PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    yield _licence(facts.licence)
    yield {"@id": "#user", "@type": "Person", "name": "the person who ran the check"}
    yield from (_file(path, *facts.files[path], facts.descriptions.get(path, "")) for path in facts.files)
    yield _program(facts)
    yield from map(_package, facts.packages)
    found: dict[str, _Entity] = {}
    for action, others in actions:
        found |= {one["@id"]: one for one in (action, *others)}
    yield from found.values()


def _licence(licence: str) -> _Entity:
    if licence.startswith("https://"):
        name = licence.rstrip("/").rpartition("/")[2]
        return {"@id": licence, "@type": "CreativeWork", "name": name, "description": f"the licence {name}"}
    said = licence or "No licence is stated. The sources and the data keep their own licences."
    return {"@id": "#licence", "@type": "CreativeWork", "name": "licence", "description": said}


def _program(facts: CrateFacts) -> _Entity:
    return {
        "@id": facts.address or "#sources",
        "@type": "SoftwareSourceCode",
        "name": facts.title,
        "version": facts.version or "unknown",
        **({"url": facts.address} if facts.address else {}),
        **({"hasPart": {"@id": _id_of(facts.archive)}} if facts.archive else {}),
        "softwareRequirements": [{"@id": _package(one)["@id"]} for one in facts.packages],
    }


def _package(package: str) -> _Entity:
    """Return a package in the form that the profile has for dependencies."""
    name, _, version = package.partition("==")
    address = f"https://pypi.org/project/{quote(name)}/{quote(version)}/"
    return {"@id": address, "@type": "SoftwareApplication", "name": name, "softwareVersion": version, "url": address}


def _file(path: str, size: int, sha256: str, description: str) -> _Entity:
    suffix = path[path.rfind(".") :] if "." in path else ""
    return {
        "@id": _id_of(path),
        "@type": "File",
        "name": path,
        "contentSize": str(size),
        **({"sha256": sha256} if sha256 else {}),
        **({"description": description} if description else {}),
        "encodingFormat": _TYPES.get(suffix, "application/octet-stream"),
    }


def _action(receipt: Mapping[str, Any], facts: CrateFacts) -> tuple[_Entity, Sequence[_Entity]]:
    """Return a run, and the entities that only it names."""
    is_success = receipt["exit_code"] == 0 and not receipt["timed_out"]
    inputs = [_mentioned(one) for one in receipt["inputs"]]
    written = [_mentioned(one) for one in receipt["outputs"]]
    settings = [
        {"@id": f"#seed-{quote(name)}-{quote(value)}", "@type": "PropertyValue", "name": name, "value": value}
        for name, value in receipt["seeds"].items()
    ]
    kept = [{"@id": _id_of(path)} for path in facts.outputs.get(receipt["id"], ())]
    line = receipt["argv"][-1] if receipt["argv"] else "a command"
    program = _program(facts)["@id"]
    action: _Entity = {
        "@id": f"#run-{receipt['id']}",
        "@type": "CreateAction",
        "name": line,
        "description": f"ran in {receipt['seconds']:.1f} s, exit code {receipt['exit_code']}, "
        f"recorded by panpan {__version__}",
        "startTime": receipt["began_at"],
        "endTime": receipt["ended_at"],
        "agent": {"@id": "#user"},
        "instrument": {"@id": program},
        "object": [{"@id": one["@id"]} for one in inputs],
        "result": kept + [{"@id": one["@id"]} for one in written],
        "actionStatus": _STATUS.format("Completed" if is_success else "Failed"),
    }
    if settings:
        action["environment"] = [{"@id": one["@id"]} for one in settings]
    if not is_success:
        action["error"] = "its time was up" if receipt["timed_out"] else f"exit code {receipt['exit_code']}"
    return action, (*inputs, *written, *settings)


def _mentioned(digest: Mapping[str, Any]) -> _Entity:
    """Return a file that is not in the kit, as it was."""
    mark = digest["sha256"][:16] or "unknown"
    return {
        "@id": f"#file-{mark}-{quote(digest['path'])}",
        "@type": "CreativeWork",
        "name": digest["path"],
        "description": f"{digest['size']} bytes; digested: {digest['how']}",
        **({"sha256": digest["sha256"]} if digest["sha256"] else {}),
    }


def _id_of(path: str) -> str:
    return quote(path)
