import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.web.browser.browser import SavedLogins
from panpan.errors import ToolError
from panpan.system.web.domain_lists import site_of


def storage(*domains: str, origins: tuple[str, ...] = ()) -> Mapping[str, Any]:
    cookies = [{"name": "id", "value": domain, "domain": domain, "path": "/"} for domain in domains]
    return {"cookies": cookies, "origins": [{"origin": one, "localStorage": []} for one in origins]}


@pytest.mark.parametrize(
    ("host", "is_used"),
    [
        ("example.org", True), ("www.example.org", True), ("papers.example.org", True), ("org", False),
        ("notexample.org", False), ("example.org.evil.net", False), ("example.net", False),
    ],
)  # fmt: skip
def test_login_is_used_for_its_own_site_only(tmp_path: Path, host: str, is_used: bool) -> None:
    logins = SavedLogins(tmp_path / "logins")
    logins.keep("example.org", storage("example.org"))

    assert (logins.storage_for(host) is not None) == is_used


def test_login_keeps_only_data_of_its_site(tmp_path: Path) -> None:
    logins = SavedLogins(tmp_path / "logins")
    left = storage(
        ".example.org", "papers.example.org", "sso.example.org", "accounts.google.com",
        origins=("https://papers.example.org", "https://accounts.google.com"),
    )  # fmt: skip

    logins.keep("papers.example.org", left)

    kept = logins.storage_for("papers.example.org")
    assert kept is not None
    assert [cookie["domain"] for cookie in kept["cookies"]] == [".example.org", "papers.example.org"]
    assert [origin["origin"] for origin in kept["origins"]] == ["https://papers.example.org"]
    assert logins.storage_for("example.org") is None


def test_login_is_readable_by_the_user_only(tmp_path: Path) -> None:
    logins = SavedLogins(tmp_path / "logins")

    logins.keep("example.org", storage("example.org"))

    assert stat.S_IMODE((tmp_path / "logins").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "logins/example.org.json").stat().st_mode) == 0o600


def test_forgotten_login_is_gone(tmp_path: Path) -> None:
    logins = SavedLogins(tmp_path / "logins")
    logins.keep("example.org", storage("example.org"))
    logins.keep("other.net", storage("other.net"))

    was_there = logins.forget("example.org")

    assert was_there
    assert not logins.forget("example.org")
    assert logins.sites() == ["other.net"]
    assert logins.storage_for("example.org") is None


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"cookies": 3, "origins": []}', '{"cookies": [{}], "origins": []}', "\x00", "[" * 100_000],
)
def test_damaged_login_is_reported_and_not_used(tmp_path: Path, content: str) -> None:
    (tmp_path / "example.org.json").write_text(content)

    with pytest.raises(ToolError, match=r"damaged; `panpan web logout example\.org`"):
        SavedLogins(tmp_path).storage_for("example.org")


def test_login_that_cannot_be_forgotten_is_reported(tmp_path: Path) -> None:
    (tmp_path / "example.org.json").mkdir()

    with pytest.raises(ToolError, match=r"the log-in to example\.org is still there"):
        SavedLogins(tmp_path).forget("example.org")


@pytest.mark.parametrize("site", ["../settings", "a/b", "", "A", "ä.org", "a\n", "\x00", "a" * 254])
def test_name_that_is_no_site_names_no_file(tmp_path: Path, site: str) -> None:
    with pytest.raises(ToolError, match="is not a site"):
        SavedLogins(tmp_path).forget(site)


def test_www_is_the_same_site() -> None:
    assert [site_of(host) for host in ("www.example.org", "example.org", "www.org", "93.184.216.34")] == [
        "example.org", "example.org", "www.org", "93.184.216.34",
    ]  # fmt: skip
