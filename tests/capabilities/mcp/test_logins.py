"""Logins at servers, with an issuer on the loopback: the browser is a request that follows where the page leads."""

import json
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.streams.text import TextReceiveStream

from panpan.capabilities.mcp.authorization import Prompt, log_in
from panpan.capabilities.mcp.bearer import with_scope
from panpan.capabilities.mcp.entries import ServerEntry, read_entry
from panpan.capabilities.mcp.logins import Login, Logins, folder_below
from panpan.errors import ConfigError, ToolError
from panpan.system.web.network import WebNetwork
from tests.capabilities.mcp.place import Place, call, results_in, search
from tests.fakes.mcp_http import config, serving, toy
from tests.fakes.mcp_issuer import Issuer

WAY = "log in with /mcp login toy, or in a shell with: panpan mcp login toy"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


@pytest.fixture
def logins(place: Place) -> Logins:
    return Logins(folder_below(place.home), WebNetwork(), "panpan/test")


@asynccontextmanager
async def issuing() -> AsyncGenerator[Issuer, None]:
    """Serve a server that wants logins."""
    issuer = Issuer(toy().streamable_http_app())
    async with serving(issuer) as url:
        issuer.url = url
        yield issuer


def entry_of(issuer: Issuer, **keys: Any) -> ServerEntry:
    return read_entry("toy", {"type": "http", "url": f"{issuer.url}/mcp", **keys}, {}, "a test")


async def agree(prompt: Prompt) -> None:
    """Open the page, and go where it leads, beside the login."""
    async with httpx2.AsyncClient() as browser:
        page = await browser.get(prompt.address)
    threading.Thread(target=httpx2.get, args=[page.headers["location"]], daemon=True).start()


def kept(logins: Logins, issuer: Issuer) -> Login:
    login = logins.get(f"{issuer.url}/mcp")
    assert login is not None
    return login


async def test_server_without_a_login_says_how_to_get_one(place: Place) -> None:
    async with issuing() as issuer:
        (found,) = await place.results(search("numbers"), **config(f"{issuer.url}/mcp"))

    assert (
        "[the MCP server toy wants a login; log in with /mcp login toy, or in a shell with: panpan mcp login toy]"
        in found
    )


async def test_login_opens_the_server_to_every_session(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        shown: list[Prompt] = []

        async def show(prompt: Prompt) -> None:
            shown.append(prompt)
            await agree(prompt)

        login = await log_in(entry_of(issuer), logins, show)
        _, added = await place.results(search("numbers"), call("add", a=2, b=3), **config(f"{issuer.url}/mcp"))

    (prompt,) = shown
    (file,) = folder_below(place.home).glob("*.json")
    assert "5" in added
    assert (prompt.issuer, prompt.scope) == (issuer.url.removeprefix("http://"), "read")
    assert f"toy wants you to log in at {prompt.issuer}, for read" in prompt.lines
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
        issuer.lives_s = 1  # it counts as old at once
        await log_in(entry_of(issuer), logins, agree)
        issuer.lives_s = 3600
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
    assert kept(logins, issuer).about == ""


async def test_renewal_that_fails_for_now_keeps_the_login(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        await log_in(entry_of(issuer), logins, agree)
        login = kept(logins, issuer)
        logins.keep(login.model_copy(update={"expires_at": 1.0, "token_endpoint": f"{issuer.url}/away"}))
        (found,) = await place.results(search("numbers"), **config(f"{issuer.url}/mcp"))

    assert f"its login cannot be renewed: {issuer.url} answers 404" in found
    assert kept(logins, issuer).refresh_token == "renew-1"


async def test_new_login_reaches_a_session_that_runs(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        entry, results = entry_of(issuer), []
        async with place.opening(search("numbers"), search("numbers"), **config(f"{issuer.url}/mcp")) as session:
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    results += results_in([event])
                    if len(results) == 1 and logins.get(f"{issuer.url}/mcp").about == "":  # type: ignore[union-attr]
                        await log_in(entry, logins, agree)

    assert "wants a login" in results[0]
    assert "mcp__toy__add" in results[1]


async def test_further_rights_are_named_and_asked_for_next(place: Place, logins: Logins) -> None:
    async with issuing() as issuer:
        await log_in(entry_of(issuer), logins, agree)
        asked, results = [], []
        async with place.opening(search("numbers"), call("add", a=1, b=1), **config(f"{issuer.url}/mcp")) as session:
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    results += results_in([event])
                    if results:
                        issuer.needs = "write"

        async def show(prompt: Prompt) -> None:
            asked.append(prompt.scope)
            await agree(prompt)

        await log_in(entry_of(issuer), logins, show)
        issuer.needs = "read"
        (_, added) = await place.results(search("numbers"), call("add", a=1, b=1), **config(f"{issuer.url}/mcp"))

    assert f"toy wants further rights for this, write; to grant them, {WAY}" in results[1]
    assert asked == ["read write"]
    assert kept(logins, issuer).challenge == ""
    assert "2" in added


async def test_scopes_of_the_settings_are_asked_for_instead(logins: Logins) -> None:
    async with issuing() as issuer:
        asked: list[str] = []

        async def show(prompt: Prompt) -> None:
            asked.append(prompt.scope)
            await agree(prompt)

        await log_in(entry_of(issuer, oauth={"scopes": "read own"}), logins, show)

    assert asked == ["read own"]


@pytest.mark.parametrize(
    ("challenge", "changed"),
    [
        ('Bearer scope="a", resource_metadata="https://x/y"', 'Bearer scope="b c", resource_metadata="https://x/y"'),
        ('Bearer error="insufficient_scope", scope="a"', 'Bearer scope="b c", error="insufficient_scope"'),
        ("", 'Bearer scope="b c"'),
    ],
)
def test_challenge_may_ask_for_other_rights(challenge: str, changed: str) -> None:
    assert with_scope(challenge, "b c") == changed


async def test_page_that_refuses_is_told(logins: Logins) -> None:
    async with issuing() as issuer:
        issuer.refuses = "access_denied"
        with pytest.raises(ConfigError, match="there is no login at toy: access_denied"):
            await log_in(entry_of(issuer), logins, agree)

    assert logins.get(f"{issuer.url}/mcp") is None


async def test_answer_with_another_state_is_not_heard(logins: Logins) -> None:
    async with issuing() as issuer:
        statuses: list[int] = []

        async def show(prompt: Prompt) -> None:
            async with httpx2.AsyncClient() as browser:
                page = await browser.get(prompt.address)
                to = httpx2.URL(page.headers["location"])
                forged = await browser.get(to.copy_merge_params({"state": "guessed", "code": "stolen"}))
                elsewhere = await browser.get(to.copy_with(path="/other"))
            statuses.extend([forged.status_code, elsewhere.status_code])
            threading.Thread(target=httpx2.get, args=[str(to)], daemon=True).start()

        login = await log_in(entry_of(issuer), logins, show)

    assert statuses == [404, 404]
    assert login.access_token == "token-1"


async def test_address_can_be_pasted(logins: Logins) -> None:
    async with issuing() as issuer:
        ends: list[str] = []

        async def show(prompt: Prompt) -> None:
            async with httpx2.AsyncClient() as browser:
                ends.append((await browser.get(prompt.address)).headers["location"])

        async def paste() -> str:
            return ends.pop() if ends and len(pasted) else pasted.append("") or "nonsense"

        pasted: list[str] = []
        login = await log_in(entry_of(issuer), logins, show, paste)

    assert login.access_token == "token-1"


async def test_wrong_issuer_of_the_answer_is_refused(logins: Logins) -> None:
    async with issuing() as issuer:
        ends: list[str] = []

        async def show(prompt: Prompt) -> None:
            async with httpx2.AsyncClient() as browser:
                to = httpx2.URL((await browser.get(prompt.address)).headers["location"])
            ends.append(str(to.copy_merge_params({"iss": "https://other.example"})))

        async def paste() -> str:
            return ends.pop()

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
        logins.require_fit("https://example.org/mcp", named)


@pytest.mark.parametrize("named", ["https://example.com/token", "https://example.org/token"])
def test_server_may_name_public_addresses(logins: Logins, named: str) -> None:
    logins.require_fit("https://example.org/mcp", named)


async def test_logout_voids_the_tokens_and_forgets_them(logins: Logins) -> None:
    async with issuing() as issuer:
        login = await log_in(entry_of(issuer), logins, agree)
        is_told = await logins.end(login)

    assert is_told
    assert issuer.revoked == ["renew-1"]
    assert logins.get(f"{issuer.url}/mcp") is None


@pytest.mark.parametrize("damage", [lambda text: text[:40], lambda text: "[]", lambda text: text.replace("/mcp", "/x")])
async def test_file_that_is_damaged_is_no_login(place: Place, logins: Logins, damage: Callable[[str], str]) -> None:
    logins.keep(Login(url="https://example.org/mcp", access_token="one"))
    (file,) = folder_below(place.home).glob("*.json")
    file.write_text(damage(file.read_text()))

    assert logins.get("https://example.org/mcp") is None


async def test_command_line_logs_in_and_out(place: Place) -> None:
    async with issuing() as issuer:
        (place.home / "settings.toml").write_text(f'[mcp.toy]\nurl = "{issuer.url}/mcp"\n')
        program = [sys.executable, "-m", "panpan", "--cwd", str(place.root), "mcp"]
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
    assert f"  logged in at {issuer.url} for read\n".encode() in ran[0].stdout
    assert ran[1].stdout == b"the login at toy is forgotten\n"
    assert (ran[2].returncode, ran[2].stderr) == (2, b"panpan: there is no login at toy\n")
    assert issuer.revoked == ["renew-1"]


async def test_server_of_a_project_needs_a_yes_before_a_login(place: Place) -> None:
    (place.root / ".mcp.json").write_text(json.dumps({"mcpServers": {"toy": {"url": "https://example.org/mcp"}}}))
    program = [sys.executable, "-m", "panpan", "--cwd", str(place.root)]
    await anyio.run_process([*program, "trust", "add"], env=place.env)

    ran = await anyio.run_process([*program, "mcp", "login", "toy"], env=place.env, check=False)

    assert ran.stderr == b"panpan: the server toy waits for your yes: panpan mcp approve toy\n"
