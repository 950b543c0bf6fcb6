"""The steps of a reproduction, with stand-ins for what other packages do: their order, and that they go on."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.batch.store.lease import Lease, LeaseHeldError
from panpan.errors import AnswerNeededError, ConfigError
from panpan.repro.checking.check import CheckOptions
from panpan.repro.checking.results import CheckReport, Judgement
from panpan.repro.claims.claim import Claim, Claims
from panpan.repro.claims.claims_file import claims_text
from panpan.repro.journey.journey import Journey, JourneyEnd, JourneyOptions
from panpan.repro.journey.parts import OwnParts
from panpan.repro.papers.repository_addresses import NamedRepositories, named_repositories
from panpan.system.web.network import WebNetwork
from tests.fakes.campaign import git
from tests.fakes.file_server import Files
from tests.fakes.outside import PUBLIC, Network, made_certificate, serving
from tests.repro.judged_claims import EVERY_VERDICT
from tests.repro.toy_papers import toy_repository

CLAIM = Claim(id="trimmed", value="3.50", command="true", extract={"output": "([0-9.]+)"})  # type: ignore[arg-type]


class FakeParts:
    """Says what it was asked to do, and fails at a step if it is told to."""

    def __init__(self, claims: Claims | None = None, report: CheckReport = EVERY_VERDICT) -> None:
        self.steps: list[str] = []
        self.fails_at = ""
        self.refuses_kit = False
        self.trusts_setup = True
        self.may_be_cloned = True
        self._claims = claims
        self._report = report

    async def propose(self, paper: Path) -> bytes | None:
        self._do(f"propose {paper.name}")
        return claims_text(self._claims).encode() if self._claims is not None else None

    async def repositories(self, paper: Path) -> NamedRepositories:
        self._do(f"repositories {paper.name}")
        return named_repositories(await anyio.Path(paper).read_text())

    async def may_clone(self, address: str) -> bool:
        self._do(f"may clone {address}")
        return self.may_be_cloned

    async def confirm(self, folder: Path, env: Mapping[str, str]) -> None:
        self._do("confirm")

    async def require_trust(self, folder: Path, env: Mapping[str, str]) -> None:
        if not self.trusts_setup:
            raise ConfigError("claims.toml is not trusted")

    async def check(self, folder: Path, options: CheckOptions, say: Callable[[str], None]) -> CheckReport:
        self._do("check")
        return self._report

    async def make_kit(self, folder: Path, env: Mapping[str, str]) -> Path:
        self._do("kit")
        if self.refuses_kit:
            raise ConfigError("the kit would hold the name of the user")
        return folder / "kit"

    def _do(self, step: str) -> None:
        if step == self.fails_at:
            raise KeyboardInterrupt
        self.steps.append(step)


async def run(
    text: str, cwd: Path, parts: FakeParts, network: WebNetwork | None = None, **options: Any
) -> tuple[JourneyEnd, list[str]]:
    """Run a journey without a model, and return its end and what it said."""
    said: list[str] = []
    chosen = JourneyOptions(model=None, env={"HOME": str(cwd), "PANPAN_HOME": str(cwd / "home")}, **options)
    end = await Journey(text, cwd, chosen, said.append, parts=parts, network=network).run()
    return end, said


async def test_folder_is_linked_and_its_readme_read(tmp_path: Path) -> None:
    source, parts = toy_repository("robust-means", tmp_path), FakeParts(Claims(claim=(CLAIM,)))

    end, _ = await run("robust-means", tmp_path, parts)

    assert parts.steps == ["propose README.md", "confirm", "check", "kit"]
    assert end.folder.path == tmp_path / "robust-means-reproduction"
    assert end.folder.source.resolve() == source
    assert git(source, "status", "--porcelain") == ""
    text = (end.folder.path / "report.md").read_text()
    assert "read from the tables of README" in text.replace("\\", "")
    assert (end.folder.path / "report.html").is_file()


async def test_repository_is_cloned_at_its_commit(tmp_path: Path) -> None:
    source, parts = toy_repository("robust-means", tmp_path), FakeParts(Claims(claim=(CLAIM,)))
    (source / ".gitmodules").write_text('[submodule "x"]\n')
    git(source, "add", "--all")
    git(source, "commit", "-q", "-m", "second")

    end, said = await run(f"git+file://{source}", tmp_path, parts)

    head = git(source, "rev-parse", "HEAD").strip()
    assert (end.folder.source / "experiment.py").is_file()
    assert not end.folder.source.is_symlink()
    assert git(end.folder.source, "branch", "--remotes", "--contains", head).strip() == "origin/fetched"
    assert any(head[:12] in line for line in said)
    assert any("submodules were not fetched" in line for line in said)


async def test_claims_of_the_repository_are_taken(tmp_path: Path) -> None:
    source, parts = toy_repository("robust-means", tmp_path), FakeParts()
    (source / "claims.toml").write_text(claims_text(Claims(claim=(CLAIM,))))

    end, _ = await run("robust-means", tmp_path, parts)

    assert parts.steps == ["confirm", "check", "kit"]
    assert end.folder.claims_file.read_text() == (source / "claims.toml").read_text()


@pytest.mark.parametrize("name", ["claims.toml", "README.md"])
async def test_link_out_of_the_repository_is_not_read(tmp_path: Path, name: str) -> None:
    source, parts = toy_repository("robust-means", tmp_path), FakeParts(Claims(claim=(CLAIM,)))
    (source / "README.md").unlink()
    (tmp_path / "secret").write_text("key = 'abc'\n")
    (source / name).symlink_to(tmp_path / "secret")

    with pytest.raises(ConfigError, match="has no claims"):
        await run("robust-means", tmp_path, parts)

    assert parts.steps == []


async def test_yes_to_claims_is_none_to_a_setup(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    parts = FakeParts(Claims(claim=(CLAIM,)))
    parts.trusts_setup = False

    with pytest.raises(ConfigError, match="is not trusted"):
        await run("robust-means", tmp_path, parts, says_yes=True)
    assert "check" not in parts.steps

    await run("robust-means", tmp_path, parts, says_yes=True, trusts=True)
    assert parts.steps[-2:] == ["check", "kit"]


@pytest.mark.parametrize("setup", ["", 'setup = "make data"'])
async def test_setup_is_trusted_only_by_the_user(tmp_path: Path, setup: str) -> None:
    text = f'[environment]\nkind = "none"\n{setup}\n[[claim]]\nid = "a"\nvalue = "1"\ncommand = "make"\n'
    (tmp_path / "claims.toml").write_text(text)
    with pytest.raises(ConfigError, match="add --trust for this run") if setup else nullcontext():
        await OwnParts(can_ask=False).require_trust(tmp_path, {"PANPAN_HOME": str(tmp_path / "home")})


@pytest.mark.parametrize("step", ["propose README.md", "confirm", "check", "kit"])
async def test_interrupted_journey_goes_on_with_its_folder(tmp_path: Path, step: str) -> None:
    toy_repository("robust-means", tmp_path)
    parts = FakeParts(Claims(claim=(CLAIM,)))
    parts.fails_at = step
    with pytest.raises(KeyboardInterrupt):
        await run("robust-means", tmp_path, parts)
    parts.fails_at = ""

    end, _ = await run("robust-means-reproduction", tmp_path, parts)

    assert parts.steps.count("propose README.md") == 1
    assert parts.steps[-3:] == ["confirm", "check", "kit"]
    assert (end.folder.path / "report.html").is_file()


async def test_edited_claims_are_kept(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    parts = FakeParts(Claims(claim=(CLAIM,)))
    end, _ = await run("robust-means", tmp_path, parts)
    edited = end.folder.claims_file.read_text() + "# mine\n"
    end.folder.claims_file.write_text(edited)

    await run("robust-means", tmp_path, parts)

    assert end.folder.claims_file.read_text() == edited


async def test_left_parts_of_a_killed_fetch_are_removed(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    folder = tmp_path / "robust-means-reproduction"
    (folder / "source.part-1234" / ".git").mkdir(parents=True)
    (folder / "source.part-5678").symlink_to(tmp_path / "robust-means")

    await run("robust-means", tmp_path, FakeParts(Claims(claim=(CLAIM,))))

    assert [path.name for path in folder.iterdir() if "part" in path.name] == []
    assert (tmp_path / "robust-means" / "README.md").is_file()


async def test_second_process_is_refused(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    (tmp_path / "robust-means-reproduction").mkdir()
    async with Lease(tmp_path / "robust-means-reproduction" / "lease"):
        with pytest.raises(LeaseHeldError):
            await run("robust-means", tmp_path, FakeParts())


async def test_folder_of_another_repository_is_refused(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    toy_repository("river-levels", tmp_path)
    await run("robust-means", tmp_path, FakeParts(Claims(claim=(CLAIM,))))

    with pytest.raises(ConfigError, match="--into"):
        await run("river-levels", tmp_path, FakeParts(), into=Path("robust-means-reproduction"))


async def test_folder_within_the_source_is_refused(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)

    with pytest.raises(ConfigError, match="outside it with --into"):
        await run("robust-means", tmp_path, FakeParts(), into=Path("robust-means/out"))


async def test_results_lie_beside_the_repository_of_the_user(tmp_path: Path) -> None:
    source = toy_repository("robust-means", tmp_path)

    end, _ = await run(".", source, FakeParts(Claims(claim=(CLAIM,))))

    assert end.folder.path == tmp_path / "robust-means-reproduction"


async def test_paper_without_a_repository_says_what_to_add(tmp_path: Path) -> None:
    (tmp_path / "toys.html").write_text("<p>toys</p>")

    with pytest.raises(ConfigError, match="--repo"):
        await run("toys.html", tmp_path, FakeParts())


async def test_paper_on_the_web_is_fetched(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    parts, files = FakeParts(Claims(claim=(CLAIM,))), Files({"/toys.pdf": b"%PDF-1.4 toys"})
    network = Network()
    async with serving(files.serve) as port:
        network.ports[PUBLIC, 80] = port
        end, _ = await run("http://example.org/toys.pdf", tmp_path, parts, network.web, repository="robust-means")

    assert parts.steps[0] == "propose paper.pdf"
    assert end.folder.paper == end.folder.path / "paper.pdf"
    assert "http://example.org/toys.pdf" in (end.folder.path / "report.md").read_text().replace("\\", "")


@pytest.mark.parametrize("text", ["arxiv:2405.00001v2", "https://arxiv.org/abs/2405.00001v2?context=cs#x"])
async def test_paper_of_arxiv_is_its_pdf(tmp_path: Path, text: str) -> None:
    toy_repository("robust-means", tmp_path)
    files = Files({"/pdf/2405.00001v2": b"%PDF-1.4 toys"})
    certificate = made_certificate(tmp_path, "arxiv.org")
    network = Network(names={"arxiv.org": [PUBLIC]}, trusted=certificate)
    async with serving(files.serve, certificate=certificate) as port:
        network.ports[PUBLIC, 443] = port
        parts = FakeParts(Claims(claim=(CLAIM,)))
        end, _ = await run(text, tmp_path, parts, network.web, repository="robust-means")

    assert end.folder.path.name == "2405.00001v2-reproduction"
    assert (end.folder.path / "paper.pdf").read_bytes() == b"%PDF-1.4 toys"


async def test_paper_that_cannot_be_fetched_is_an_error(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    files, network = Files({"/toys.pdf": b"x"}, refusals=[404]), Network()
    async with serving(files.serve) as port:
        network.ports[PUBLIC, 80] = port
        with pytest.raises(ConfigError, match="could not be fetched"):
            await run("http://example.org/toys.pdf", tmp_path, FakeParts(), network.web, repository="robust-means")


async def test_paper_without_tables_needs_claims_by_hand(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    parts = FakeParts(None)

    with pytest.raises(ConfigError, match="has no claims; write them"):
        await run("robust-means", tmp_path, parts)

    assert parts.steps == ["propose README.md"]


async def test_waiting_claims_end_with_their_own_code(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    waiting = Judgement(claim=CLAIM, verdict="not run", reason="", waits_for_confirmation=True)
    parts = FakeParts(Claims(claim=(CLAIM,)), CheckReport(judgements=(waiting,)))

    with pytest.raises(AnswerNeededError, match="panpan repro confirm"):
        await run("robust-means", tmp_path, parts)


async def test_damaged_state_says_what_to_do(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    end, _ = await run("robust-means", tmp_path, FakeParts(Claims(claim=(CLAIM,))))
    end.folder.state_file.write_text('{"what": "panpan reproduction", "version": 9}')

    with pytest.raises(ConfigError, match="damaged"):
        await run("robust-means-reproduction", tmp_path, FakeParts())


async def test_refused_kit_leaves_the_report(tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    parts = FakeParts(Claims(claim=(CLAIM,)))
    parts.refuses_kit = True

    end, said = await run("robust-means", tmp_path, parts)

    assert end.kit is None
    assert any(line.startswith("kit: the kit would hold the name of the user") for line in said)
    assert (end.folder.path / "report.html").is_file()
