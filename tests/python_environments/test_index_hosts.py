from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.config.settings import PackageSettings
from panpan.python_environments.uv_sources import USUAL_HOSTS, Domains, domains_of
from panpan.system.sandbox.domain_proxy import DomainGrants
from panpan.types.permission import PACKAGE_INDEXES


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def own(packages: PackageSettings | None = None, **variables: str) -> set[str]:
    return set(domains_of([PACKAGE_INDEXES], packages or PackageSettings(), variables).own)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_preset_stands_for_the_usual_indexes_beside_named_hosts() -> None:
    domains = domains_of(["a.org", PACKAGE_INDEXES], PackageSettings(), {})

    assert domains.named == ("a.org", *USUAL_HOSTS)
    assert {"pypi.org", "files.pythonhosted.org", "conda.anaconda.org", "registry.npmjs.org"} <= set(USUAL_HOSTS)


def test_setup_is_not_read_without_the_preset(home: Path) -> None:
    write(home / ".npmrc", "registry=https://npm.lab/\n")

    assert domains_of(["a.org"], PackageSettings(), {"PIP_INDEX_URL": "https://b.org"}) == Domains(["a.org"])


def test_preset_covers_the_indexes_of_the_settings() -> None:
    packages = PackageSettings(
        index="https://index.lab/simple",
        mirrors=("https://mirror.lab:8443/simple",),
        extra_indexes=("http://127.0.0.1:3141/root",),
        channels=("https://channel.lab/main", "conda-forge"),
        channel_alias="https://alias.lab",
        channel_mirrors=("https://other.lab",),
    )

    hosts = {"index.lab", "mirror.lab:8443", "127.0.0.1:3141", "channel.lab", "alias.lab", "other.lab"}
    assert own(packages) - set(USUAL_HOSTS) == hosts


@pytest.mark.parametrize(
    ("variables", "host"),
    [
        ({"PIP_INDEX_URL": "https://user:key@pip.lab:444/simple"}, "pip.lab:444"),
        ({"PIP_EXTRA_INDEX_URL": "https://pip.lab/simple"}, "pip.lab"),
        ({"PIP_FIND_LINKS": "/wheels https://pip.lab/links"}, "pip.lab"),
        ({"UV_INDEX_URL": "https://uv.lab"}, "uv.lab"),
        ({"UV_DEFAULT_INDEX": "https://uv.lab"}, "uv.lab"),
        ({"UV_INDEX": "lab=https://uv.lab"}, "uv.lab"),
        ({"NPM_CONFIG_REGISTRY": "https://npm.lab/"}, "npm.lab"),
        ({"npm_config_registry": "http://[fd00::5]:4873"}, "[fd00::5]:4873"),
    ],
)
def test_preset_covers_the_indexes_of_variables(variables: dict[str, str], host: str) -> None:
    assert host in own(**variables)


@pytest.mark.parametrize(
    ("file", "text", "host"),
    [
        (".config/pip/pip.conf", "[global]\nindex-url = https://pip.lab/simple\n", "pip.lab"),
        (".config/uv/uv.toml", '[[index]]\nurl = "https://uv.lab/simple"\n', "uv.lab"),
        (".npmrc", "registry=https://npm.lab/\n//npm.lab/:_authToken=secret\n", "npm.lab"),
        (".npmrc", "@lab:registry = https://npm.lab/\n", "npm.lab"),
        (".condarc", "channels:\n  - https://conda.lab/main\n", "conda.lab"),
        (".cargo/config.toml", '[registries.lab]\nindex = "sparse+https://cargo.lab/index/"\n', "cargo.lab"),
        (".cargo/config.toml", '[source.lab]\nregistry = "https://cargo.lab/index"\n', "cargo.lab"),
    ],
)
def test_preset_covers_the_indexes_of_files_in_the_home(home: Path, file: str, text: str, host: str) -> None:
    write(home / file, text)

    assert host in own()


def test_files_of_a_project_name_no_index_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / ".npmrc", "registry=https://evil.lab/\n")
    write(tmp_path / "pip.conf", "[global]\nindex-url = https://evil.lab\n")
    write(tmp_path / "uv.toml", '[[index]]\nurl = "https://evil.lab"\n')
    write(tmp_path / ".condarc", "channels: [https://evil.lab]\n")
    write(tmp_path / ".cargo" / "config.toml", '[registries.x]\nindex = "https://evil.lab"\n')

    assert not any("evil" in host for host in own())


def test_indexes_that_are_folders_need_no_host() -> None:
    assert "file" not in "".join(own(PIP_INDEX_URL="file:///opt/pypi/simple", PIP_FIND_LINKS="/opt/wheels"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text() | st.text().map("https://{}/simple".format))
def test_grants_of_any_index_setting_are_readable(home: Path, text: str) -> None:
    domains = domains_of([PACKAGE_INDEXES], PackageSettings(), {"PIP_INDEX_URL": text, "UV_INDEX": text})

    DomainGrants(domains.named, domains.own)
