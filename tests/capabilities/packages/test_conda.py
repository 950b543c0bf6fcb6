"""The conda tool against an executable that plays recorded output, and for real where one is installed."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from panpan.capabilities.packages.conda import CondaInput, CondaTool
from panpan.capabilities.packages.target import PROGRAMS
from panpan.config.settings import PackageSettings
from panpan.errors import ToolError
from tests.capabilities.packages.conftest import Workspace
from tests.capabilities.packages.player import Player, record
from tests.capabilities.packages.test_conflict import LIBMAMBA


@pytest.fixture
def conda(workspace: Workspace) -> Player:
    return Player(workspace.root.parent / "bin", "conda")


@pytest.fixture
def house(workspace: Workspace, conda: Player) -> Workspace:
    file, text = record(workspace.root / "env", "shelf", "1.0")
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return workspace.with_variables(PATH=f"{workspace.root.parent}/bin:/usr/bin:/bin")


async def test_conda_install_is_reported_and_undone_to_the_same_build(house: Workspace, conda: Player) -> None:
    prefix = house.root / "env"
    old, new, lamp = (record(prefix, *one) for one in (("shelf", "1.0"), ("shelf", "2.0"), ("lamp", "1.0")))
    conda.plays("done", {old[0]: None, new[0]: new[1], lamp[0]: lamp[1]})
    conda.plays("removed", {lamp[0]: None})
    conda.plays("installed", {new[0]: None, old[0]: old[1]})

    told = await house.text(CondaTool, "install", "lamp>=1", channels=["bioconda", "conda-forge"])
    back = await house.text(CondaTool, "rollback")

    assert told.splitlines()[1:] == ["added: lamp 1.0", "changed: shelf 1.0 → 2.0"]
    assert back.splitlines()[1:] == ["removed: lamp 1.0", "changed: shelf 2.0 → 1.0"]
    place = ["--prefix", str(prefix)]
    assert conda.calls == [
        ["install", "--yes", *place, "--channel", "bioconda", "--channel", "conda-forge", "lamp>=1"],
        ["remove", "--yes", "--force", *place, "lamp"],
        ["install", "--yes", "--no-deps", *place, "--channel", "conda-forge", "shelf=1.0=py_0"],
    ]


async def test_conflict_is_told_in_a_sentence(house: Workspace, conda: Player) -> None:
    conda.plays(LIBMAMBA, exit_code=1)

    output = await house.run(CondaTool, "install", "lamp", "desk")

    assert output.is_error
    assert "no versions fit together: lamp 1.0 needs shelf>=1,<2.0a0, desk needs shelf>=2" in output.text


async def test_conda_makes_an_environment_from_a_file(house: Workspace, conda: Player) -> None:
    text = "channels:\n  - https://channels.example.org/x\ndependencies:\n  - python=3.9\n  - pip:\n    - lamp\n"
    (house.root / "environment.yml").write_text(text)
    made = record(house.root / "old", "python", "3.9.0")
    conda.plays("done", {made[0]: made[1]})
    args = CondaInput(operation="create", environment="old", file="environment.yml")
    plan = CondaTool(house.setup).plan(args, house.call_context())

    told = await house.text(CondaTool, "create", environment="old", file="environment.yml")

    assert {"channels.example.org", "files.pythonhosted.org"} <= set(plan.hosts)
    assert plan.named == ("- https://channels.example.org/x",)
    assert told.splitlines()[1:] == [f"made: {house.root}/old", "added: python 3.9.0"]
    file = str(house.root / "environment.yml")
    assert conda.calls == [["env", "create", "--prefix", f"{house.root}/old", "--file", file]]


async def test_conda_packages_are_read_without_conda(house: Workspace) -> None:
    listed = await house.with_variables(PATH="").text(CondaTool, "list")

    assert listed.splitlines() == [f"1 packages in {house.root}/env (conda, no Python yet)", "shelf 1.0 py_0"]
    assert "channel: conda-forge" in await house.text(CondaTool, "show", "shelf")
    assert await house.text(CondaTool, "freeze") == "shelf=1.0=py_0"


async def test_conda_environments_are_listed_if_they_exist(
    house: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".conda").mkdir(parents=True)
    (tmp_path / "home" / ".conda" / "environments.txt").write_text(f"{house.root}/env\n{tmp_path}/gone\n")

    assert await house.text(CondaTool, "environments") == f"{house.root}/env"


async def test_key_in_the_address_of_a_channel_is_not_shown(house: Workspace) -> None:
    file, text = record(house.root / "env", "shelf", "1.0")
    file.write_text(text.replace('"conda-forge"', '"https://c.example.org/t/secret-key/x"'))

    assert "secret-key" not in await house.text(CondaTool, "show", "shelf")


async def test_conda_runs_a_program_and_streams_its_output(house: Workspace, conda: Player) -> None:
    conda.plays("accuracy 0.9", exit_code=2)

    output = await house.run(CondaTool, "run", command=["python", "-c", "print()"])

    assert output.text == "accuracy 0.9\n[exit code 2]"
    assert conda.calls == [["run", "--no-capture-output", "--prefix", f"{house.root}/env", "python", "-c", "print()"]]


async def test_environment_of_another_kind_is_refused(house: Workspace) -> None:
    (house.root / ".venv" / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (house.root / ".venv" / "pyvenv.cfg").touch()

    with pytest.raises(ToolError, match="is not a conda environment"):
        await house.run(CondaTool, "install", "lamp", environment=".venv")


def with_mirrors(house: Workspace, **settings: object) -> Workspace:
    mirrors = ("https://one.example.org/cloud", "https://two.example.org/cloud/")
    return replace(
        house,
        setup=replace(house.setup, settings=PackageSettings.model_validate({"channel_mirrors": mirrors, **settings})),
    )


UNREACHED = "CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://conda.anaconda.org/bioconda/repodata.json>"


async def test_unreached_channels_are_replaced_by_mirrors_in_turn(house: Workspace, conda: Player) -> None:
    lamp = record(house.root / "env", "lamp", "1.0")
    conda.plays(UNREACHED, exit_code=1)
    conda.plays(UNREACHED, exit_code=1)
    conda.plays("done", {lamp[0]: lamp[1]})
    folder = with_mirrors(house, channels=("https://lab.example.org/x",))
    args = CondaInput(operation="install", packages=("lamp",), channels=("bioconda",))

    asked = await CondaTool(folder.setup).describe(args, folder.call_context())
    told = await folder.text(CondaTool, "install", "lamp", channels=["bioconda"])

    assert "(where that is not reached: one.example.org, two.example.org)" in asked
    assert "added: lamp 1.0" in told
    assert told.count("not reached: what") == 2
    channels = [
        [word for word in call if "https" in word or word in ("bioconda", "--override-channels")]
        for call in conda.calls
    ]
    assert channels == [
        ["bioconda", "https://lab.example.org/x"],
        ["--override-channels", "https://one.example.org/cloud/bioconda", "https://lab.example.org/x"],
        ["--override-channels", "https://two.example.org/cloud/bioconda", "https://lab.example.org/x"],
    ]


async def test_channel_mirror_is_not_asked_for_missing_packages(house: Workspace, conda: Player) -> None:
    conda.plays("PackagesNotFoundError: not available from current channels:\n\n  - lamp\n", exit_code=1)

    await with_mirrors(house).run(CondaTool, "install", "lamp", channels=["bioconda"])

    assert len(conda.calls) == 1


async def test_channel_mirror_needs_named_channels(house: Workspace, conda: Player) -> None:
    conda.plays(UNREACHED, exit_code=1)

    output = await with_mirrors(house).run(CondaTool, "install", "lamp")

    assert output.is_error
    assert len(conda.calls) == 1


async def test_package_from_a_channel_is_restored_from_its_mirror(house: Workspace, conda: Player) -> None:
    old, new = (record(house.root / "env", "shelf", one) for one in ("1.0", "2.0"))
    noted = old[1].replace('"conda-forge"', '"https://conda.anaconda.org/conda-forge/linux-64"')
    old[0].write_text(noted)
    conda.plays("done", {old[0]: None, new[0]: new[1]})
    conda.plays(UNREACHED, exit_code=1)
    conda.plays("installed", {new[0]: None, old[0]: noted})
    folder = with_mirrors(house)

    await folder.text(CondaTool, "install", "shelf>=2", channels=["conda-forge"])
    back = await folder.text(CondaTool, "rollback")

    assert "changed: shelf 2.0 → 1.0" in back
    assert conda.calls[1][5:] == ["--channel", "https://conda.anaconda.org/conda-forge/linux-64", "shelf=1.0=py_0"]
    place = "https://one.example.org/cloud/conda-forge/linux-64"
    assert conda.calls[2][5:] == ["--override-channels", "--channel", place, "shelf=1.0=py_0"]


@pytest.mark.skipif(not any(map(shutil.which, PROGRAMS["conda"])), reason="no conda is installed")
async def test_real_conda_makes_an_empty_environment(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    program = next(found for name in PROGRAMS["conda"] if (found := shutil.which(name)))
    folder = workspace.with_variables(PATH=f"{Path(program).parent}:/usr/bin:/bin", CONDA_OFFLINE="true")

    output = await folder.run(CondaTool, "create", "nosuch-package", environment="env")

    assert output.is_error


async def test_conda_settings_of_an_environment_are_named(house: Workspace) -> None:
    (house.root / "env" / ".condarc").write_text("# ours\nchannels:\n  - https://k:s@evil.example.org/x\n")

    plan = CondaTool(house.setup).plan(CondaInput(operation="install", packages=("lamp",)), house.call_context())

    assert plan.named == (f"{house.root}/env/.condarc sets channels: - https://evil.example.org/x",)
    assert "evil.example.org" in plan.hosts


@pytest.mark.parametrize("operation", ["install", "create"])
async def test_host_of_a_packages_channel_is_named(house: Workspace, operation: str) -> None:
    settings = PackageSettings(channels=("https://lab.example.org/x",))
    tool = CondaTool(replace(house.setup, settings=settings))
    made = "new" if operation == "create" else None
    args = CondaInput.model_validate({"operation": operation, "packages": ["defaults::lamp"], "environment": made})

    assert tool.plan(args, house.call_context()).hosts == ("lab.example.org", "repo.anaconda.com")


async def test_conda_file_without_channels_uses_condas_defaults(house: Workspace) -> None:
    (house.root / "environment.yml").write_text("dependencies:\n  - lamp\n")
    settings = PackageSettings(channels=("https://lab.example.org/x",), channel_alias="https://mirror.example.org")
    args = CondaInput(operation="create", environment="old", file="environment.yml")

    plan = CondaTool(replace(house.setup, settings=settings)).plan(args, house.call_context())

    assert plan.hosts == ("conda.anaconda.org", "repo.anaconda.com")
