"""Sources of packages, and the other demands of a requirements file."""

from pathlib import Path

import pytest

from panpan.capabilities.packages.python_requirements import read_requirement_file
from panpan.config.settings import PackageSettings
from panpan.python_environments.sources import UNKNOWN_HOST, conda_source, pip_source, pixi_source, without_login
from panpan.python_environments.uv_sources import uv_source
from panpan.system.files.paths import PathResolver


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


MIRROR = PackageSettings(index="https://mirror.example.org/simple", extra_indexes=("https://more.example.org/simple",))


def test_mirror_of_the_settings_replaces_the_index(tmp_path: Path) -> None:
    of_pip = pip_source(MIRROR, {"PIP_INDEX_URL": "https://other.example.org"}, tmp_path)
    of_uv = uv_source(MIRROR, {}, tmp_path)

    assert of_pip.hosts == of_uv.hosts == ("mirror.example.org", "more.example.org")
    assert of_pip.arguments[:2] == ("--index-url", "https://mirror.example.org/simple")
    assert of_uv.arguments == of_pip.arguments


def test_index_set_up_elsewhere_is_named_as_a_host(tmp_path: Path) -> None:
    (tmp_path / "home" / ".config" / "pip").mkdir(parents=True)
    (tmp_path / "home" / ".config" / "pip" / "pip.conf").write_text(
        "[global]\nextra-index-url = https://k:s@in.example.org/x\n"
    )

    hosts = pip_source(PackageSettings(), {"PIP_INDEX_URL": "https://var.example.org/simple"}, tmp_path).hosts

    assert "in.example.org" in hosts
    assert "var.example.org" in hosts


@pytest.mark.parametrize("settings", [PackageSettings(), MIRROR])
def test_local_folders_set_up_by_the_user_are_named(settings: PackageSettings, tmp_path: Path) -> None:
    (tmp_path / "home" / ".pip").mkdir(parents=True)
    file = tmp_path / "home" / ".pip" / "pip.conf"
    file.write_text(
        "[global]\nfind-links = /opt/wheels https://links.example.org/x\nextra-index-url = file:///opt/simple\n"
    )

    source = pip_source(settings, {"PIP_FIND_LINKS": "/more/wheels"}, tmp_path)

    asks_indexes = settings.index is None
    assert source.named == (
        f"/opt/wheels, which {file} names",
        *([f"file:///opt/simple, which {file} names"] if asks_indexes else []),
        "/more/wheels, which PIP_FIND_LINKS names",
    )
    assert "links.example.org" in source.hosts


def test_index_of_an_environment_or_project_is_named(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[install]\nindex-url = https://evil.example.org/simple\n")
    (tmp_path / "pyproject.toml").write_text('[[tool.uv.index]]\nurl = "https://wheels.example.org/cu121"\n')

    of_pip, of_uv = pip_source(PackageSettings(), {}, tmp_path), uv_source(PackageSettings(), {}, tmp_path)

    assert of_pip.named == (f"{tmp_path}/pip.conf sets index-url = https://evil.example.org/simple",)
    assert "evil.example.org" in of_pip.hosts
    assert of_uv.named == (f"{tmp_path}/pyproject.toml names the index https://wheels.example.org/cu121",)
    assert "wheels.example.org" in of_uv.hosts


def test_channels_of_a_call_precede_those_of_the_settings() -> None:
    settings = PackageSettings(channels=("https://channels.example.org/x", "conda-forge"))

    source = conda_source(settings, ["bioconda"])

    assert source.arguments == (
        *("--channel", "bioconda"),
        *("--channel", "https://channels.example.org/x"),
        *("--channel", "conda-forge"),
    )
    assert source.hosts == ("conda.anaconda.org", "channels.example.org")


def test_channel_names_follow_the_alias_and_addresses_do_not() -> None:
    channels = ("conda-forge", "defaults", "https://channels.example.org/x", "file:///srv/channel")
    settings = PackageSettings(channels=channels, channel_alias="https://mirror.example.org/cloud")

    source = conda_source(settings, [])

    assert source.arguments[0] == "--override-channels"
    assert source.arguments[2::2] == ("https://mirror.example.org/cloud/conda-forge", *channels[1:])
    assert source.hosts == ("mirror.example.org", "repo.anaconda.com", "channels.example.org")
    assert pixi_source(settings).arguments[1::2] == channels


def test_address_is_shown_without_its_key() -> None:
    assert without_login("https://user:key@example.org/a@b") == "https://example.org/a@b"


def test_requirement_file_names_demands_beyond_an_index(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "numpy>=2  # fine\n--extra-index-url https://key@wheels.example.org/cu121\n-r more/base.txt\n"
        "lamp @ git+https://code.example.org/lamp@v1\n-e ./lib\n./desk.whl\ntorch==2.1 \\\n    --hash=sha256:ab\n"
    )
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "base.txt").write_text("-r ../requirements.txt\n-e ../src\n")

    found = read_requirement_file("requirements.txt", PathResolver(tmp_path))

    assert found.named == (
        "--extra-index-url https://wheels.example.org/cu121",
        "lamp @ git+https://code.example.org/lamp@v1",
        "-e ./lib",
        "./desk.whl",
        "-e ../src",
    )
    assert found.hosts == ("wheels.example.org", "code.example.org")
    assert len(found.digests) == 2
    assert f"{tmp_path}/more/base.txt" in found.reads


def test_unreadable_requirement_file_may_ask_any_host(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "requirements.txt").write_text("numpy")

    found = read_requirement_file("../requirements.txt", PathResolver(tmp_path / "work"))

    assert found.hosts == (UNKNOWN_HOST,)
    assert "could not be looked at" in found.named[0]


def test_environment_file_with_pip_packages_is_known(tmp_path: Path) -> None:
    text = "channels:\n  - https://channels.example.org/x\ndependencies:\n  - numpy\n  - pip:\n    - lamp\n"
    (tmp_path / "environment.yml").write_text(text)

    found = read_requirement_file("environment.yml", PathResolver(tmp_path))

    assert found.has_pip
    assert found.named == ("- https://channels.example.org/x",)
    assert found.hosts == ("channels.example.org",)


EVIL = "--index-url https://evil.example.org/simple"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(f"# a comment \\\n{EVIL}\n".encode(), id="behind a comment that seems to go on"),
        pytest.param(f"numpy \\\n# a comment \\\n{EVIL}\n".encode(), id="behind a comment in what goes on"),
        pytest.param(f"numpy\x0b{EVIL}\n".encode(), id="behind a vertical tab"),
        pytest.param(EVIL.encode("utf-16"), id="in UTF-16"),
        pytest.param(f"# coding: utf-7\n{EVIL}".replace("-", "+AC0-").encode(), id="in UTF-7 that it does not say"),
        pytest.param(b"# coding: utf-7\n+AC0ALQ-index-url https:+AC8ALw-evil.example.org", id="in UTF-7"),
        pytest.param(b"\xef\xbb\xbf" + EVIL.encode(), id="behind a mark of UTF-8"),
    ],
)
def test_option_is_found_in_any_spelling(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "requirements.txt").write_bytes(data)

    found = read_requirement_file("requirements.txt", PathResolver(tmp_path))

    assert found.named
    assert found.hosts in (("evil.example.org",), (UNKNOWN_HOST,))


@pytest.mark.parametrize("line", ["lib/evil", "evil.tar.gz", "evil.whl; python_version > '3'", "x @ ${PLACE}", "${X}"])
def test_possible_project_file_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"{line}\n")

    assert read_requirement_file("requirements.txt", PathResolver(tmp_path)).named == (line,)


@pytest.mark.parametrize(
    "line", ["numpy", "numpy[all]>=2,<3 ; python_version > '3'", "numpy==2 --hash=sha256:ab --hash=sha256:cd"]
)
def test_plain_requirement_is_not_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"{line}  # why\n")

    assert read_requirement_file("requirements.txt", PathResolver(tmp_path)).named == ()


def test_pip_settings_of_an_environment_are_all_named(tmp_path: Path) -> None:
    text = "[global]\n--Extra_Index_Url = https://k:s@evil.example.org/x\n[install]\ntarget = /elsewhere\n"
    (tmp_path / "pip.conf").write_text(text)

    for settings in (PackageSettings(), MIRROR):
        source = pip_source(settings, {}, tmp_path)

        assert source.named == (
            f"{tmp_path}/pip.conf sets extra-index-url = https://evil.example.org/x",
            f"{tmp_path}/pip.conf sets target = /elsewhere",
        )
        assert "evil.example.org" in source.hosts


def test_unreadable_pip_settings_may_name_any_host(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("index-url = https://evil.example.org\n")

    source = pip_source(PackageSettings(), {}, tmp_path)

    assert source.named == (f"what {tmp_path}/pip.conf sets could not be looked at",)
    assert UNKNOWN_HOST in source.hosts


@pytest.mark.parametrize(
    "line",
    [
        "- -r more.txt",
        "- ./lib",
        '- "https:\\u002f\\u002fevil.example.org/x"',
        "- lamp @ ${X}",
        "prefix: /elsewhere",
        "- *a",
    ],
)
def test_conda_line_beyond_a_name_is_named(tmp_path: Path, line: str) -> None:
    text = f"name: study\ndependencies:\n  - conda-forge::numpy>=2,<3\n  - python=3.9.*\n  - pip:\n    {line}\n"
    (tmp_path / "environment.yml").write_text(text)

    assert read_requirement_file("environment.yml", PathResolver(tmp_path)).named == (line,)
