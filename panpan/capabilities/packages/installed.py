"""What is installed in an environment, read from the files that installers leave there; nothing of it is run.

The form of `*.dist-info` is "Recording installed projects" and "direct URL" (packaging.python.org, PEP 376, 610), that
of `conda-meta/*.json` is conda's.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from panpan.python_environments.find_environment import interpreter_of, package_folders
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import Head, normalised, records_in
from panpan.types.content import Frozen

MAX_PACKAGES = 5_000
_JSON_BYTES = 8_000_000
"""Of conda's record of one package, which lists all its files."""
_TOKEN = re.compile(r"/t/[^/]+/")
"""Where the address of a channel holds its key."""


class Installed(Frozen):
    """One package that is installed."""

    name: str
    """Normalised (PEP 503) for a package of Python, as it is for one of conda."""
    version: str
    by: Literal["pip", "conda"] = "pip"
    """Whose record it is: that of Python's installers, or conda's."""
    build: str = ""
    """Build and channel of a package of conda; empty for others."""
    channel: str = ""
    address: str = ""
    """What it was installed from, as a requirement names it after `@`, where no index gave it."""
    path: str = ""
    """The folder or file that it was installed from, where no index gave it."""
    is_editable: bool = False
    is_of_hidden_origin: bool = False
    """Whether it came from no index, and its address holds a key, which is not written down again."""

    @property
    def key(self) -> tuple[str, str]:
        """What it is told apart by."""
        return self.by, self.name

    @property
    def pin(self) -> str:
        """How exactly this one is asked for again."""
        if self.by == "conda":
            return "=".join(filter(None, (self.name, self.version, self.build)))
        if self.path:
            return f"-e {self.path}" if self.is_editable else self.path
        return f"{self.name} @ {self.address}" if self.address else f"{self.name}=={self.version}"

    def __str__(self) -> str:
        from_where = self.path or self.address
        kind = " editable" if self.is_editable else ""
        return f"{self.name} {self.version}{f' ({from_where}{kind})' if from_where else ''}"


def read_installed(prefix: Path) -> list[Installed]:
    """Return all packages of an environment, by name; none where it does not exist."""
    root = MachineRoot()
    of_conda = list(_conda_packages(root, str(prefix)))
    known = {normalised(package.name) for package in of_conda}
    of_pip = {package.key: package for package in _python_packages(root, prefix) if package.name not in known}
    return sorted((*of_conda, *of_pip.values()), key=lambda package: (package.name.lower(), package.by))[:MAX_PACKAGES]


def shown_package(prefix: Path, name: str) -> str | None:
    """Return what there is to know of one package, in lines; None where it is not installed."""
    root, wanted = MachineRoot(), normalised(name)
    packages = read_installed(prefix)
    package = next((one for one in packages if normalised(one.name) == wanted), None)
    if package is None:
        return None
    if package.by == "conda":
        return "\n".join(_conda_lines(root, prefix, package))
    heads = {normalised(head.first("Name")): (head, place) for place, head in _heads(root, prefix)}
    head, place = heads[wanted]
    users = [normalised(other.first("Name")) for other, _ in heads.values() if wanted in _required(other)]
    lines = [f"{package}"]
    for key in ("Summary", "Home-page", "License", "License-Expression", "Requires-Python"):
        lines += [f"{key.lower().replace('-', ' ')}: {value}" for value in head.all(key) if value][:1]
    lines += [f"needs: {', '.join(head.all('Requires-Dist')) or 'nothing'}"]
    lines += [f"needed by: {', '.join(sorted(users)) or 'nothing'}", f"in: {place.rpartition('/')[0]}"]
    return "\n".join(lines)


def python_needs(prefix: Path) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield name, version and requirements (PEP 508) of each package of Python in an environment."""
    for _, head in _heads(MachineRoot(), prefix):
        yield normalised(head.first("Name")), head.first("Version"), list(head.all("Requires-Dist"))


def _heads(root: MachineRoot, prefix: Path) -> Iterator[tuple[str, Head]]:
    """Yield the record of each package of Python that says what it is, with its head."""
    prefixes = [str(prefix)]
    for folder in package_folders(root, prefixes, interpreter_of(root, prefixes).minor):
        for place, head in records_in(root, folder):
            if head is not None and head.first("Name") and head.first("Version"):
                yield place, head


def _python_packages(root: MachineRoot, prefix: Path) -> Iterator[Installed]:
    for place, head in _heads(root, prefix):
        origin = _origin(root.text(f"{place}/direct_url.json", max_bytes=10_000))
        yield Installed(name=normalised(head.first("Name")), version=head.first("Version"), **origin)


def _required(head: Head) -> set[str]:
    return {normalised(re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0]) for text in head.all("Requires-Dist")}


def _origin(direct_url: str | None) -> dict[str, Any]:
    """Return what a package was installed from, as fields of `Installed`; nothing where an index gave it."""
    found = _json(direct_url)
    url = found.get("url")
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        return {}
    if not isinstance(url, str) or "@" in parts.netloc:
        return {"is_of_hidden_origin": isinstance(url, str)}
    if parts.scheme == "file":
        folder = found.get("dir_info")
        return {"path": unquote(parts.path), "is_editable": isinstance(folder, dict) and folder.get("editable") is True}
    vcs = found.get("vcs_info")
    if isinstance(vcs, dict) and isinstance(vcs.get("vcs"), str):
        revision = vcs.get("commit_id")
        inside = found.get("subdirectory")
        part = f"#subdirectory={inside}" if isinstance(inside, str) else ""
        return {"address": f"{vcs['vcs']}+{url}{f'@{revision}' if isinstance(revision, str) else ''}{part}"}
    return {"address": url}


def _conda_packages(root: MachineRoot, prefix: str) -> Iterator[Installed]:
    for name in root.names(f"{prefix}/conda-meta"):
        if not name.endswith(".json"):
            continue
        found = _json(root.text(f"{prefix}/conda-meta/{name}", max_bytes=_JSON_BYTES))
        called, version = found.get("name"), found.get("version")
        if isinstance(called, str) and isinstance(version, str):
            build, channel = found.get("build"), found.get("channel")
            yield Installed(
                name=called,
                version=version,
                by="conda",
                build=build if isinstance(build, str) else "",
                channel=_TOKEN.sub("/t/…/", channel) if isinstance(channel, str) else "",
            )


def _conda_lines(root: MachineRoot, prefix: Path, package: Installed) -> Iterator[str]:
    file = f"{prefix}/conda-meta/{package.name}-{package.version}-{package.build}.json"
    found = _json(root.text(file, max_bytes=_JSON_BYTES))
    needs = found.get("depends")
    yield f"{package.name} {package.version} {package.build}"
    yield f"channel: {package.channel or 'unknown'}"
    if isinstance(found.get("license"), str):
        yield f"license: {found['license']}"
    yield f"needs: {', '.join(map(str, needs)) if isinstance(needs, list) and needs else 'nothing'}"


def _json(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
