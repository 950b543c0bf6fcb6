import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from panpan.capabilities.web.cli import web as command
from panpan.errors import ConfigError


def run(home: Path, *arguments: str, **variables: str | None) -> tuple[int, str]:
    env = {"PANPAN_HOME": str(home), "DISPLAY": None, "WAYLAND_DISPLAY": None, **variables}
    done = CliRunner().invoke(command, arguments, env=env, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.output


def keep(home: Path, site: str) -> None:
    (home / "logins").mkdir(parents=True, exist_ok=True)
    (home / f"logins/{site}.json").write_text(json.dumps({"cookies": [], "origins": []}))


@pytest.mark.parametrize("site", ["example.org", "www.Example.org", "https://www.example.org/account?x=1"])
def test_web_logout_takes_the_site_or_any_of_its_pages(tmp_path: Path, site: str) -> None:
    keep(tmp_path, "example.org")

    code, said = run(tmp_path, "logout", site)

    assert (code, said) == (0, "the log-in to example.org is forgotten\n")


def test_web_logins_are_listed_and_forgotten_one_by_one(tmp_path: Path) -> None:
    keep(tmp_path, "example.org")
    keep(tmp_path, "other.net")

    _, before = run(tmp_path, "logins")
    code, said = run(tmp_path, "logout", "www.example.org")
    _, after = run(tmp_path, "logins")

    assert before.splitlines() == ["example.org", "other.net"]
    assert (code, said) == (0, "the log-in to example.org is forgotten\n")
    assert after.splitlines() == ["other.net"]


def test_web_logout_forgets_all_at_once(tmp_path: Path) -> None:
    keep(tmp_path, "example.org")
    keep(tmp_path, "other.net")

    code, _ = run(tmp_path, "logout", "--all")

    assert code == 0
    assert list((tmp_path / "logins").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("logout",), "name one site"), (("logout", "a.org", "--all"), "name one site"),
        (("logout", "a.org"), "no log-in to a.org"), (("logout", "../x"), "is not a site"),
    ],
)  # fmt: skip
def test_web_logout_reports_an_impossible_site(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run(tmp_path, *arguments)


@pytest.mark.parametrize(
    ("url", "variables", "said"),
    [
        ("https://example.org/", {}, "no display"),
        ("https://example.org/", {"DISPLAY": ":0"}, "run it in a terminal"),
        ("example.org", {}, "no display"),
        ("127.0.0.1", {}, "not a public address"),
        ("http://localhost/", {"DISPLAY": ":0"}, "in this machine"),
    ],
    ids=["no-display", "no-terminal", "site-alone", "loopback", "localhost"],
)
def test_web_login_that_cannot_be_made_is_reported(
    tmp_path: Path, url: str, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        run(tmp_path, "login", url, **variables)


def test_web_login_is_refused_if_windows_are_disabled(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("[web]\nlogin_window = false\n")

    with pytest.raises(ConfigError, match="switched off"):
        run(tmp_path, "login", "https://example.org/", DISPLAY=":0")
