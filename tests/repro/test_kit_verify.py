"""`panpan repro verify`: broken kits are refused, others run in the sandbox and are compared with their check."""

import json
import os
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from panpan.errors import ConfigError
from panpan.repro.checking.results import InstalledPackages
from panpan.repro.cli import command
from panpan.repro.kit.kit_command import show
from panpan.repro.kit.manifest import Manifest
from panpan.repro.kit.verify import Verification, VerifyOptions, read_kit, verify
from tests.fakes.sandboxes import none_works
from tests.repro.kit_runs import short, write
from tests.repro.toy_kits import check_of, git, toy_data, toy_project, write_toys

ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SECRET_PLAN": "x"}


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    return write(short(check_of(toy_project(tmp_path / "source"))), tmp_path)


def options(tmp_path: Path, **fields: Any) -> VerifyOptions:
    return VerifyOptions(environ={**ENVIRON, "PANPAN_HOME": str(tmp_path / "home")}, **fields)


def verified(kit: Path, options: VerifyOptions, backend: str = "asyncio") -> Verification:
    return anyio.run(verify, kit, options, backend=backend)


def rewritten(kit: Path, name: str, change: Callable[[str], str]) -> None:
    """Change a file of a kit, and its digest in the manifest."""
    path = kit / name
    path.write_text(change(path.read_text()))
    manifest = json.loads((kit / "manifest.json").read_text())
    for file in manifest["files"]:
        if file["path"] == name:
            file["sha256"] = sha256(path.read_bytes()).hexdigest()
    (kit / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_kit_gives_the_verdicts_of_its_check(backend: str, tmp_path: Path) -> None:
    kit = write(check_of(toy_project(tmp_path / "source")), tmp_path)
    found = verified(kit, options(tmp_path), backend)

    assert found.is_same
    assert [(one["id"], one["verdict"]) for one in found.claims] == [
        ("mean", "reproduced"),
        ("accuracy", "within spread"),
        ("f1", "deviates"),
        ("time", "not run"),
    ]
    assert not (kit / "work").exists()


def test_packages_that_differ_from_the_check_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check = short(check_of(toy_project(tmp_path / "source")))
    environment = InstalledPackages(sha256="c" * 64, packages=("no-such-toys==1\x1b[2J", "no-such-toys==1"))
    kit = write(check.model_copy(update={"environments": (environment,)}), tmp_path)
    found = verified(kit, options(tmp_path))

    assert found.is_same
    assert found.packages == "packages that differ from those of the check: no-such-toys is missing"
    assert show(found, "text") == 0
    assert f"\n{found.packages}\n" in capsys.readouterr().out


def test_other_numbers_are_told(tmp_path: Path) -> None:
    toy_project(tmp_path / "source")
    write_toys(tmp_path / "source", "1\n2\n3\n5\n")
    git(tmp_path / "source", "commit", "-qam", "change the data after the check")
    kit = write(short(check_of(git(tmp_path / "source", "rev-parse", "HEAD"))), tmp_path)
    found = verified(kit, options(tmp_path))

    assert not found.is_same
    assert found.claims[0]["verdict"] == "not reproducible"
    assert found.claims[0]["runs"][0]["number"] == "2.75"


def test_commands_see_an_empty_home_and_change_nothing_outside(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("as it was")
    toy_project(tmp_path / "source")
    code = (
        "import os, pathlib, socket\n"
        "assert not os.listdir(os.environ['HOME']), 'home'\n"
        "assert not {'SECRET_PLAN', 'PANPAN_HOME', 'USER'} & set(os.environ), 'variables'\n"
        f"try:\n    pathlib.Path({str(outside)!r}).write_text('changed')\n"
        "except OSError:\n    print('mean: 2.5')\n"
    )
    (tmp_path / "source/experiment.py").write_text(code)
    git(tmp_path / "source", "commit", "-qam", "look around")
    kit = write(short(check_of(git(tmp_path / "source", "rev-parse", "HEAD"))), tmp_path)
    found = verified(kit, options(tmp_path))

    assert (found.claims[0]["runs"][0]["problem"], found.is_same) == ("", True)
    assert outside.read_text() == "as it was"


def test_data_of_the_user_can_be_read(tmp_path: Path) -> None:
    kit = write(short(check_of(toy_project(tmp_path / "source", has_data=False), [toy_data()])), tmp_path)
    with pytest.raises(
        ConfigError, match=r"the kit cannot run here: data is missing; .* \(data/toys\.csv is missing\)"
    ):
        verified(kit, options(tmp_path))

    write_toys(tmp_path / "mine")
    assert verified(kit, options(tmp_path, data=tmp_path / "mine")).is_same


def test_program_of_a_kit_cannot_claim_its_own_numbers(kit: Path, tmp_path: Path) -> None:
    rewritten(kit, "compare.py", lambda _: "print('all is well')\n")
    rewritten(kit, "reproduce.sh", lambda text: text.replace("python experiment.py 0", "echo mean: 9"))
    found = verified(kit, options(tmp_path))

    assert not found.is_same
    assert found.claims[0]["runs"][0]["number"] == "9"


def test_python_of_a_kit_does_not_find_the_numbers(kit: Path, tmp_path: Path) -> None:
    """Neither a program on the kit's PATH nor a module in its home comes between."""
    packages = "home/.local/lib/python{}.{}/site-packages".format(*sys.version_info[:2])
    lies = f"""
mkdir -p "$work/../{packages}"
printf 'import os; os._exit(0)' >"$work/../{packages}/usercustomize.py"
printf '#!/bin/sh\nexit 0\n' >"$work/../bin/python3"
chmod +x "$work/../bin/python3"
exit 0
"""
    rewritten(kit, "reproduce.sh", lambda script: script.replace('rm -rf -- "$work/run"\n\n', lies))
    found = verified(kit, options(tmp_path))

    assert found.is_same
    assert found.claims[0]["runs"][0]["number"] == "2.5"


@pytest.mark.parametrize(
    ("source", "lock", "hosts"),
    [
        ({"archive": "source.tar.gz", "address": "https://toys.example/x"}, "none", ()),
        ({"archive": "", "address": "https://toys.example/x"}, "none", ("toys.example",)),
        ({"archive": "source.tar.gz", "address": ""}, "uv", ("package-indexes",)),
        ({"archive": "", "address": ""}, "none", ()),
    ],
)
def test_manifest_names_the_hosts_that_a_kit_needs(source: object, lock: str, hosts: tuple[str, ...]) -> None:
    fields = {"format": "panpan-kit/1", "files": [], "source": source, "environment": {"lock": lock}}

    assert Manifest.model_validate(fields).hosts == hosts


def test_kit_is_not_run_where_no_sandbox_works(kit: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no sandbox works here; run sh reproduce\.sh yourself"):
        verified(kit, options(tmp_path, find=none_works))


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda kit: (kit / "manifest.json").unlink(), "is no kit: manifest.json is missing"),
    "no JSON": (lambda kit: (kit / "manifest.json").write_text("{"), "manifest.json cannot be read"),
    "other format": (lambda kit: rewritten(kit, "manifest.json", _later), "has the format panpan-kit/9"),
    "changed file": (lambda kit: (kit / "check.json").write_text("{}"), "check.json is not what manifest.json says"),
    "missing file": (lambda kit: (kit / "claims.csv").unlink(), "claims.csv cannot be read"),
    "link": (lambda kit: _linked(kit / "claims.csv"), "claims.csv lies outside of it"),
    "pipe": (lambda kit: _piped(kit / "claims.csv"), "claims.csv cannot be read"),
    "no check": (lambda kit: rewritten(kit, "check.json", lambda _: '{"judgements": 1}'), "check.json is no check"),
    "unnamed": (lambda kit: rewritten(kit, "manifest.json", _without_script), "does not name reproduce.sh"),
    "outside": (lambda kit: rewritten(kit, "manifest.json", _outside), "passwd lies outside of it"),
}


def _later(text: str) -> str:
    return text.replace("panpan-kit/1", "panpan-kit/9")


def _without_script(text: str) -> str:
    manifest = json.loads(text)
    return json.dumps({**manifest, "files": [one for one in manifest["files"] if one["path"] != "reproduce.sh"]})


def _outside(text: str) -> str:
    file = {"path": "../../etc/passwd", "size": 1, "sha256": "0" * 64}
    return json.dumps({**json.loads(text), "files": [file]})


def _linked(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def _piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_broken_kit_is_refused_and_the_file_named(name: str, kit: Path) -> None:
    damage, said = BROKEN[name]
    read_kit(kit)
    damage(kit)

    with pytest.raises(ConfigError) as caught:
        read_kit(kit)
    assert said in str(caught.value)


def test_command_prints_and_tells_by_its_exit_code(kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANPAN_HOME", str(tmp_path / "home"))
    same = CliRunner().invoke(command, ["verify", str(kit), "-f", "json"], standalone_mode=False)
    assert (same.return_value, json.loads(same.output)["is_same"]) == (0, True)

    rewritten(kit, "reproduce.sh", lambda text: text.replace("python experiment.py 0", "echo mean: 9"))
    other = CliRunner().invoke(command, ["verify", str(kit)], standalone_mode=False)
    assert other.return_value == 1
    assert other.output.endswith("not as in the check: mean\n")

    (kit / "manifest.json").unlink()
    assert isinstance(CliRunner().invoke(command, ["verify", str(kit)], standalone_mode=False).exception, ConfigError)


def test_words_of_a_kit_do_nothing_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"id": "a\x1b[2J", "value": "1\x07", "verdict": "deviates", "checked": "not run", "reason": "\x1b]0;x\x07"}
    assert show(Verification([{**texts, "here": "-", "is_same": False, "runs": []}]), "text") == 1

    printed = capsys.readouterr().out
    assert not {"\x1b", "\x07"} & set(printed)
