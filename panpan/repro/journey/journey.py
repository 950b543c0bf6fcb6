"""The journey from a repository or a paper to a report: its steps, in their order.

The rule: each step looks at what is there and does the rest, so that the same command goes on after a kill, an answer
of the user or a change of claims.toml. One process at a time works in the folder.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from anyio import to_thread

from panpan.batch.store.folder import write_whole
from panpan.batch.store.lease import Lease
from panpan.errors import AnswerNeededError, ConfigError, OutputError, PanpanError, ToolError
from panpan.repro.checking.check import CheckOptions
from panpan.repro.checking.results import CheckReport
from panpan.repro.claims import claims_file
from panpan.repro.claims.claims_file import NAME, load_claims
from panpan.repro.journey.explaining import explain, explanation_of
from panpan.repro.journey.fetching import fetch, users_network
from panpan.repro.journey.given import Given, read_given, read_paper, read_repository
from panpan.repro.journey.model_runs import ModelOptions, ModelRuns
from panpan.repro.journey.named_repository import named_repository
from panpan.repro.journey.parts import Parts
from panpan.repro.journey.preparing import is_prepared, prepare
from panpan.repro.journey.report import ReproductionReport, Told, markdown_text, name_only
from panpan.repro.journey.report_html import html_page
from panpan.repro.journey.repository_files import note_files_before, with_changes
from panpan.repro.journey.reproduction_folder import JourneyState, ReproductionFolder
from panpan.system.files.atomic_write import remove_leftovers
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.read_file import read_regular_file
from panpan.system.web.network import WebNetwork
from panpan.types.dataclass import dataclass

_READMES = ("README.md", "readme.md", "Readme.md", "README.html")
_EMPTY_CLAIMS = b"# The claims of the paper; docs/reproduction.md has all keys.\n\n[paper]\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class JourneyOptions:
    """Choices of the user."""

    into: Path | None = None
    """Folder of the reproduction; None: named for what was given, in the working folder."""
    repository: str | None = None
    """Repository of a paper, as `--repo` takes it."""
    paper: str | None = None
    """Paper of a repository, as `--paper` takes it."""
    checking: CheckOptions = CheckOptions()
    model: ModelOptions | None = ModelOptions()
    """None if no model is asked."""
    says_yes: bool = False
    """True if there is no question about claims that nobody has confirmed, nor about the paper's own repository."""
    trusts: bool = False
    """True if the setup of claims.toml runs without a question."""
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


@dataclass(frozen=True, slots=True)
class JourneyEnd:
    """The end of a journey."""

    folder: ReproductionFolder
    report: ReproductionReport
    kit: Path | None
    """None if there is none."""


class Journey:
    """A reproduction on its way in this process.

    Args:
        text: Repository, folder or paper, as the user gave it; or a folder in which a journey began.
        cwd: Folder from which paths are seen.
        options: Choices of the user.
        say: Gets lines for people.
        parts: Work of other packages.
        network: The way to papers; None: by the user's settings.
    """

    def __init__(
        self,
        text: str,
        cwd: Path,
        options: JourneyOptions,
        say: Callable[[str], None],
        *,
        parts: Parts,
        network: WebNetwork | None = None,
    ) -> None:
        self._options = options
        self._say = say
        self._parts = parts
        self._network = network
        self._given = read_given(text, cwd)
        self._paper = self._given if self._given.kind == "paper" else _of(options.paper, cwd, read_paper)
        self._source = self._given if self._given.kind in ("repository", "folder") else None
        self._source = self._source or _of(options.repository, cwd, read_repository)
        self.folder = ReproductionFolder(_place(self._given, options.into, cwd))

    async def run(self) -> JourneyEnd:
        """Go to the end, from wherever an earlier run stopped.

        Raises:
            AnswerNeededError: The model or the claims wait for the user.
            BudgetError: The model's money is used up.
            ConfigError: Something that the user gave is wrong.
            LeaseHeldError: Another process works in the folder.
            OutputError: The folder cannot be written.
            PanpanError: A step failed.
        """
        await to_thread.run_sync(_make, self.folder.path)
        async with Lease(self.folder.lease):
            await to_thread.run_sync(remove_leftovers, self.folder.path)  # of runs that were killed as they wrote
            state = await to_thread.run_sync(self.folder.state) or JourneyState()
            await to_thread.run_sync(self.folder.write_state, state)
            state = await fetch(
                self.folder, state, self._source, self._paper, self._options.env, self._say, self._network
            )
            if not self.folder.source.exists():
                state = await self._fetch_named(state)
            state = await self._read(state)
            runs = self._model_runs(state)
            if runs is not None:
                await note_files_before(self.folder)
                await prepare(self.folder, runs, self._say)
            await self._require_claims()
            if not self._options.says_yes:
                await self._parts.confirm(self.folder.path, self._options.env)
            if not self._options.trusts:
                await self._parts.require_trust(self.folder.path, self._options.env)
            check = await self._check()
            if runs is not None:
                await self._explain(check, runs)
            return await self._report(check, runs.state if runs is not None else state)

    async def _fetch_named(self, state: JourneyState) -> JourneyState:
        """Fetch the repository that the paper names."""
        paper, env = self.folder.paper, self._options.env
        network = self._network or await users_network(env)
        named = None
        if paper is not None:
            named = await named_repository(paper, self._parts, network, says_yes=self._options.says_yes)
        if named is None:
            raise ConfigError(
                f"{self.folder.path} has no repository; name the one of the paper with --repo, as an address or a "
                "folder"
            )
        return await fetch(self.folder, state, named, None, env, self._say, network)

    def _model_runs(self, state: JourneyState) -> ModelRuns | None:
        if self._options.model is None:
            return None
        return ModelRuns(self.folder, state, self._options.model, self._options.env, self._say)

    async def _read(self, state: JourneyState) -> JourneyState:
        """Make claims.toml: the repository's own, or what its paper or README says."""
        if self.folder.claims_file.exists():
            return state
        own = await to_thread.run_sync(_file_of, self.folder.source, (NAME,))
        if own is not None:
            data = await to_thread.run_sync(lambda: read_regular_file(own, max_bytes=claims_file.MAX_BYTES))
            claims_from = f"{NAME} of the repository"
        else:
            data, claims_from = await self._proposed(state)
        state = state.model_copy(update={"claims_from": claims_from})
        await to_thread.run_sync(self.folder.write_state, state)
        await to_thread.run_sync(write_whole, self.folder.claims_file, data)
        self._say(f"claims: {claims_from}")
        return state

    async def _proposed(self, state: JourneyState) -> tuple[bytes, str]:
        paper = self.folder.paper
        if paper is None:
            paper = await to_thread.run_sync(_file_of, self.folder.source, _READMES)
        if paper is None:
            return _EMPTY_CLAIMS, "none yet: there is no paper and no README"
        name = paper.name if self.folder.paper is None else name_only(state.paper)
        data = await self._parts.propose(paper)
        if data is None:
            return _EMPTY_CLAIMS, f"none yet: {name} has no tables with numbers"
        return data, f"read from the tables of {name}"

    async def _require_claims(self) -> None:
        """Say what is missing before anybody is asked to confirm nothing."""
        claims = (await to_thread.run_sync(load_claims, self.folder.path)).claims
        if not claims.claim:
            raise ConfigError(
                f"{self.folder.claims_file} has no claims; write them, and the same command goes on "
                "(docs/reproduction.md has the keys)"
            )
        if self._options.model is None and not is_prepared(claims):
            self._say(
                "prepare: no model is asked, so claims without a command are not run; write commands into "
                f"{self.folder.claims_file}"
            )

    async def _check(self) -> CheckReport:
        check = await self._parts.check(self.folder.path, self._options.checking, self._say)
        if check.waits:
            raise AnswerNeededError(
                f"claims wait for confirmation; run panpan repro confirm {self.folder.path}, then the same command"
            )
        check = await with_changes(self.folder, check)
        await to_thread.run_sync(write_whole, self.folder.check_file, check.model_dump_json(indent=1).encode() + b"\n")
        return check

    async def _explain(self, check: CheckReport, runs: ModelRuns) -> None:
        """Let the model explain; without its words the report is made all the same."""
        try:
            await explain(check, runs, self._say)
        except (AnswerNeededError, OutputError):
            raise
        except PanpanError as error:
            self._say(f"explain: {error}; the report has no explanation")

    async def _report(self, check: CheckReport, state: JourneyState) -> JourneyEnd:
        report = ReproductionReport(check, _told(state, check, is_confirmed=not self._options.says_yes))
        await to_thread.run_sync(_write_report, self.folder, report)
        return JourneyEnd(self.folder, report, await self._kit())

    async def _kit(self) -> Path | None:
        """Write the kit; without one, as where it would hold something private, the report is still there."""
        try:
            return await self._parts.make_kit(self.folder.path, self._options.env)
        except (ConfigError, ToolError) as error:
            self._say(f"kit: {error}; panpan repro kit {self.folder.path} tries again")
            return None


def _file_of(source: Path, names: Sequence[str]) -> Path | None:
    """Return the first file of these names in a repository, canonical; a link that leads out of it is none."""
    top = canonical_path(source)
    found = (canonical_path(top / name) for name in names if (top / name).is_file())
    return next((path for path in found if is_below(path, top)), None)


def _of(text: str | None, cwd: Path, read: Callable[[str, Path], Given]) -> Given | None:
    return None if text is None else read(text, cwd)


def _place(given: Given, into: Path | None, cwd: Path) -> Path:
    """Return the folder of the reproduction: in the working folder, or beside the repository in which that is.

    Raises:
        ConfigError: It was given twice.
    """
    if given.path is not None and given.kind == "begun":
        if into is not None:
            raise ConfigError(f"{given.text} is a reproduction that has begun, so --into has no meaning; leave it out")
        return canonical_path(given.path)
    if into is not None:
        return canonical_path(cwd / into.expanduser())
    if given.kind == "folder" and given.path is not None and is_below(canonical_path(cwd), given.path):
        return canonical_path(given.path.parent / given.folder_name)
    return canonical_path(cwd / given.folder_name)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror}") from error


def _told(state: JourneyState, check: CheckReport, *, is_confirmed: bool) -> Told:
    prepare, works = state.work.get("prepare"), state.work.values()
    costs = [work.usd for work in works]
    return Told(
        paper=state.paper,
        claims_from=state.claims_from if is_confirmed else f"{state.claims_from}; nobody had to confirm them (--yes)",
        model=", ".join(dict.fromkeys(work.model for work in works if work.model)),
        explanation=explanation_of(check, state),
        preparation=prepare.text if prepare is not None else "",
        usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _write_report(folder: ReproductionFolder, report: ReproductionReport) -> None:
    for name, text in (("report.md", markdown_text(report)), ("report.html", html_page(report))):
        write_whole(folder.path / name, text.encode(errors="replace"))
