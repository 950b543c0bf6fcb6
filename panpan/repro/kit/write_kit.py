"""Writing a kit: a folder with which others check a check, without panpan.

The rule: a kit is in place whole or not at all, and holds no private words. What is large is in it by checksum only.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from anyio import to_thread

from panpan.errors import ConfigError, ToolError
from panpan.python_environments.requirement_files import without_login
from panpan.receipts.receipt import FileDigest, utc_now
from panpan.repro.checking.results import CheckReport, DataCheck, Judgement
from panpan.repro.claims.claim import Claims
from panpan.repro.kit.contents import Contents, files_in, is_page
from panpan.repro.kit.crate import METADATA_FILE, CrateFacts, crate
from panpan.repro.kit.hardware import hardware
from panpan.repro.kit.locks import RunPackages, add_lock, add_packages
from panpan.repro.kit.manifest import FORMAT, MANIFEST, readme
from panpan.repro.kit.private_words import PrivateWords
from panpan.repro.kit.script import PACKAGES, LockKind, ScriptFacts, script
from panpan.repro.kit.source_archive import archive_commit, archive_files, find_in_archive
from panpan.system.files.folder_tree import make_folders, remove_tree
from panpan.types.dataclass import dataclass
from panpan.version import __version__

SOURCE = "source.tar.gz"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_COMPARE = Path(__file__).with_name("compare.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """Facts about a reproduction that its kit needs beside the check."""

    claims_file: Path
    """`claims.toml`."""
    claims: Claims
    """Its content."""
    source: Path
    """Folder whose files ran, canonical."""
    address: str = ""
    """Address from which others get the repository; empty if it is not published."""
    reports: Sequence[Path] = ()
    """`report.md` and `report.html`."""
    outputs: Mapping[str, Mapping[str, Path]] = field(default_factory=dict)
    """Files that runs wrote, such as `output.txt`, by the receipt's id and by name."""
    licence: str = ""
    """Address of the licence of the kit itself, or words."""
    folders: Sequence[Path] = ()
    """Further private folders, such as the one in which the user works."""
    names_are_public: bool = False
    """True if the user says that names of people and machines may stay in the sources and in their address."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The user's environment."""

    @property
    def words(self) -> PrivateWords:
        """Private words of this machine and these folders."""
        places = {**dict.fromkeys([*self.folders, self.claims_file.parent], "[folder]"), self.source: "[source]"}
        public = self.web_address if self.names_are_public else ""
        return PrivateWords.of_machine(places, self.environ, public=public)

    @property
    def web_address(self) -> str:
        """The address without a login; empty if it is none of the web."""
        address = without_login(self.address)
        return address if address.startswith(("https://", "http://")) else ""


async def write_kit(check: CheckReport, reproduction: Reproduction, into: Path) -> Path:
    """Write the kit of a check, and return its folder. An older kit there is replaced.

    Args:
        check: The check.
        reproduction: Further facts.
        into: Folder of the kit.

    Raises:
        ConfigError: The folder holds something else, or a private word would get into the kit.
        ToolError: A file cannot be read or written, or git has no such commit.
    """
    new = into.with_name(f".{into.name}.new")
    try:
        await to_thread.run_sync(_make_empty, new, into)
        await _Writer(check, reproduction, new).write()
        await to_thread.run_sync(_put_in_place, new, into)
    except OSError as error:
        raise ToolError(f"the kit {into} cannot be written: {error.filename or ''} {error.strerror}") from error
    finally:
        with suppress(OSError):
            await to_thread.run_sync(remove_tree, new)
    return into


def _make_empty(folder: Path, into: Path) -> None:
    if into.exists() and not (into / MANIFEST).is_file():
        raise ConfigError(f"{into} is there already and is no kit; move it away, or name another folder")
    if folder.exists():
        remove_tree(folder)
    make_folders(folder)


def _put_in_place(new: Path, into: Path) -> None:
    if into.exists():
        remove_tree(into)
    new.rename(into)


class _Writer:
    """Writes one kit."""

    def __init__(self, check: CheckReport, reproduction: Reproduction, folder: Path) -> None:
        self._check = check
        self._reproduction = reproduction
        self._words = reproduction.words
        self._contents = Contents(folder, self._words)
        self._folder = folder
        self._made_at = utc_now()
        self._packages: RunPackages | None = None
        self._title = self._words.clean(check.title or reproduction.claims.paper.title or "a reproduction")

    async def write(self) -> None:
        contents = self._contents
        contents.add_json("hardware.json", await hardware(self._reproduction.environ))
        has_archive, note = await self._add_source()
        lock = await self._add_lock()
        await to_thread.run_sync(self._add_records)
        outputs = await to_thread.run_sync(self._add_outputs)
        facts = self._script_facts(lock, has_archive=has_archive)
        await to_thread.run_sync(self._add_programs, facts, note)
        await to_thread.run_sync(self._add_descriptions, facts, note, outputs)
        await to_thread.run_sync(self._refuse_private)

    # Sources and packages

    @property
    def _address(self) -> str:
        address = self._reproduction.web_address
        return address if self._words.clean(address) == address else ""

    async def _add_source(self) -> tuple[bool, str]:
        """Add the sources; return False, and a sentence, if the kit names only their address."""
        check, target = self._check, self._folder / SOURCE
        has_commit = bool(_COMMIT.fullmatch(check.commit)) and not check.is_changed
        try:
            if has_commit:
                await archive_commit(self._reproduction.source, check.commit, target)
            else:
                await archive_files(self._reproduction.source, target, self._places_left_out())
            await to_thread.run_sync(self._refuse_private_source, target)
        except ConfigError as error:
            if not (has_commit and self._address):
                raise
            target.unlink(missing_ok=True)
            return False, f"the sources are not in the kit, but at their address: {error}"
        return True, ""

    def _places_left_out(self) -> Sequence[Path]:
        """Return places in the folder of the sources that are none: data, and what a reproduction writes."""
        top = self._reproduction.source
        own = ("campaign", "kit", "repro-results", "check.json", "state.json", self._folder.name)
        return [*(top / one.path for one in self._reproduction.claims.data), *(top / name for name in own)]

    def _refuse_private_source(self, archive: Path) -> None:
        with_names = not self._reproduction.names_are_public
        name, found = find_in_archive(archive, self._words, with_names=with_names)
        if found:
            raise ConfigError(
                f"the kit is not written: {SOURCE} would hold {found}, in {name}; remove it from the sources, or if "
                "it is a name that may be known, run panpan repro kit --public-names"
            )

    async def _add_lock(self) -> LockKind:
        """Add the lock and the packages of the environment, and return the way to install them."""
        contents, source = self._contents, self._reproduction.source
        self._packages = await to_thread.run_sync(add_packages, contents, self._check, source)
        if self._reproduction.claims.environment.kind != "uv":
            return "none"
        return await add_lock(contents, source, self._reproduction.environ)

    def _script_facts(self, lock: LockKind, *, has_archive: bool) -> ScriptFacts:
        environment, words, packages = self._reproduction.claims.environment, self._words, self._packages
        return ScriptFacts(
            title=self._title,
            address="" if has_archive else self._address,
            commit=self._check.commit,
            lock=lock,
            has_packages=packages is not None,
            python_before="" if packages is None else packages.python,
            python=environment.python or "",
            setup=words.clean(environment.setup or ""),
            setup_timeout_s=environment.setup_timeout_s,
            data=[path for one in self._check.data if one.found and is_relative(path := words.clean(one.path))],
            seconds=sum(receipt.seconds for receipt in self._check.receipts),
        )

    # Records

    def _add_records(self) -> None:
        contents, check, reproduction = self._contents, self._check, self._reproduction
        contents.add_file("claims.toml", reproduction.claims_file)
        contents.add_json("check.json", check.model_dump(mode="json"))
        contents.add_table("claims.csv", _HEAD, map(_row, check.judgements))
        contents.add_lines("receipts.jsonl", (one.model_dump(mode="json") for one in check.receipts))
        contents.add_text("data.sha256", "".join(f"{one.sha256}  {one.path}\n" for one in _listed(check.data)))
        for path in reproduction.reports:
            if path.is_file():
                contents.add_file(path.name, path)

    def _add_outputs(self) -> Mapping[str, Sequence[str]]:
        """Add the files that runs wrote; return their paths in the kit, by the receipt's id."""
        found: dict[str, list[str]] = {}
        for run, files in self._reproduction.outputs.items():
            for name, path in files.items():
                place = f"outputs/{run}/{self._words.clean(name)}"
                if is_relative(place) and self._contents.add_file(place, path):
                    found.setdefault(run, []).append(place)
        return found

    def _add_programs(self, facts: ScriptFacts, note: str) -> None:
        contents = self._contents
        check = self._words.clean_value(self._check.model_dump(mode="json"))
        contents.add_text("reproduce.sh", script(check, facts))
        (self._folder / "reproduce.sh").chmod(0o755)
        shutil.copyfile(_COMPARE, self._folder / "compare.py")
        contents.add_text("README.md", readme(self._title, self._check, self._reproduction.claims, facts, note))

    def _add_descriptions(self, facts: ScriptFacts, note: str, outputs: Mapping[str, Sequence[str]]) -> None:
        """Add the crate and the manifest, which name all other files."""
        words, contents = self._words, self._contents
        receipts = [words.clean_value(one.model_dump(mode="json")) for one in self._check.receipts]
        made = CrateFacts(
            title=self._title,
            description=f"Runs of the commands behind the numbers of {self._title}, with a verdict on each number",
            made_at=self._made_at,
            licence=self._reproduction.licence,
            files=contents.digests(),
            descriptions=_DESCRIPTIONS,
            receipts=receipts,
            outputs=outputs,
            address=self._address,
            archive="" if facts.address else SOURCE,
            version=self._check.commit,
            packages=() if facts.lock == "none" or self._packages is None else self._packages.packages,
        )
        contents.add_json(METADATA_FILE, crate(made))
        contents.add_json(MANIFEST, self._manifest(facts, note))

    def _manifest(self, facts: ScriptFacts, note: str) -> Mapping[str, Any]:
        check, contents = self._check, self._contents
        described = {one.path: one for one in self._reproduction.claims.data}
        return {
            "format": FORMAT,
            "title": self._title,
            "made_by": f"panpan {__version__}",
            "made_at": self._made_at,
            "source": {
                "archive": "" if facts.address else SOURCE,
                "address": self._address,
                "commit": check.commit,
                "is_changed": check.is_changed,
                "written_here": check.written_here,
                "note": note,
            },
            "environment": {
                "kind": self._reproduction.claims.environment.kind,
                "lock": facts.lock,
                "packages": PACKAGES if facts.has_packages else "",
            },
            "data": [
                {**one.model_dump(mode="json"), **_described(described, one.path)} for one in check.data
            ],
            "left_out": [*map(asdict, contents.left_out)],
            "with_placeholders": sorted(
                one.claim.id for one in check.judgements if self._words.clean(_run_words(one)) != _run_words(one)
            ),
            "files": [
                {"path": path, "size": size, "sha256": digest, "sha256_before": contents.cleaned.get(path, "")}
                for path, (size, digest) in contents.digests().items()
            ],
        }  # fmt: skip

    def _refuse_private(self) -> None:
        for name, path in files_in(self._folder):
            if name == SOURCE:
                continue
            text = "" if name == "compare.py" else path.read_bytes().decode(errors="replace")
            find = self._words.find_on_page if is_page(name) else self._words.find
            if found := self._words.find(name) or find(text):
                raise ConfigError(
                    f"the kit is not written: {name} would hold {found}; remove it from claims.toml or from what the "
                    "commands write"
                )


def is_relative(path: str) -> bool:
    """True if a path stays below the folder to which it is relative, and can stand in a listing of sha256sum."""
    parts = path.split("/")
    return bool(path) and not path.startswith("/") and ".." not in parts and path.isprintable() and "\\" not in path


def _listed(data: Sequence[DataCheck]) -> Iterator[FileDigest]:
    """Yield the files of data that are digested whole."""
    for one in data:
        files = one.files or ((one.found,) if one.found else ())
        yield from (file for file in files if file.how == "whole" and file.sha256 and is_relative(file.path))


def _described(described: Mapping[str, Any], path: str) -> Mapping[str, str]:
    data = described.get(path)
    if data is None:
        return {}
    return {"url": without_login(data.url) if data.url else "", "version": data.version, "licence": data.licence}


def _run_words(judgement: Judgement) -> str:
    extract = judgement.claim.extract
    return f"{judgement.claim.command}\n{extract.model_dump_json() if extract else ''}"


_HEAD = ("id", "table", "row", "column", "value", "unit", "measured", "verdict", "reason", "hints", "seeds", "command")


def _row(judgement: Judgement) -> Sequence[Any]:
    claim = judgement.claim
    return (
        *(claim.id, claim.table, claim.row, claim.column, claim.value, claim.unit),
        "; ".join(f"{value:.12g}" for value in judgement.measured),
        *(judgement.verdict, judgement.reason, "; ".join(judgement.hints)),
        "; ".join(str(run.seed) for run in judgement.runs if run.seed is not None),
        claim.command,
    )


_DESCRIPTIONS = {
    "check.json": "the claims with their runs and verdicts",
    "claims.csv": "the table of claims",
    "claims.toml": "the claims as they were written",
    "compare.py": "finds the numbers after runs, and compares them",
    "data.sha256": "checksums of the data, as sha256sum -c reads them",
    "hardware.json": "the machine of the check",
    PACKAGES: "the Python packages that the runs had",
    "README.md": "how to use the kit",
    "receipts.jsonl": "what each command read and wrote, and how it ended",
    "report.html": "the report for people",
    "report.md": "the report for people",
    "reproduce.sh": "runs the commands again and compares",
    SOURCE: "the sources that ran",
}
