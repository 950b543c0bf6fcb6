"""Logins at servers, with an issuer on the loopback: the browser is a request that follows where the page leads."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.lowlevel
import httpx2
import pytest
from anyio.streams.text import TextReceiveStream

from panpan.capabilities.mcp.authorization import LoginPage, log_in
from panpan.capabilities.mcp.entries import ServerEntry, read_entry
from panpan.capabilities.mcp.issuers import Issuers, LoginClient
from panpan.capabilities.mcp.logins import Challenge, Login, Logins, folder_below
from panpan.capabilities.mcp.servers import McpServers
from panpan.errors import ConfigError, ToolError
from panpan.system.web.network import WebNetwork
from tests.capabilities.mcp.place import Place, call, events_of, results_in, search
from tests.fakes.mcp_http import config, serving, toy
from tests.fakes.mcp_issuer import Issuer
from tests.prepared_command import PREPARED

LOGIN = Login(
    issuer="https://a.example",
    token_endpoint="https://a.example/token",
    client=LoginClient(client_id="made"),
    access_token="one",
)

WAY = "log in with: panpan mcp login toy"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


@pytest.fixture
def logins(place: Place) -> Logins:
    return Logins(folder_below(place.home), Issuers(WebNetwork(), "panpan/test"))


@asynccontextmanager
async def issuing() -> AsyncGenerator[Issuer, None]:
    """Serve a server that wants logins."""
    issuer = Issuer(toy().streamable_http_app())
    async with serving(issuer) as url:
        issuer.url = url
        yield issuer


def entry_of(server: Issuer, **keys: Any) -> ServerEntry:
    return read_entry("toy", {"type": "http", "url": f"{server.url}/mcp", **keys}, {}, "a test")


async def agree(page: LoginPage) -> None:
    """Open the page, and go where it leads."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        await browser.get(page.address)


def kept(logins: Logins, issuer: Issuer) -> Login:
    login = logins.get(f"{issuer.url}/mcp")
    assert login is not None
    return login


async def test_server_without_a_login_says_how_to_get_one(place: Place) -> None:
    async with issuing() as issuer:
        (found,) = await place.results(search("numbers"), **config(f"{issuer.url}/mcp"))

    assert f"[the MCP server toy wants a login; {WAY}]" in found


async def test_login_opens_the_server_to_every_session(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        shown: list[LoginPage] = []

        async def show(page: LoginPage) -> None:
            shown.append(page)
            await agree(page)

        login = await log_in(entry_of(issuer), logins, show)
        _, added = await place.results(search("numbers"), call("add", a=2, b=3), **config(f"{issuer.url}/mcp"))

    (page,) = shown
    (file,) = folder_below(place.home).glob("*.json")
    assert "5" in added
    assert (page.issuer, page.scope) == (issuer.url.removeprefix("http://"), "read")
    assert f"toy wants you to log in at {page.issuer}, for read" in page.lines
    assert login.about == f"logged in at {issuer.url} for read"
    assert file.stat().st_mode & 0o777 == 0o600
    assert folder_below(place.home).stat().st_mode & 0o777 == 0o700


async def test_token_goes_to_its_server_alone(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        await log_in(entry_of(issuer), logins, agree)
        async with issuing() as other:
            await place.results(search("numbers"), **config(f"{other.url}/mcp"))

    assert not other.sent
    assert logins.get(f"{issuer.url}/mcp/") is None


async def test_old_token_is_renewed_once_by_all_who_need_it(logins: Logins) -> None:
    async with issuing() as issuer:
        login = await log_in(entry_of(issuer), logins, agree)
        await logins.keep(f"{issuer.url}/mcp", login.model_copy(update={"renew_at": 1.0}))
        got: list[Login | None] = []

        async def use() -> None:
            got.append(await logins.current(f"{issuer.url}/mcp"))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(use)

    assert issuer.renewals == 1
    assert {login and login.access_token for login in got} == {"token-2"}
    assert kept(logins, issuer).refresh_token == "renew-2"


async def test_refused_token_is_renewed_within_the_request(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        await log_in(entry_of(issuer), logins, agree)
        issuer.expire()
        (found,) = await place.results(search("numbers"), **config(f"{issuer.url}/mcp"))

    assert "mcp__toy__add" in found
    assert issuer.renewals == 1
    assert set(issuer.sent) == {"token-2"}


async def test_login_that_is_over_is_told_and_forgotten(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        await log_in(entry_of(issuer), logins, agree)
        issuer.expire()
        issuer.renewing.clear()
        (found,) = await place.results(search("numbers"), **config(f"{issuer.url}/mcp"))

    assert f"wants a login; {WAY}" in found
    assert logins.get(f"{issuer.url}/mcp") is None


async def test_renewal_that_fails_for_now_keeps_the_login(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        await log_in(entry_of(issuer), logins, agree)
        login = kept(logins, issuer)
        old = {"renew_at": 1.0, "expires_at": 1.0, "token_endpoint": f"{issuer.url}/away"}
        await logins.keep(f"{issuer.url}/mcp", login.model_copy(update=old))
        async with place.opening(search("numbers"), **config(f"{issuer.url}/mcp")) as session:
            (found,) = results_in(await events_of(session))
            state = session[McpServers].state("toy")

    assert f"its login cannot be renewed at {issuer.url}: it answers with the status 404" in found
    assert kept(logins, issuer).refresh_token == "renew-1"
    assert state == "failed"


async def test_new_login_reaches_a_session_that_runs(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        many = [search(f"numbers {number}") for number in range(7)]
        async with place.opening(*many, "no", search("numbers"), **config(f"{issuer.url}/mcp")) as session:
            *_, before = results_in(await events_of(session))
            await log_in(entry_of(issuer), logins, agree)
            (after,) = results_in(await events_of(session))

    assert f"wants a login; {WAY}" in before
    assert "mcp__toy__add" in after


async def test_further_scopes_are_named_and_asked_for_next(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        asked: list[str] = []

        async def show(page: LoginPage) -> None:
            asked.append(page.scope)
            await agree(page)

        add = call("add", a=1, b=1)
        await log_in(entry_of(issuer), logins, show)
        async with place.opening(search("numbers"), "ok", add, "no", add, **config(f"{issuer.url}/mcp")) as session:
            await events_of(session)
            issuer.needs = "write"
            (refused,) = results_in(await events_of(session))
            await log_in(entry_of(issuer), logins, show)
            (added,) = results_in(await events_of(session))

    assert f"toy wants further scopes for this, write; to grant them, {WAY}" in refused
    assert "not known" not in refused
    assert asked == ["read", "read write"]
    assert logins.challenge(f"{issuer.url}/mcp") == ""
    assert "2" in added


async def test_refused_call_leaves_the_server_and_others_alone(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        login = await log_in(entry_of(issuer), logins, agree)
        add = call("add", a=1, b=1)
        async with place.opening(search("numbers"), "ok", add, "no", add, **config(f"{issuer.url}/mcp")) as session:
            await events_of(session)
            await logins.end(f"{issuer.url}/mcp")
            (refused,) = results_in(await events_of(session))
            await logins.keep(f"{issuer.url}/mcp", login)
            (added,) = results_in(await events_of(session))
            states = session[McpServers].state("toy")

    assert f"mcp__toy__add: the MCP server toy wants a login; {WAY}" in refused
    assert "not known" not in refused
    assert "2" in added
    assert states == "runs"


async def test_scopes_of_the_settings_are_asked_for_instead(logins: Logins) -> None:
    async with issuing() as issuer:
        asked: list[str] = []

        async def show(page: LoginPage) -> None:
            asked.append(page.scope)
            await agree(page)

        await log_in(entry_of(issuer, oauth={"scopes": "read own"}), logins, show)

    assert asked == ["read own"]


@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        ('Bearer scope="a b", resource_metadata="https://x/y"', Challenge("a b", "https://x/y")),
        ('Bearer error="insufficient_scope", scope=a', Challenge("a", wants_more=True)),
        ('Bearer error="insufficient_scope x"', Challenge()),
        ('Bearer x_error="insufficient_scope"', Challenge()),
        ('Bearer x_error="no", error="insufficient_scope"', Challenge(wants_more=True)),
        ('Bearer scope="ü", resource_metadata="javascript:alert(1)"', Challenge()),
        ('Bearer error_description="ü", scope="' + "a" * 5_000 + '"', Challenge()),
        ("Bearer " + 'scope="' * 100_000, Challenge("scope=")),
        ("", Challenge()),
    ],
)
def test_challenge_is_read_as_far_as_it_can_be_used(header: str, challenge: Challenge) -> None:
    assert Challenge.read(header) == challenge
    assert Challenge.read(challenge.header) == challenge


async def test_page_that_refuses_is_told(logins: Logins) -> None:
    async with issuing() as issuer:
        issuer.refuses = "access_denied"
        with pytest.raises(ConfigError, match="the login at toy failed: access_denied"):
            await log_in(entry_of(issuer), logins, agree)

    assert logins.get(f"{issuer.url}/mcp") is None


async def test_answer_with_another_state_is_not_heard(logins: Logins) -> None:
    async with issuing() as issuer:
        statuses: list[int] = []

        async def show(page: LoginPage) -> None:
            async with httpx2.AsyncClient() as browser:
                page = await browser.get(page.address)
                to = httpx2.URL(page.headers["location"])
                forged = await browser.get(to.copy_merge_params({"state": "guessed", "code": "stolen"}))
                elsewhere = await browser.get(to.copy_with(path="/other"))
                right = await browser.get(to)
            statuses.extend([forged.status_code, elsewhere.status_code, right.status_code])

        login = await log_in(entry_of(issuer), logins, show)

    assert statuses == [404, 404, 200]
    assert login.access_token == "token-1"


async def test_address_can_be_pasted(logins: Logins) -> None:
    async with issuing() as issuer:
        ends: list[str] = []

        async def show(page: LoginPage) -> None:
            async with httpx2.AsyncClient() as browser:
                ends.append((await browser.get(page.address)).headers["location"])

        told: list[bool] = []

        async def paste(is_wrong: bool) -> str:
            told.append(is_wrong)
            return ends.pop() if is_wrong and ends else "nonsense"

        login = await log_in(entry_of(issuer), logins, show, paste)

    assert told[:2] == [False, True]
    assert login.access_token == "token-1"


async def test_wrong_issuer_of_the_answer_is_refused(logins: Logins) -> None:
    async with issuing() as issuer:
        ends: list[str] = []

        async def show(page: LoginPage) -> None:
            async with httpx2.AsyncClient() as browser:
                to = httpx2.URL((await browser.get(page.address)).headers["location"])
            ends.append(str(to.copy_merge_params({"iss": "https://other.example"})))

        async def paste(is_wrong: bool) -> str:
            return ends.pop() if ends else ""

        with pytest.raises(ConfigError, match="iss mismatch"):
            await log_in(entry_of(issuer), logins, show, paste)


async def test_own_client_is_not_registered(logins: Logins) -> None:
    async with issuing() as issuer:
        own = {"clientId": "mine", "clientSecret": "hush"}
        await log_in(entry_of(issuer, oauth=own), logins, agree)

    client = kept(logins, issuer).client
    assert (client.client_id, client.client_secret, client.method) == ("mine", "hush", "client_secret_basic")


async def test_metadata_document_is_the_client_where_it_is_taken(logins: Logins) -> None:
    document = "https://example.org/panpan.json"
    async with issuing() as issuer:
        entry = entry_of(issuer, oauth={"clientId": document})
        await log_in(entry, logins, agree)
        registered = kept(logins, issuer).client.client_id
        issuer.metadata = {"client_id_metadata_document_supported": True}
        await log_in(entry, logins, agree)

    assert registered == "made"
    assert kept(logins, issuer).client.client_id == document


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"command": "uvx"}, "is a program"),
        ({"url": "https://example.org/mcp", "headers": {"authorization": "Bearer x"}}, "has a header Authorization"),
    ],
)
async def test_server_without_logins_is_told(logins: Logins, keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        await log_in(read_entry("toy", keys, {}, "a test"), logins, agree)


async def test_server_that_asks_for_no_login_is_told(logins: Logins) -> None:
    async with serving(toy().streamable_http_app()) as url:
        entry = read_entry("toy", {"type": "http", "url": f"{url}/mcp"}, {}, "a test")
        with pytest.raises(ConfigError, match="asks for no login: it answers 4"):
            await log_in(entry, logins, agree)


@pytest.mark.parametrize(
    "named",
    [
        "http://example.com/token",
        "https://10.0.0.1/token",
        "https://169.254.169.254/latest",
        "https://localhost/token",
        "https://127.0.0.1:8443/token",
        "https://intranet/token",
        "file:///etc/passwd",
        "https://user:password@example.com/",
    ],
)
def test_server_may_name_only_public_addresses_with_tls(logins: Logins, named: str) -> None:
    with pytest.raises(ToolError):
        logins.issuers.require_fit("https://example.org/mcp", named)


@pytest.mark.parametrize("named", ["https://example.com/token", "https://example.org/token"])
def test_server_may_name_public_addresses(logins: Logins, named: str) -> None:
    logins.issuers.require_fit("https://example.org/mcp", named)


async def test_logout_voids_the_tokens_and_forgets_them(logins: Logins) -> None:
    async with issuing() as issuer:
        await log_in(entry_of(issuer), logins, agree)
        is_told = await logins.end(f"{issuer.url}/mcp")

    assert is_told
    assert issuer.revoked == ["renew-1"]
    assert logins.get(f"{issuer.url}/mcp") is None


@pytest.mark.parametrize("damage", [lambda text: text[:40], lambda text: "[]", lambda text: text.replace("/mcp", "/x")])
async def test_file_that_is_damaged_is_no_login(place: Place, logins: Logins, damage: Callable[[str], str]) -> None:
    await logins.keep("https://example.org/mcp", LOGIN)
    (file,) = folder_below(place.home).glob("*.json")
    file.write_text(damage(file.read_text()))

    assert logins.get("https://example.org/mcp") is None


async def test_command_line_logs_in_and_out(place: Place) -> None:
    async with issuing() as issuer:
        (place.home / "settings.toml").write_text(f'[mcp.toy]\nurl = "{issuer.url}/mcp"\n')
        program = PREPARED.argv("--cwd", str(place.root), "mcp", env=place.env)
        async with await anyio.open_process([*program, "login", "toy", "--no-browser"], env=place.env) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            lines = TextReceiveStream(process.stdout)
            said = ""
            while "paste here" not in said:
                said += await lines.receive()
            (address,) = (line for line in said.splitlines() if line.startswith(issuer.url))
            async with httpx2.AsyncClient() as browser:
                end = (await browser.get(address)).headers["location"]
            await process.stdin.send(f"{end}\n".encode())
            said = "".join([one async for one in lines])
        ran = [
            await anyio.run_process([*program, *words], env=place.env, check=False)
            for words in (("get", "toy"), ("logout", "toy"), ("logout", "toy"))
        ]

    assert said == f"toy: logged in at {issuer.url} for read\n"
    assert f"  with your login: logged in at {issuer.url} for read\n".encode() in ran[0].stdout
    assert ran[1].stdout == b"the login at toy is forgotten\n"
    assert (ran[2].returncode, ran[2].stderr) == (2, b"panpan: there is no login at toy\n")
    assert issuer.revoked == ["renew-1"]


async def test_server_of_a_project_needs_a_yes_before_a_login(place: Place) -> None:
    (place.root / ".mcp.json").write_text(json.dumps({"mcpServers": {"toy": {"url": "https://example.org/mcp"}}}))
    program = PREPARED.argv("--cwd", str(place.root), env=place.env)
    await anyio.run_process([*program, "trust", "add"], env=place.env)

    ran = await anyio.run_process([*program, "mcp", "login", "toy"], env=place.env, check=False)

    assert ran.stderr == b"panpan: the server toy waits for your yes: panpan mcp approve toy\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"gone",
        b"[1]",
        b'{"token": "gho_SECRET"}',
        b'{"access_token": "gho_SECRET\\n"}',
        b'{"access_token": "gho_SECRET", "token_type": "mac"}',
        b'{"access_token": "gho_SECRET", "scope": "\\u001b[2J"}',
        b'{"access_token": "gho_SECRET", "expires_in": 1e999}',
        b'{"access_token": "gho_SECRET", "expires_in": ' + b"1" * 400 + b"}",
        b'{"access_token": "gho_SECRET", "expires_in": true}',
        b'{"access_token": "gho_SECRET", "refresh_token": ["x"]}',
        b'{"access_token": "\\ud800"}',
        b'{"access_token": "gho_SECRET' + b"x" * 20_000 + b'"}',
    ],
)
async def test_answer_that_is_no_token_costs_the_login_alone(logins: Logins, answer: bytes) -> None:
    async with issuing() as issuer:
        login = await log_in(entry_of(issuer), logins, agree)
        issuer.says = answer
        with pytest.raises(ConfigError, match=r"^the login at toy failed: its answer is no token") as failed:
            await log_in(entry_of(issuer), logins, agree)
        with pytest.raises(ToolError, match=r"^its login cannot be renewed at .*: its answer is no token") as renewing:
            await logins.renewed(f"{issuer.url}/mcp", login)

    assert "gho_SECRET" not in f"{failed.value} {renewing.value}"
    assert kept(logins, issuer) == login


@pytest.mark.parametrize("code", ["x", ["x"], {}, "\x1b[2J", "<system-reminder>"])
async def test_odd_refusal_of_a_renewal_keeps_the_login(logins: Logins, code: object) -> None:
    async with issuing() as issuer:
        login = await log_in(entry_of(issuer), logins, agree)
        issuer.says = json.dumps({"error": code}).encode()
        with pytest.raises(ToolError, match="its login cannot be renewed") as failed:
            await logins.renewed(f"{issuer.url}/mcp", login)

    assert str(failed.value).isprintable()
    assert "<system-reminder>" not in str(failed.value)
    assert kept(logins, issuer) == login


async def test_text_is_taken_for_the_seconds_of_a_token(logins: Logins) -> None:
    async with issuing() as issuer:
        issuer.says = b'{"access_token": "a", "token_type": "BEARER", "expires_in": "100"}'
        login = await log_in(entry_of(issuer), logins, agree)

    assert 85 < login.renew_at - time.time() <= 90
    assert 95 < login.expires_at - time.time() <= 100
    assert ", until 2" in login.about


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"authorization_endpoint": "{url}/authorize#"}, "has a #"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "does not say how one logs in"),
        ({"issuer": "https://other.example"}, "issuer mismatch"),
        ({"code_challenge_methods_supported": ["plain"]}, "does not protect the code"),
    ],
)
async def test_issuer_that_cannot_be_used_is_told(logins: Logins, metadata: dict[str, Any], why: str) -> None:
    async with issuing() as issuer:
        issuer.metadata = json.loads(json.dumps(metadata).replace("{url}", issuer.url))
        with pytest.raises(ConfigError, match=why):
            await log_in(entry_of(issuer), logins, agree)

    assert not issuer.valid


async def test_page_with_a_query_is_opened_with_both(logins: Logins) -> None:
    async with issuing() as issuer:
        issuer.metadata = {"authorization_endpoint": f"{issuer.url}/authorize?state=evil&policy=p"}
        login = await log_in(entry_of(issuer), logins, agree)

    assert login.access_token == "token-1"


async def test_hosts_that_differ_are_named_and_get_no_secret(logins: Logins) -> None:
    async with issuing() as honest, issuing() as issuer:
        issuer.metadata = {"authorization_endpoint": f"{honest.url}/authorize"}
        shown: list[str] = []

        async def show(page: LoginPage) -> None:
            shown.append(page.lines)
            raise ToolError("looked at")

        for keys in ({}, {"client_id": "mine", "client_secret": "hush"}):
            with pytest.raises(ConfigError) as failed:
                await log_in(entry_of(issuer, **keys), logins, show)
        own = {"client_id": "mine", "client_secret": "hush", "issuer": issuer.url}
        with pytest.raises(ConfigError, match="looked at"):
            await log_in(entry_of(issuer, **own), logins, show)
        with pytest.raises(ConfigError, match=r"and not https://a\.example as your settings say"):
            await log_in(entry_of(issuer, **{**own, "issuer": "https://a.example"}), logins, show)

    there, evil = honest.url.removeprefix("http://"), issuer.url.removeprefix("http://")
    assert f"log in at {there} (the issuer is {evil}; {evil} gets the code)" in shown[0]
    assert "it would send your client_secret to" in str(failed.value)
    assert len(shown) == 2


async def test_logout_holds_while_the_login_is_renewed(logins: Logins) -> None:
    async with issuing() as issuer, anyio.create_task_group() as group:
        login = await log_in(entry_of(issuer), logins, agree)
        url = f"{issuer.url}/mcp"
        issuer.holds = anyio.Event()
        group.start_soon(logins.renewed, url, login)
        await issuer.is_asked.wait()
        group.start_soon(logins.end, url)
        await anyio.wait_all_tasks_blocked()
        issuer.holds.set()

    assert logins.get(url) is None
    assert not logins.has_file(url)


async def test_renewal_can_be_given_up_but_its_token_is_kept(logins: Logins) -> None:
    async with issuing() as issuer:
        login = await log_in(entry_of(issuer), logins, agree)
        issuer.holds = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(logins.renewed, f"{issuer.url}/mcp", login)
            await issuer.is_asked.wait()
            group.cancel_scope.cancel()
            issuer.holds.set()

    assert kept(logins, issuer).access_token == "token-2"


async def test_token_that_lives_short_is_not_renewed_at_once(logins: Logins) -> None:
    async with issuing() as issuer:
        issuer.lives_s = 20
        await log_in(entry_of(issuer), logins, agree)
        for _ in range(3):
            await logins.current(f"{issuer.url}/mcp")

    assert issuer.renewals == 0


async def test_token_counts_to_its_end_if_it_cannot_be_renewed(logins: Logins) -> None:
    async with issuing() as issuer:
        login = await log_in(entry_of(issuer), logins, agree)
        soon = login.model_copy(update={"renew_at": 1.0, "token_endpoint": f"{issuer.url}/away"})
        await logins.keep(f"{issuer.url}/mcp", soon)

        assert await logins.current(f"{issuer.url}/mcp") == soon


async def test_renewed_token_that_cannot_be_written_counts_here(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        login = await log_in(entry_of(issuer), logins, agree)
        (file,) = folder_below(place.home).glob("*.json")
        written = file.read_bytes()
        logins._write = refuse  # type: ignore[method-assign]
        renewed = await logins.renewed(f"{issuer.url}/mcp", login)

    assert file.read_bytes() == written
    assert renewed is not None
    assert kept(logins, issuer).access_token == renewed.access_token == "token-2"


def refuse(*_: object) -> None:
    raise ConfigError("the disk is full")


async def test_file_that_others_could_read_is_closed(place: Place, logins: Logins) -> None:
    await logins.keep("https://example.org/mcp", LOGIN)
    (file,) = folder_below(place.home).glob("*.json")
    file.chmod(0o644)

    assert logins.get("https://example.org/mcp") == LOGIN
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("end", [1e17, -1e17, 1e300])
def test_odd_end_of_a_token_is_shown(end: float) -> None:
    assert LOGIN.model_copy(update={"expires_at": end}).about.startswith("logged in at https://a.example")


async def test_page_is_answered_while_it_is_still_being_opened(logins: Logins) -> None:
    async with issuing() as issuer:
        opened = anyio.Event()

        async def show(page: LoginPage) -> None:
            await agree(page)
            opened.set()
            await anyio.lowlevel.checkpoint()

        await log_in(entry_of(issuer), logins, show)

    assert opened.is_set()


async def test_flood_of_callers_does_not_keep_the_browser_out(logins: Logins) -> None:
    async with issuing() as issuer:

        async def show(page: LoginPage) -> None:
            port = httpx2.URL(parse_qs(urlsplit(page.address).query)["redirect_uri"][0]).port
            assert port is not None
            idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
            for one in idle:
                one.close()
            await agree(page)

        assert (await log_in(entry_of(issuer), logins, show)).access_token == "token-1"


async def test_no_more_of_a_refusal_is_read_than_of_a_message(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        await log_in(entry_of(issuer), logins, agree)
        issuer.expire()
        issuer.floods = True
        (found,) = await place.results(search("numbers"), **config(f"{issuer.url}/mcp"))

    assert "the answer has more than" in found


async def test_secret_of_an_entry_needs_a_yes_again() -> None:
    plain = {"url": "https://example.org/mcp"}
    first, second = (
        read_entry("toy", {**plain, "oauth": {"clientId": "a", "clientSecret": "${S}"}}, {"S": value}, "a test")
        for value in ("one", "two")
    )

    assert first.digest != second.digest != read_entry("toy", plain, {}, "a test").digest
    assert "logs in as a, with a secret" in list(first.described())


async def test_line_that_is_pasted_in_part_blocks_nothing(place: Place) -> None:
    async with issuing() as issuer:
        (place.home / "settings.toml").write_text(f'[mcp.toy]\nurl = "{issuer.url}/mcp"\n')
        program = PREPARED.argv("--cwd", str(place.root), "mcp", "login", "toy", "--no-browser", env=place.env)
        async with await anyio.open_process(program, env=place.env) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            lines, said = TextReceiveStream(process.stdout), ""
            while "paste here" not in said:
                said += await lines.receive()
            await process.stdin.send(b"http://localhost/wrong\nhttp://localh")
            while "not the address" not in said:
                said += await lines.receive()
            (address,) = (line for line in said.splitlines() if line.startswith(issuer.url))
            async with httpx2.AsyncClient(follow_redirects=True) as browser:
                page = await browser.get(address)
            said += "".join([one async for one in lines])

    assert "panpan has the answer" in page.text
    assert f"toy: logged in at {issuer.url} for read\n" in said


@pytest.mark.parametrize("refuses", ["access_denied", ""])
async def test_failure_of_the_command_is_one_sentence(place: Place, refuses: str) -> None:
    async with issuing() as issuer:
        issuer.refuses, issuer.says = refuses, b"gone"
        (place.home / "settings.toml").write_text(f'[mcp.toy]\nurl = "{issuer.url}/mcp"\n')
        browser = place.folder / "browser"
        browser.write_text(
            f"#!{sys.executable}\nimport sys\nfrom urllib.request import urlopen\nurlopen(sys.argv[1])\n"
        )
        browser.chmod(0o755)
        program = PREPARED.argv("--cwd", str(place.root), "mcp", "login", "toy", env=place.env)
        env = {**place.env, "BROWSER": str(browser)}
        ran = await anyio.run_process(program, env=env, check=False, stdin=subprocess.DEVNULL)

    why = "access_denied" if refuses else "its answer is no token that can be used (all of it)"
    assert (ran.returncode, ran.stderr.decode()) == (2, f"panpan: the login at toy failed: {why}\n")
    assert b"Waiting for the browser" in ran.stdout


async def test_login_of_a_removed_server_can_be_ended(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        (place.home / "settings.toml").write_text(f'[mcp.toy]\nurl = "{issuer.url}/mcp"\n')
        await log_in(entry_of(issuer), logins, agree)
        program = PREPARED.argv("--cwd", str(place.root), "mcp", env=place.env)
        url = f"{issuer.url}/mcp"
        removed = await anyio.run_process([*program, "remove", "toy"], env=place.env)
        ended = await anyio.run_process([*program, "logout", url], env=place.env)

    assert f"your login at {url} stays; panpan mcp logout {url} ends it".encode() in removed.stderr
    assert ended.stdout == f"the login at {url} is forgotten\n".encode()
