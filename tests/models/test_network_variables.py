import os
import ssl
from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.models.network_variables import blaming_variables, proxy_for


@pytest.fixture(autouse=True)
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{kind}_proxy", raising=False)
        monkeypatch.delenv(f"{kind}_PROXY".upper(), raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def place_for(url: str) -> str | None:
    proxy = proxy_for(url)
    return proxy and proxy.place


def test_proxy_is_named_with_its_variable_and_no_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://every:1")
    monkeypatch.setenv("HTTPS_PROXY", "ada:p@ss@large:2")
    monkeypatch.setenv("https_proxy", "http://ada:pass@small:3/")

    https, http = proxy_for("https://a.example"), proxy_for("http://a.example")

    assert https is not None
    assert (https.place, https.address, https.url) == ("https_proxy", "http://small:3/", "http://ada:pass@small:3/")
    assert "pass" not in repr(https)
    assert http is not None
    assert (http.place, http.address) == ("ALL_PROXY", "http://every:1")

    monkeypatch.delenv("https_proxy")
    https = proxy_for("https://a.example")
    assert https is not None
    assert (https.place, https.address, https.url) == ("HTTPS_PROXY", "large:2", "http://ada:p@ss@large:2")


def test_proxy_is_none_without_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert place_for("https://a.example") is None

    monkeypatch.setenv("HTTP_PROXY", "http://h:1")
    assert place_for("https://a.example") is None


@pytest.mark.parametrize(
    ("exempt", "url", "is_exempt"),
    [
        ("*", "https://a.example", True),
        ("b.example, *", "https://a.example", True),
        ("a.example", "https://a.example:8443/v1", True),
        ("example", "https://a.example", True),
        (".example", "https://a.example", True),
        ("*.example", "https://A.Example", True),
        ("https://a.example", "https://a.example", True),
        ("ample", "https://a.example", False),
        ("b.example,", "https://a.example", False),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("::1", "https://[::1]:1", True),
        ("[fd00::1]", "https://[fd00::1]", True),
        ("10.1.2.3/99,[", "https://10.1.2.3", False),
    ],
)
def test_host_without_a_proxy_goes_past_it(
    monkeypatch: pytest.MonkeyPatch, exempt: str, url: str, is_exempt: bool
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://h:1")
    monkeypatch.setenv("NO_PROXY", exempt)

    assert (proxy_for(url) is None) == is_exempt


def test_wrong_proxy_that_is_not_used_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "ftp://h")
    monkeypatch.setenv("NO_PROXY", "*")

    with blaming_variables():
        pass


def test_damaged_certificates_are_blamed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    damaged = tmp_path / "ca.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(damaged))

    with (
        pytest.raises(ConfigError, match=r"^SSL_CERT_FILE cannot be used .*; correct or unset it"),
        blaming_variables(),
    ):
        ssl.create_default_context(cafile=damaged)


def test_certificates_in_a_pipe_are_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pipe = tmp_path / "ca"
    os.mkfifo(pipe)
    monkeypatch.setenv("SSL_CERT_FILE", str(pipe))

    with blaming_variables():  # would wait for a writer if it read
        pass


def test_blame_needs_a_set_variable() -> None:
    with pytest.raises(ssl.SSLError), blaming_variables():
        raise ssl.SSLError("of something else")
