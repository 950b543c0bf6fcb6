"""`manifest.json` of a kit as it is read, and the page that explains a kit."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from panpan.batch.reporting.report import in_markdown
from panpan.repro.checking.results import CheckReport
from panpan.repro.claims.claim import Claims
from panpan.repro.kit.script import PACKAGES, ScriptFacts
from panpan.system.text.terminal_text import size_text
from panpan.types.permission import PACKAGE_INDEXES

MANIFEST = "manifest.json"
FORMAT = "panpan-kit/1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class KitFile(_Part):
    """A file of a kit."""

    path: str
    size: int
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Environment(_Part):
    """The way to install packages."""

    lock: str = "none"


class Source(_Part):
    """The place of the sources."""

    archive: str = ""
    """Path in the kit; empty if the sources are at their address alone."""
    address: str = ""


class Manifest(_Part):
    """The fields that a check of a kit needs."""

    format: str
    title: str = ""
    source: Source = Source()
    environment: Environment = Environment()
    files: tuple[KitFile, ...]

    @property
    def hosts(self) -> Sequence[str]:
        """Hosts that the kit must reach, as the setting `sandbox.domains` names them."""
        host = "" if self.source.archive else urlsplit(self.source.address).hostname
        indexes = () if self.environment.lock == "none" else (PACKAGE_INDEXES,)
        return (*indexes, host) if host else indexes


def readme(title: str, check: CheckReport, claims: Claims, facts: ScriptFacts, note: str) -> str:
    """Return the page for people: what is in the kit, how to use it and what is not in it."""
    lines = [
        f"# {in_markdown(title)}",
        "",
        "This kit repeats a check of the numbers of a paper. It needs a POSIX shell, python3 (3.9 or later), tar and",
        "gzip, and no panpan:",
        "",
        "    sh reproduce.sh" + (" -d DATA" if facts.data else ""),
        "",
        "It runs each command in a fresh copy of the sources, finds the numbers, prints a table, and ends with 1 if a",
        "number deviates from the paper's. No sandbox holds the commands, so read reproduce.sh first; with panpan,",
        "`panpan repro verify KIT` runs it in one.",
        "",
        *_packages(facts),
        f"The runs took {facts.seconds:.0f} s on the machine of hardware.json.",
        "",
        "## Verdicts of the check",
        "",
        *[f"- {verdict}: {count}" for verdict, count in _counts(check)],
        "",
        "## Not in this kit",
        "",
        *_missing(check, claims, note),
        "",
        "Private words are replaced by placeholders: `[home]`, `[folder]`, `[source]`, `[user]`, `[host]`,",
        "`[redacted]`. manifest.json names the claims whose commands hold some, which cannot run elsewhere.",
        "",
        "manifest.json has the checksums of all files; ro-crate-metadata.json describes them as a Process Run Crate.",
    ]
    return "\n".join(lines) + "\n"


def _packages(facts: ScriptFacts) -> Sequence[str]:
    if not facts.has_packages:
        return ()
    if facts.lock == "none":
        return f"{PACKAGES} names the Python packages that the runs had. reproduce.sh installs none of them.", ""
    return (
        f"{PACKAGES} names the Python packages that the runs had. reproduce.sh installs what the sources ask for, in",
        "these versions where they can be had, and says which packages differ.",
        "",
    )


def _counts(check: CheckReport) -> Sequence[tuple[str, int]]:
    verdicts = [one.verdict for one in check.judgements]
    return [(verdict, verdicts.count(verdict)) for verdict in sorted(set(verdicts))]


def _missing(check: CheckReport, claims: Claims, note: str) -> Sequence[str]:
    known = {one.path: one for one in claims.data}
    lines = [f"- {in_markdown(note)}"] if note else []
    for one in check.data:
        data = known.get(one.path)
        parts = [f"version {data.version}" if data and data.version else "", data.url if data else ""]
        size = size_text(one.found.size) if one.found else "it was missing in the check, too"
        how = one.found.how if one.found else ""
        said = "its checksum covers parts of it only, and is not compared" if how == "parts" else ""
        said = "it has no checksum" if how == "left out" else said
        words = ", ".join(in_markdown(part) for part in (size, *parts, said) if part)
        lines.append(f"- data {in_markdown(one.path)}: {words}")
    return lines or ["- Outputs that are large or no text, if there were any. manifest.json has their checksums."]
