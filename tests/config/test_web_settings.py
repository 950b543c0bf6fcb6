from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from panpan.capabilities.web.settings import WebSettings
from panpan.config.known_secrets import known_secrets
from tests.fakes.settings import settings_with


def test_domains_are_normalised_hosts() -> None:
    web = WebSettings(allowed_domains=("ArXiv.org.", "*.python.org"), blocked_domains=("bücher.de",))

    assert web.allowed_domains == ("arxiv.org", "python.org")
    assert web.blocked_domains == ("xn--bcher-kva.de",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"allowed_domains": ("https://arxiv.org",)},
        {"blocked_domains": ("arxiv.org:443",)},
        {"blocked_domains": ("",)},
        {"search": "google"},
        {"searxng_url": "file:///x"},
        {"searxng_url": "http://me:secret@searx.org"},
        {"user_agent": "a\r\nHost: b"},
        {"user_agent": ""},
        {"proxy": "proxy.example.org"},
        {"private_hosts": ("http://x/",)},
        {"private_hosts": ("10.0.0.1/8",)},
        {"private_hosts": ("nas:80",)},
        {"timeout_s": 0.0},
        {"pace_s": -1.0},
        {"pages": 0},
    ],
)
def test_meaningless_web_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        WebSettings(**wrong)


def test_proxy_is_a_secret_with_its_password() -> None:
    settings = settings_with(WebSettings(proxy=SecretStr("http://ada:p%40ss@proxy.example.org:3128")))

    assert {"http://ada:p%40ss@proxy.example.org:3128", "p@ss"} <= known_secrets({}, settings)
    assert "p%40ss" not in repr(settings)


def test_search_engine_keys_are_secrets_under_any_variable() -> None:
    settings = settings_with(WebSettings(exa_key_env="MINE"))

    assert "v4lue" in known_secrets({"MINE": "v4lue"}, settings)
