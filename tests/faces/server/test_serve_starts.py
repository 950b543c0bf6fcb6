"""Starts of `panpan serve`: nothing can be reached that a token or TLS does not protect."""

import os
import socket
import ssl
import stat
import subprocess
from pathlib import Path

import click
import httpx2
import pytest

from panpan.cli.main import cli
from panpan.cli_kit.serving import HttpPlace
from panpan.errors import ConfigError
from tests.capabilities.mcp.place import Place
from tests.faces.server.served import TOKEN, server_process

HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "every address of this machine"),
        (["--host", "::"], "every address of this machine"),
        (["--host", "::ffff:0.0.0.0"], "every address of this machine"),
        (["--host", "192.0.2.1"], "use --tls-cert and --tls-key, or --behind-proxy"),
        (["--host", "no host"], "is not known"),
        (["--host", "192.0.2.1", "--behind-proxy", "http://panpan.example.org"], "--behind-proxy takes"),
        (["--behind-proxy", "https://user@panpan.example.org"], "--behind-proxy takes"),
        (["--behind-proxy", "https://panpan.example.org/path"], "--behind-proxy takes"),
        (["--behind-proxy", "https://"], "--behind-proxy takes"),
        (["--tls-cert", __file__], "go together"),
        (["--tls-cert", __file__, "--tls-key", __file__], "a PEM certificate with its key"),
        (["--socket", "s", "--port", "1"], "--socket goes without"),
        (["no/such/folder"], "is not a folder"),
    ],
)
def test_start_that_would_be_open_is_refused(monkeypatch: pytest.MonkeyPatch, words: list[str], said: str) -> None:
    monkeypatch.setenv("PANPAN_SERVER_TOKEN", TOKEN)
    with pytest.raises((ConfigError, click.UsageError), match=said):
        cli(["serve", *words], standalone_mode=False)


@pytest.mark.parametrize("token", ["short", "with a blank in it", "with-\u00e9-in-it-0123456789"])
def test_token_that_can_be_guessed_or_sent_by_nobody_is_refused(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("PANPAN_SERVER_TOKEN", token)
    with pytest.raises(ConfigError, match="is no token"):
        cli(["serve"], standalone_mode=False)


def test_port_in_use_is_refused_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = HttpPlace("127.0.0.1", other.getsockname()[1], token=TOKEN, variable="PANPAN_SERVER_TOKEN")
        with pytest.raises(ConfigError, match="in use; choose another --port"):
            place.listen()


def test_made_token_is_shown_once_and_lets_in(place: Place) -> None:
    with server_process(place, "--access-log", PANPAN_SERVER_TOKEN="") as (process, shown):
        url, _, token = shown.partition("/#")
        answer = httpx2.get(f"{url}/v1/health", headers={"Authorization": f"Bearer {token}"})
        process.terminate()
        out, errors = process.communicate(timeout=60)

    assert len(token) >= 43
    assert answer.status_code == 200
    assert errors == "panpan: GET /v1/health 200\n"
    assert out is None


def test_own_token_is_in_no_output_and_no_command(place: Place) -> None:
    use = ("Bash", {"command": "env", "description": "Look"})
    with server_process(place, "--access-log", uses=[use], options=["--allowedTools", "Bash"]) as (process, shown):
        with httpx2.Client(base_url=shown, headers=HEADERS, timeout=60, trust_env=False) as http:
            path = f"/v1/sessions/{http.post('/v1/sessions', json={}).json()['session']['id']}"
            http.post(f"{path}/prompts", json={"parts": [{"type": "text", "text": "go"}]})
            http.get(f"{path}/wait")
            messages = http.get(f"{path}/messages").text
            config = http.get(f"{path}/config").text
        process.terminate()
        _, errors = process.communicate(timeout=60)

    assert "PATH=" in messages
    assert not [text for text in (shown, messages, config, errors) if TOKEN in text]


def test_socket_is_for_the_user_alone_and_needs_no_token(place: Place) -> None:
    path = place.folder / "run" / "panpan.sock"
    path.parent.mkdir(mode=0o700)
    with server_process(place, "--socket", str(path)) as (process, shown):
        transport = httpx2.HTTPTransport(uds=str(path))
        with httpx2.Client(transport=transport, base_url="http://any.name") as http:
            answer = http.get("/v1/health")
            of_a_page = http.get("/v1/health", headers={"Origin": "http://any.name"})
        mode = stat.S_IMODE(path.stat().st_mode)
        process.terminate()
        process.wait(60)

    assert shown == str(path)
    assert (answer.status_code, of_a_page.status_code) == (200, 403)
    assert mode & 0o077 == 0


def test_server_with_a_certificate_speaks_tls_alone(place: Place) -> None:
    cert, key = place.folder / "cert.pem", place.folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ed25519",
            "-nodes",
            "-keyout",
            key,
            "-out",
            cert,
            "-days",
            "1",
            *subject,
        ],
        check=True,
        capture_output=True,
    )
    with server_process(place, "--host", "localhost", "--tls-cert", str(cert), "--tls-key", str(key)) as (_, url):
        context = ssl.create_default_context(cafile=os.fspath(cert))
        own = {**HEADERS, "Origin": url}
        answer = httpx2.get(f"{url}/v1/health", headers=own, verify=context)
        with pytest.raises(httpx2.RequestError):
            httpx2.get(f"http{url[5:]}/v1/health", headers=HEADERS)
        plain = httpx2.get(f"{url}/v1/health", headers={**HEADERS, "Origin": f"http{url[5:]}"}, verify=context)

    assert url.startswith("https://localhost:")
    assert (answer.status_code, plain.status_code) == (200, 403)


def test_name_of_a_proxy_is_answered_and_no_other(place: Place) -> None:
    with server_process(place, "--behind-proxy", "https://Panpan.Example.org:443") as (_, url):
        statuses = [
            httpx2.get(f"{url}/v1/health", headers={**HEADERS, "Host": name, "Origin": origin}).status_code
            for name, origin in (
                ("panpan.example.org", "https://panpan.example.org"),
                ("panpan.example.org", "http://panpan.example.org"),
                ("other.example.org", "https://panpan.example.org"),
            )
        ]

    assert statuses == [200, 403, 421]


@pytest.mark.parametrize(("port", "is_tls", "is_default"), [(80, False, True), (443, True, True), (80, True, False)])
def test_names_without_a_port_are_those_of_the_default_port(port: int, is_tls: bool, is_default: bool) -> None:
    place = HttpPlace("127.0.0.1", port, token=TOKEN, variable="PANPAN_SERVER_TOKEN", names=["proxy.example.org"])

    names = place.names(port, is_tls=is_tls)

    assert ("localhost" in names) is is_default
    assert {f"localhost:{port}", "proxy.example.org"} <= set(names)
