"""Kits: whole or not there, with the files that they promise, and without private words."""

import csv
import gzip
import json
import re
import subprocess
import tarfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from panpan.errors import ConfigError, ToolError
from panpan.receipts.receipt import FileDigest
from panpan.repro.checking.results import CheckReport, DataCheck, InstalledPackages
from panpan.repro.claims.claim import Claims
from panpan.repro.kit.source_archive import archive_commit
from panpan.repro.kit.write_kit import write_kit
from tests.repro.private_samples import ENVIRON, PLACES, PRIVATE, SPELLINGS
from tests.repro.toy_kits import CLAIMS_TOML, check_of, git, receipt_of, reproduction, toy_data, toy_project, write_toys

PROMISED = {
    "README.md", "check.json", "claims.csv", "claims.toml", "compare.py", "data.sha256", "hardware.json",
    "manifest.json", "receipts.jsonl", "reproduce.sh", "ro-crate-metadata.json", "source.tar.gz",
}  # fmt: skip
LITERALS = {"type", "verdict", "kind", "how", "inputs_are", "sha256", "stated_sha256", "commit", "id"}
"""Fields whose values are not free."""


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with outputs and reports."""
    top = tmp_path_factory.mktemp("kit")
    commit = toy_project(top / "source")
    (top / "report.html").write_text("<p>35.6</p>")
    (top / "output.txt").write_text("mean: 2.5\n")
    (top / "model.bin").write_bytes(b"\0\1")
    outputs = {"00000000": {"output.txt": top / "output.txt", "model.bin": top / "model.bin"}}
    facts = reproduction(top / "r", top / "source", reports=[top / "report.html", top / "gone.md"], outputs=outputs)
    return _run(check_of(commit, [toy_data()]), facts, top / "toy-kit")


def _run(check: CheckReport, facts: Any, into: Path) -> Path:
    import anyio

    return anyio.run(write_kit, check, facts, into)


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


def test_kit_holds_what_it_promises(kit: Path) -> None:
    names = {path.relative_to(kit).as_posix() for path in kit.rglob("*") if path.is_file()}

    assert names == PROMISED | {"report.html", "outputs/00000000/output.txt"}
    assert [path.name for path in kit.parent.iterdir() if path.name.startswith(".")] == []


def test_manifest_has_the_digest_of_each_file(kit: Path) -> None:
    manifest = _json(kit / "manifest.json")
    named = {one["path"]: one["sha256"] for one in manifest["files"]}

    files = [path for path in kit.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert named == {path.relative_to(kit).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files}
    assert manifest["left_out"] == [
        {"path": "outputs/00000000/model.bin", "size": 2, "sha256": sha256(b"\0\1").hexdigest(), "reason": "no text"}
    ]
    assert manifest["with_placeholders"] == []


def test_data_listing_is_read_by_sha256sum(kit: Path, tmp_path: Path) -> None:
    write_toys(tmp_path)
    words = ["sha256sum", "-c", str(kit / "data.sha256")]

    assert (
        subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "data/toys.csv: OK\n"
    )


def test_archive_holds_the_commit_and_nothing_else(kit: Path) -> None:
    with tarfile.open(kit / "source.tar.gz") as tar:
        assert tar.getnames() == ["data/toys.csv", "experiment.py"]
        assert {(one.uid, one.uname, one.mtime) for one in tar} == {(0, "", 1_000_000_000)}
    assert (kit / "source.tar.gz").read_bytes()[4:8] == bytes(4)  # the time in the head of gzip


def test_table_of_claims_is_csv(kit: Path) -> None:
    rows = list(csv.DictReader((kit / "claims.csv").read_text().splitlines()))

    assert [(row["id"], row["value"], row["measured"], row["verdict"]) for row in rows] == [
        ("mean", "2.5", "2.5", "reproduced"),
        ("accuracy", "81.2", "0.8; 0.81; 0.82", "within spread"),
        ("f1", "36.5", "35.6", "deviates"),
        ("time", "3", "", "not run"),
    ]


def test_check_of_a_kit_is_read_again(kit: Path) -> None:
    check = CheckReport.model_validate(_json(kit / "check.json"))

    assert [one.claim.id for one in check.judgements] == ["mean", "accuracy", "f1", "time"]
    assert check.judgements[1].claim.extract
    assert check.judgements[1].claim.extract.json_file == "out/metrics.json"
    assert CheckReport.model_validate_json(check.model_dump_json()) == check
    assert len((kit / "receipts.jsonl").read_text().splitlines()) == 3


async def test_formulas_in_cells_are_text(tmp_path: Path) -> None:
    commit = toy_project(tmp_path / "source")
    check = _with_texts(check_of(commit), lambda name, text: '=HYPERLINK("x")' if name == "row" else text)
    kit = await write_kit(check, reproduction(tmp_path / "r", tmp_path / "source"), tmp_path / "kit")

    assert {row["row"] for row in csv.DictReader((kit / "claims.csv").read_text().splitlines())} == {
        '\'=HYPERLINK("x")'
    }


async def test_texts_of_strangers_do_nothing_where_they_are_shown(tmp_path: Path) -> None:
    check = check_of(toy_project(tmp_path / "source"), [DataCheck(path="<img src=x>.csv")])
    check = _with_texts(check, lambda name, text: "<b>\x1b[31m" if name in ("title", "row") else text)
    kit = await write_kit(check, reproduction(tmp_path / "r", tmp_path / "source"), tmp_path / "kit")

    assert not re.search("<b>|<img", (kit / "README.md").read_text())
    assert "\x1b" not in (kit / "claims.csv").read_text()


async def test_kit_replaces_an_older_one_and_nothing_else(tmp_path: Path) -> None:
    check, facts = check_of(toy_project(tmp_path / "source")), reproduction(tmp_path / "r", tmp_path / "source")
    (tmp_path / ".kit.new/outputs").mkdir(parents=True)  # as a kill leaves it
    (tmp_path / ".kit.new/outputs/left.txt").touch()
    await write_kit(check, facts, tmp_path / "kit")
    assert not (tmp_path / "kit/outputs").exists()
    assert not (tmp_path / ".kit.new").exists()

    (tmp_path / "kit/old.txt").touch()
    await write_kit(check, facts, tmp_path / "kit")
    assert not (tmp_path / "kit/old.txt").exists()

    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").touch()
    with pytest.raises(ConfigError, match="is no kit"):
        await write_kit(check, facts, tmp_path / "thesis")
    assert (tmp_path / "thesis/chapter.tex").exists()


async def test_archive_is_the_commit_whatever_the_folder_holds_now(tmp_path: Path) -> None:
    source = tmp_path / "source"
    toy_project(source)
    (source / ".gitattributes").write_text("experiment.py export-ignore\nnote.txt export-subst\n")
    (source / "note.txt").write_text("$Format:%an$\n")
    (source / "link").symlink_to("note.txt")
    (source / "part").mkdir()
    (source / "part/run.sh").write_text("true\n")
    (source / "part/run.sh").chmod(0o755)
    git(source, "add", ".")
    git(source, "commit", "-qm", "attributes")
    commit = git(source, "rev-parse", "HEAD")
    (source / "note.txt").write_text("later")
    (source / "later.txt").touch()
    before = git(source, "status", "--porcelain")
    await archive_commit(source, commit, tmp_path / "one.tar.gz")
    await archive_commit(source, commit, tmp_path / "two.tar.gz")
    await archive_commit(source / "part", commit, tmp_path / "part.tar.gz")

    with tarfile.open(tmp_path / "one.tar.gz") as tar:
        assert tar.getnames() == [".gitattributes", "data/toys.csv", "experiment.py", "link", "note.txt", "part/run.sh"]
        assert tar.extractfile("note.txt").read() == b"$Format:%an$\n"  # type: ignore[union-attr]
        assert tar.getmember("link").linkname == "note.txt"
    with tarfile.open(tmp_path / "part.tar.gz") as tar:
        assert [(one.name, one.mode) for one in tar] == [("run.sh", 0o755)]
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    assert git(source, "status", "--porcelain") == before
    with pytest.raises(ToolError, match="git cannot give the files"):
        await archive_commit(source, "0" * 40, tmp_path / "none.tar.gz")


async def test_files_that_differ_from_the_commit_are_packed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    commit = toy_project(source, has_data=False)
    (source / "experiment.py").write_text("changed")
    (source / ".gitignore").write_text("*.log\n")
    (source / "a.log").touch()
    (source / "__pycache__").mkdir()
    (source / "__pycache__/a.pyc").touch()
    write_toys(source)
    check = check_of(commit, [toy_data()]).model_copy(update={"is_changed": True})
    facts = reproduction(tmp_path / "r", source, address="https://toys.example/robust")
    kit = await write_kit(check, facts, tmp_path / "kit")

    with tarfile.open(kit / "source.tar.gz") as tar:
        assert tar.getnames() == [".gitignore", "experiment.py"]
        assert tar.extractfile("experiment.py").read() == b"changed"  # type: ignore[union-attr]
    assert _json(kit / "manifest.json")["source"]["is_changed"]


async def test_data_that_git_tracks_is_part_of_the_sources(tmp_path: Path) -> None:
    source = tmp_path / "source"
    check = check_of(toy_project(source), [toy_data()]).model_copy(update={"is_changed": True})
    kit = await write_kit(check, reproduction(tmp_path / "r", source), tmp_path / "kit")

    with tarfile.open(kit / "source.tar.gz") as tar:
        assert tar.getnames() == ["data/toys.csv", "experiment.py"]


async def test_folder_without_a_repository_is_packed(tmp_path: Path) -> None:
    write_toys(tmp_path / "source")
    (tmp_path / "source/link").symlink_to("data")
    facts = reproduction(tmp_path / "r", tmp_path / "source", claims=Claims())
    kit = await write_kit(check_of(""), facts, tmp_path / "kit")

    with tarfile.open(kit / "source.tar.gz") as tar:
        assert [(one.name, one.linkname) for one in tar] == [("data/toys.csv", ""), ("link", "data")]


async def test_data_by_parts_is_told_and_not_listed(tmp_path: Path) -> None:
    check = check_of(
        toy_project(tmp_path / "source"),
        [
            DataCheck(path="big.bin", found=FileDigest(path="big.bin", size=300 * 10**9, sha256="c" * 64, how="parts")),
            DataCheck(path="huge", found=FileDigest(path="huge", size=10**12, how="left out")),
            DataCheck(path="gone.csv", problem="it is missing"),
        ],
    )
    kit = await write_kit(check, reproduction(tmp_path / "r", tmp_path / "source"), tmp_path / "kit")

    assert (kit / "data.sha256").read_text() == ""
    page = (kit / "README.md").read_text()
    assert re.search("data big.bin: .*covers parts of it only", page)
    assert re.search("data huge: .*it has no checksum", page)
    assert re.search("data gone.csv: .*missing in the check", page)
    assert [one["found"] and one["found"]["how"] for one in _json(kit / "manifest.json")["data"]] == [
        "parts",
        "left out",
        None,
    ]


async def test_locks_of_uv_are_in_the_kit(tmp_path: Path) -> None:
    source = tmp_path / "source"
    commit = toy_project(source)
    (source / "uv.lock").write_text("version = 1\n")
    (source / "pyproject.toml").write_text("")
    facts = reproduction(tmp_path / "r", source, claims=Claims.model_validate({"environment": {"kind": "uv"}}))
    kit = await write_kit(check_of(commit), facts, tmp_path / "kit")

    assert (kit / "locks/uv.lock").read_text() == "version = 1\n"
    assert _json(kit / "manifest.json")["environment"] == {"kind": "uv", "lock": "uv", "packages": ""}
    assert "uv sync --quiet --frozen" in (kit / "reproduce.sh").read_text()


@pytest.mark.parametrize("kind", ["none", "uv"])
async def test_packages_of_the_runs_are_in_the_kit(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    toy_project(source)
    (source / "pyproject.toml").write_text('[project]\nname = "Robust.Toys"\n')
    digest, packages = (
        "c" * 64,
        ("mallory-tools==1", "-r /etc/passwd==1", "numpy==2.1.0", "robust-toys==1", "torch==2.0+cu118"),
    )
    identity = receipt_of(0).environment.model_copy(update={"packages_sha256": digest})
    check = check_of(
        "", receipts={seed: receipt_of(seed).model_copy(update={"environment": identity}) for seed in (0, 1, 2)}
    )
    check = check.model_copy(update={"environments": (InstalledPackages(sha256=digest, packages=packages),)})
    claims = Claims.model_validate({"environment": {"kind": kind}})
    facts = reproduction(tmp_path / "r", source, claims=claims, environ={"PATH": "/usr/bin:/bin", "USER": "mallory"})
    kit = await write_kit(check, facts, tmp_path / "kit")

    assert (kit / "locks/packages.txt").read_text() == "# Python 3.11.2\nnumpy==2.1.0\ntorch==2.0+cu118\n"
    assert _json(kit / "check.json")["environments"][0]["packages"][1:] == list(packages[1:])
    assert ('-c "$here/locks/packages.txt"' in (kit / "reproduce.sh").read_text()) == (kind == "uv")
    assert ("uv venv --quiet --python 3.11 " in (kit / "reproduce.sh").read_text()) == (kind == "uv")
    program = next(one for one in _json(kit / "ro-crate-metadata.json")["@graph"] if one["@id"] == "#sources")
    addresses = ["https://pypi.org/project/numpy/2.1.0/", "https://pypi.org/project/torch/2.0%2Bcu118/"]
    wanted = [{"@id": address} for address in addresses] if kind == "uv" else []
    assert program.get("softwareRequirements", []) == wanted


async def test_environments_of_other_runs_are_named(tmp_path: Path) -> None:
    commit = toy_project(tmp_path / "source")
    environments = tuple(InstalledPackages(sha256=letter * 64, packages=(f"{letter}==1",)) for letter in "ab")
    check = check_of(commit).model_copy(update={"environments": environments})
    kit = await write_kit(check, reproduction(tmp_path / "r", tmp_path / "source"), tmp_path / "kit")

    head = "# the packages of most runs; check.json has all 2 environments\n"
    assert (kit / "locks/packages.txt").read_text() == f"{head}a==1\n"


# Private words


def _with_texts(check: CheckReport, change: Any) -> CheckReport:
    """Return a check whose free texts are changed, with `change(name of the field, text)`."""

    def changed(name: str, value: Any) -> Any:
        if isinstance(value, str):
            return value if name in LITERALS else change(name, value)
        if isinstance(value, dict):
            return {key: changed(key, one) for key, one in value.items()}
        return [changed(name, one) for one in value] if isinstance(value, list) else value

    return CheckReport.model_validate_json(json.dumps(changed("", check.model_dump(mode="json"))))


def _everything(kit: Path) -> str:
    """Return the names and contents of all files of a kit, unpacked, as one text."""
    parts = [str(path.relative_to(kit)) for path in kit.rglob("*")]
    parts += [path.read_bytes().decode(errors="replace") for path in kit.rglob("*") if path.suffix not in ("", ".gz")]
    parts += [gzip.decompress(path.read_bytes()).decode(errors="replace") for path in kit.rglob("*.gz")]
    return "\n".join(parts).lower()


@pytest.mark.parametrize("word", sorted(PRIVATE))
async def test_private_words_in_every_field_and_file_stay_out(word: str, tmp_path: Path) -> None:
    spelled = " ".join(make(word) for name, make in SPELLINGS.items() if name != "upper")
    check = _with_texts(check_of(toy_project(tmp_path / "source"), [toy_data()]), lambda _, text: f"{text} {spelled}")
    (tmp_path / "r").mkdir()
    (tmp_path / "r/claims.toml").write_text(f"# {spelled}\n{CLAIMS_TOML}")
    planted = tmp_path / "planted.txt"
    planted.write_text(f"mean: 2.5 {spelled}\n")
    (tmp_path / "source/requirements.txt").write_text(f"# {spelled}\n")
    claims = {
        "environment": {"kind": "uv", "setup": f"make {spelled}", "python": spelled},
        "paper": {"title": spelled},
        "data": [{"path": f"data {spelled}", "url": f"https://x.example/{spelled}", "version": spelled}],
    }
    facts = reproduction(
        tmp_path / "r",
        tmp_path / "source",
        claims=Claims.model_validate(claims),
        environ=ENVIRON,
        folders=[*PLACES],
        address=f"https://x.example/{spelled}",
        licence=spelled,
        reports=[planted],
        outputs={"00000000": {f"{spelled.replace('/', '_')}.txt": planted, "output.txt": planted}},
    )
    kit = await write_kit(check, facts, tmp_path / "kit")

    everything = _everything(kit)
    assert [name for name, make in SPELLINGS.items() if make(word).lower() in everything] == []
    assert "mcurie" not in everything
    assert _json(kit / "manifest.json")["with_placeholders"] == ["accuracy", "f1", "mean", "time"]
    assert {one["path"] for one in _json(kit / "manifest.json")["files"] if one["sha256_before"]} >= {"claims.toml"}


@pytest.mark.parametrize("word", sorted(PRIVATE))
async def test_sources_with_private_words_refuse_the_kit(word: str, tmp_path: Path) -> None:
    toy_project(tmp_path / "source")
    (tmp_path / "source/secret.py").write_text(f"KEY = '{word}'\n")
    git(tmp_path / "source", "add", ".")
    git(tmp_path / "source", "commit", "-qm", "more")
    facts = reproduction(tmp_path / "r", tmp_path / "source", environ=ENVIRON, folders=[*PLACES])
    check = check_of(git(tmp_path / "source", "rev-parse", "HEAD"))

    with pytest.raises(ConfigError, match=r"source\.tar\.gz would hold .*, in secret\.py") as caught:
        await write_kit(check, facts, tmp_path / "kit")
    assert word not in str(caught.value)
    assert not (tmp_path / "kit").exists()
    assert not (tmp_path / ".kit.new").exists()


async def test_published_sources_with_names_are_left_at_their_address(tmp_path: Path) -> None:
    toy_project(tmp_path / "source")
    (tmp_path / "source/AUTHORS").write_text("mcurie\n")
    git(tmp_path / "source", "add", ".")
    git(tmp_path / "source", "commit", "-qm", "more")
    commit = git(tmp_path / "source", "rev-parse", "HEAD")
    facts = reproduction(
        tmp_path / "r", tmp_path / "source", environ=ENVIRON, address="https://token1234@toys.example/robust"
    )
    kit = await write_kit(check_of(commit), facts, tmp_path / "kit")

    source = _json(kit / "manifest.json")["source"]
    assert not (kit / "source.tar.gz").exists()
    assert (source["archive"], source["address"], source["commit"]) == ("", "https://toys.example/robust", commit)
    assert "in AUTHORS" in source["note"]
    assert f"checkout --quiet --detach {commit}" in (kit / "reproduce.sh").read_text()


async def test_names_in_sources_are_kept_if_the_user_says_so(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "AUTHORS").write_text("mcurie\n")
    facts = reproduction(tmp_path / "r", source, environ=ENVIRON, names_are_public=True)
    assert (await write_kit(check_of(""), facts, tmp_path / "kit") / "source.tar.gz").is_file()

    (source / "config.py").write_text("ROOT = '/home/mcurie/x'\n")
    with pytest.raises(ConfigError, match="your home folder, in config"):
        await write_kit(check_of(""), facts, tmp_path / "kit")
    assert (tmp_path / "kit/source.tar.gz").is_file()  # the older kit


async def test_address_with_a_name_is_public_only_if_the_user_says_so(tmp_path: Path) -> None:
    check, address = check_of(toy_project(tmp_path / "source")), "https://code.example/mcurie/robust"
    facts = reproduction(tmp_path / "r", tmp_path / "source", environ=ENVIRON, address=address)
    kit = await write_kit(check, facts, tmp_path / "kit")
    assert "mcurie" not in _everything(kit)

    kit = await write_kit(check, replace(facts, names_are_public=True), tmp_path / "kit")
    assert _json(kit / "manifest.json")["source"]["address"] == address
    assert "mcurie" not in _everything(kit).replace(address, "")


async def test_sources_that_are_too_large_need_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("panpan.repro.kit.source_archive.MAX_ARCHIVE_BYTES", 100)
    check = check_of(toy_project(tmp_path / "source"))
    with pytest.raises(ConfigError, match="the sources take more than"):
        await write_kit(check, reproduction(tmp_path / "r", tmp_path / "source"), tmp_path / "kit")

    facts = reproduction(tmp_path / "r", tmp_path / "source", address="https://toys.example/robust")
    kit = await write_kit(check, facts, tmp_path / "kit")
    assert not (kit / "source.tar.gz").exists()


def test_scripts_name_no_place_of_this_machine(kit: Path) -> None:
    assert not re.search(re.escape(str(kit.parent)), _everything(kit))
