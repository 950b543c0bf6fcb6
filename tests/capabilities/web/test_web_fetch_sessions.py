"""WebFetch in a session as `open_session` puts it together, with a scripted model and a site on the loopback."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from panpan.session.budget.spending import session_costs
from tests.capabilities.subagents.test_subagent_sessions import Place, replies_so_far, results, task, turn
from tests.fakes.askers import ScriptedAsker, no, yes
from tests.fakes.outside import OTHER, PUBLIC, Network
from tests.fakes.web_site import Answer, Site, served
from tests.model_server import ToolCall, call, calls, say, serving
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import HttpError, Step

PAGE = "<html><head><title>Seeds</title></head><body><p>The seed was 1234.</p></body></html>"
PAGES = {
    "/paper": Answer(PAGE),
    "/away": Answer(status=302, headers={"Location": "http://other.net/paper"}),
    "/inside": Answer(status=302, headers={"Location": "http://169.254.169.254/latest"}),
    "/www": Answer(status=302, headers={"Location": "http://www.example.org/paper"}),
}


def fetch(path: str, **more: Any) -> ToolCall:
    return ToolCall("WebFetch", {"url": f"http://example.org{path}", **more})


@dataclass
class Web:
    """A place with a web."""

    place: Place
    site: Site
    network: Network
    settings: dict[str, Any] = field(default_factory=lambda: {"web.pace_s": 0})

    def open(self, ask: ScriptedAsker | None = None, **settings: Any) -> Any:
        overrides = self.settings | {name.replace("__", "."): value for name, value in settings.items()}
        return self.place.open(overrides, ask=ask, network=self.network.web)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    (tmp_path / "workspace").mkdir()
    with served(Site(dict(PAGES))) as site:
        names = {
            host: [OTHER if host == "other.net" else PUBLIC] for host in ("example.org", "www.example.org", "other.net")
        }
        network = Network(names=names, ports={(address, 80): site.port for address in (PUBLIC, OTHER)})
        yield Web(Place(tmp_path), site, network)


async def test_fetch_is_asked_about_with_its_address_and_read(web: Web) -> None:
    ask = yes()
    with web.place.answering(call("WebFetch", fetch("/paper").input), say("done")):
        async with web.open(ask) as session:
            (result,) = results(await turn(session))

    assert "The seed was 1234." in result.text
    assert [(question.tool_name, question.title) for question in ask.questions] == [
        ("WebFetch", "http://example.org/paper")
    ]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://\u0430pple.com/x", "to xn--pple-43d.com:80, a name with other letters than they may look like"),
        (f"http://{'www.apple.com.' * 4}example.net:8080/", "www.apple.com.www.apple.com.example.net:8080"),
        ("http://EXAMPLE.org./?https://apple.com/", "the request goes to example.org:80"),
    ],
)
async def test_fetch_question_names_the_host(url: str, said: str, web: Web) -> None:
    ask = no()
    with web.place.answering(call("WebFetch", {"url": url}), say("done")):
        async with web.open(ask) as session:
            await turn(session)

    assert said in ask.questions[0].wording.effect


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://apple.com@example.org/", "the address is refused"),
        ("http://example.org\\@apple.com/", "the address is refused"),
        ("http://0x7f.1/", "the address is refused"),
        ("paper.html", "the address is refused"),
        ("ftp://example.org/x", "only http and https"),
        ("http://localhost/", "a host in this machine"),
        ("http://127.0.0.1/", "127.0.0.1 is not a public address"),
        ("http://169.254.169.254/latest", "169.254.169.254 is not a public address"),
        ("http://[::1]/", "::1 is not a public address"),
    ],
)
@pytest.mark.parametrize(("tool", "arguments"), [("WebFetch", {}), ("DatasetDownload", {"action": "prepare"})])
async def test_impossible_address_is_refused_without_a_question(
    tool: str, arguments: dict[str, str], url: str, said: str, web: Web
) -> None:
    ask = yes()
    given = arguments | {"url" if tool == "WebFetch" else "source": url}
    with web.place.answering(call(tool, given), say("done")):
        async with web.open(ask) as session:
            (result,) = results(await turn(session))

    assert result.is_error
    assert said in result.text
    assert ask.questions == []


async def test_fetch_of_a_page_that_leads_inside_says_not_to_retry(web: Web) -> None:
    with web.place.answering(call("WebFetch", fetch("/inside").input), say("done")):
        async with web.open(yes()) as session:
            (result,) = results(await turn(session))

    assert "169.254.169.254 is not a public address" in result.text
    assert "call WebFetch" not in result.text


async def test_fetch_that_is_denied_is_not_sent(web: Web) -> None:
    with web.place.answering(call("WebFetch", fetch("/paper").input), say("done")):
        async with web.open() as session:
            (result,) = results(await turn(session))

    assert result.is_error
    assert web.network.asked == []


async def test_allowed_host_opens_no_other_by_a_redirect(web: Web) -> None:
    again = call("WebFetch", {"url": "http://other.net/paper"})
    with web.place.answering(call("WebFetch", fetch("/away").input), again, say("done")):
        async with web.open(permission__allow=["WebFetch(domain:example.org)"]) as session:
            redirected, refused = results(await turn(session))

    assert "call WebFetch with http://other.net/paper" in redirected.text
    assert refused.is_error
    assert "other.net" not in web.network.asked


@pytest.mark.parametrize("kind", ["deny", "ask"])
async def test_rule_about_a_redirects_host_holds(kind: str, web: Web) -> None:
    rules = {
        "permission__allow": ["WebFetch(domain:example.org)"],
        f"permission__{kind}": ["WebFetch(domain:www.example.org)"],
    }
    with web.place.answering(call("WebFetch", fetch("/www").input), say("done")):
        async with web.open(**rules) as session:
            (result,) = results(await turn(session))

    assert result.is_error
    assert "the rule WebFetch(domain:www.example.org)" in result.text
    assert "www.example.org" not in web.network.asked


async def test_plan_mode_reads_allowed_pages(web: Web) -> None:
    with web.place.answering(call("WebFetch", fetch("/paper").input), say("done")):
        async with web.open(permission__mode="plan", permission__allow=["WebFetch(domain:example.org)"]) as session:
            (result,) = results(await turn(session))

    assert "The seed was 1234." in result.text


async def test_subagents_share_the_sessions_pace(web: Web) -> None:
    def child(request: RecordedRequest) -> Step:
        return say("read") if replies_so_far(request) else call("WebFetch", fetch("/paper").input)

    parent = call("WebFetch", fetch("/paper").input), calls(task("read it"), task("read it, too")), say("done")
    with web.place.answering(*parent, child=child):
        async with web.open(permission__allow=["WebFetch(domain:example.org)"]) as session:
            await turn(session)

    assert web.site.paths() == ["/robots.txt", "/paper", "/paper", "/paper"]


@contextmanager
def small_model(web: Web, answer: Step) -> Iterator[list[RecordedRequest]]:
    """Let a small model answer questions about pages, and the session's model the rest."""
    home = web.place.root / "home"
    home.mkdir()
    (home / "settings.toml").write_text('[aliases]\nfast = "anthropic/claude-haiku-5-5"\n')
    replies = iter((call("WebFetch", fetch("/paper", prompt="Which seed?").input), say("done")))
    asked: list[RecordedRequest] = []

    def of_model(request: RecordedRequest) -> Step:
        if "haiku" not in request.body["model"]:
            return next(replies)
        asked.append(request)
        return answer

    with serving(of_model) as web.place.server:
        yield asked


async def test_prompt_is_answered_by_the_small_model_at_a_cost(web: Web) -> None:
    with small_model(web, say("It was 1234.")) as asked:
        async with web.open(permission__allow=["WebFetch"]) as session:
            (result,) = results(await turn(session))
            beside = session.conversation.side_calls
            costs = session_costs(session.conversation.messages, beside)

    assert "It was 1234." in result.text
    assert "The seed was" not in result.text
    (request,) = asked
    assert "The seed was 1234." in str(request.messages)
    assert "haiku" in request.body["model"]
    assert [reply.text for reply in beside] == ["It was 1234."]
    assert costs.by_model["claude-haiku-5-5"].replies == 1


async def test_failing_small_model_leaves_the_page_itself(web: Web) -> None:
    with small_model(web, HttpError(400)):
        async with web.open(permission__allow=["WebFetch"]) as session:
            (result,) = results(await turn(session))

    assert "could not be asked: " in result.text
    assert "The seed was 1234." in result.text


async def test_prompt_behind_a_gateway_is_answered_by_the_own_model(web: Web) -> None:
    fetching = call("WebFetch", fetch("/paper", prompt="Which seed?").input)
    with web.place.answering(fetching, say("It was 1234."), say("done")) as place:
        async with web.open(permission__allow=["WebFetch"]) as session:
            (result,) = results(await turn(session))

    assert "It was 1234." in result.text
    assert place.server is not None
    conversation, question, _ = (request.body["model"] for request in place.server.requests)
    assert question == conversation
