"""The repository that a paper names: when it is cloned, and from where."""

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panpan.errors import AnswerNeededError, ConfigError
from panpan.repro.claims.claim import Claims
from panpan.repro.journey.named_repository import named_repository
from panpan.repro.journey.parts import OwnParts
from panpan.repro.papers.repository_addresses import NamedRepositories, NamedRepository
from panpan.system.web.url_guard import PrivateHosts
from tests.fakes.campaign import git
from tests.fakes.git_server import serving_git
from tests.fakes.outside import PUBLIC, Network
from tests.repro.test_reproduction_journey import CLAIM, FakeParts, run
from tests.repro.toy_papers import toy_repository

TOYS = "https://github.com/ada/toys"


def served_toys(root: Path, **options: Any) -> AbstractContextManager[int]:
    """Serve robust-means as `ada/toys.git`."""
    source = toy_repository("robust-means", root)
    git(root, "clone", "-q", "--bare", str(source), str(root / "served" / "ada" / "toys.git"))
    return serving_git(root / "served", **options)


def open_settings(root: Path, hosts: str = '"127.0.0.1"') -> None:
    """Write settings of the user that open a host."""
    (root / "home").mkdir(exist_ok=True)
    (root / "home" / "settings.toml").write_text(f"[web]\nprivate_hosts = [{hosts}]\n")


async def test_named_repository_is_cloned_after_one_question(tmp_path: Path) -> None:
    open_settings(tmp_path)
    parts = FakeParts(Claims(claim=(CLAIM,)))
    with served_toys(tmp_path) as port:
        address = f"http://127.0.0.1:{port}/ada/toys.git"
        (tmp_path / "paper.md").write_text(f"Our code is available at\n{address}.\n\nReferences\ngithub.com/x/y\n")
        end, said = await run("paper.md", tmp_path, parts)
        await run("paper-reproduction", tmp_path, parts)

    assert parts.steps[:3] == ["repositories paper.md", f"may clone {address}", "propose paper.md"]
    assert parts.steps.count(f"may clone {address}") == 1
    assert (end.folder.source / "experiment.py").is_file()
    assert f"cloned {address} at" in said[1]
    assert address in (end.folder.path / "state.json").read_text()


async def test_named_repository_is_cloned_with_yes(tmp_path: Path) -> None:
    open_settings(tmp_path)
    parts = FakeParts(Claims(claim=(CLAIM,)))
    with served_toys(tmp_path) as port:
        (tmp_path / "paper.html").write_text(f'<a href="http://127.0.0.1:{port}/ada/toys.git">')
        end, _ = await run("paper.html", tmp_path, parts, says_yes=True)

    assert parts.steps == ["repositories paper.html", "propose paper.html", "check", "kit"]
    assert (end.folder.source / "experiment.py").is_file()


async def test_named_repository_is_not_cloned_after_a_no(tmp_path: Path) -> None:
    (tmp_path / "paper.md").write_text(TOYS)
    parts = FakeParts()
    parts.may_be_cloned = False

    with pytest.raises(AnswerNeededError, match="was not cloned; name the repository of the paper with --repo"):
        await run("paper.md", tmp_path, parts)

    assert not (tmp_path / "paper-reproduction" / "source").exists()


async def test_question_without_a_terminal_says_what_to_add() -> None:
    with pytest.raises(AnswerNeededError, match=f"to clone it, add --repo {TOYS}$"):
        await OwnParts(can_ask=False).may_clone(TOYS)


async def test_several_repositories_are_listed(tmp_path: Path) -> None:
    (tmp_path / "paper.md").write_text(f"{TOYS} and https://gitlab.com/x/y")
    parts = FakeParts()

    with pytest.raises(AnswerNeededError, match=f"--repo {TOYS}, --repo https://gitlab.com/x/y$"):
        await run("paper.md", tmp_path, parts, says_yes=True)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8080/x.git", "http://localhost/x.git", "http://10.0.0.1/x.git"])
async def test_private_host_is_no_candidate(tmp_path: Path, address: str) -> None:
    (tmp_path / "paper.md").write_text(f"Our code is available at {address}")

    with pytest.raises(ConfigError, match="has no repository; name the one of the paper with --repo"):
        await run("paper.md", tmp_path, FakeParts(), says_yes=True)


class Answer(FakeParts):
    """Parts whose reader of papers was got hold of by the paper."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    async def repositories(self, paper: Path) -> NamedRepositories:
        return NamedRepositories(repositories=(NamedRepository(address=self._address, is_of_code=True),))


@pytest.mark.parametrize(
    "address",
    [
        "--upload-pack=x",
        "ext::sh -c x",
        "file:///srv/toys.git",
        "https://github.com/ada/toys/",
        f"{TOYS}#--x",
        "ada/toys",
    ],
)
async def test_answer_of_the_reader_is_not_trusted(tmp_path: Path, address: str) -> None:
    assert await named_repository(tmp_path, Answer(address), Network().web, says_yes=True) is None


async def test_name_that_leads_to_a_private_host_is_refused(tmp_path: Path) -> None:
    network = Network(names={"git.example.org": ["10.0.0.1"]})

    with pytest.raises(ConfigError, match="cannot be fetched"):
        await named_repository(tmp_path, Answer("https://git.example.org/toys.git"), network.web, says_yes=True)


async def test_address_is_held_to_the_place_that_was_checked(tmp_path: Path) -> None:
    network = Network(names={"git.example.org": [PUBLIC]})

    given = await named_repository(tmp_path, Answer("https://git.example.org/toys.git"), network.web, says_yes=True)

    assert given is not None
    assert given.address is not None
    assert given.address.is_at == ("git.example.org:443", PUBLIC)


async def test_git_asks_at_the_place_and_follows_no_redirect(tmp_path: Path) -> None:
    parts = FakeParts(Claims(claim=(CLAIM,)))
    network = replace(
        Network(names={"git.lab.example": ["127.0.0.1"]}).web, private=PrivateHosts.parse(["git.lab.example"])
    )
    with served_toys(tmp_path) as port, serving_git(tmp_path, redirects_to=f"http://127.0.0.1:{port}") as other:
        (tmp_path / "paper.md").write_text(f"http://git.lab.example:{port}/ada/toys.git")
        (tmp_path / "moved.md").write_text(f"http://git.lab.example:{other}/ada/toys.git")
        end, _ = await run("paper.md", tmp_path, parts, network)
        with pytest.raises(ConfigError, match="could not be fetched"):
            await run("moved.md", tmp_path, parts, network)

    assert (end.folder.source / "experiment.py").is_file()
