"""Whatever a page tries, it comes out at the proxy or nowhere."""

from string import Template

import pytest

from panpan.capabilities.web.browser.browser import Browser
from panpan.errors import ToolError
from panpan.system.web.url_guard import PlainUrl
from tests.capabilities.web.browser.patience import rendered
from tests.fakes.outside import PUBLIC, Network, anywhere
from tests.fakes.web_site import Answer, Forbidden, Site, quoted

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOST = "http://paper.example.org"

WAYS = Template("""<!doctype html><title>ways</title><body>
<p id="said">begun</p>
<script>
for (const T of $targets) {
  const add = (tag, attributes, place) => {
    const one = document.createElement(tag);
    Object.assign(one, attributes);
    (place || document.body).append(one);
    return one;
  };
  const go = (way) => T + "/" + way;
  const tried = (act) => { try { act(); } catch (exc) { console.log(exc); } };
  fetch(go("fetch"), {mode: "no-cors"}).catch(() => 0);
  tried(() => { const x = new XMLHttpRequest(); x.open("GET", go("xhr")); x.onerror = () => 0; x.send(); });
  navigator.sendBeacon(go("beacon"), "x");
  tried(() => new WebSocket(T.replace("http", "ws") + "/websocket"));
  tried(() => new EventSource(go("events")));
  add("img", {src: go("image")});
  add("script", {src: go("script")});
  add("iframe", {src: go("frame")});
  add("iframe", {srcdoc: `<img src="$${go("image-in-frame")}">`});
  add("object", {data: go("object")});
  add("embed", {src: go("embed")});
  add("video", {src: go("video"), preload: "auto"});
  add("link", {rel: "stylesheet", href: go("style")}, document.head);
  add("link", {rel: "prefetch", href: go("prefetch")}, document.head);
  add("link", {rel: "preload", as: "image", href: go("preload")}, document.head);
  add("link", {rel: "modulepreload", href: go("module")}, document.head);
  add("link", {rel: "preconnect", href: T}, document.head);
  add("link", {rel: "dns-prefetch", href: T}, document.head);
  add("style", {textContent: `body { background: url("$${go("background")}") }`}, document.head);
  add("iframe", {name: "posted" + T});
  add("form", {action: go("form"), method: "post", target: "posted" + T}).submit();
  tried(() => open(go("window")));
  tried(() => new WebTransport(T.replace("http:", "https:") + "/transport").ready.catch(() => 0));
  tried(() => import(go("import")).catch(() => 0));
  const rules = {prefetch: [{source: "list", urls: [go("speculation")], eagerness: "immediate"}]};
  add("script", {type: "speculationrules", textContent: JSON.stringify(rules)});
  const w = "fetch('" + go("WORKER") + "', {mode: 'no-cors'}).catch(() => 0)";
  tried(() => new Worker(URL.createObjectURL(new Blob([w.replace("WORKER", "worker")]))));
  tried(() => new Worker("/worker.js?" + encodeURIComponent(go("imported"))));
  tried(() => new SharedWorker("/worker.js?" + encodeURIComponent(go("shared-worker"))));
  tried(() => navigator.serviceWorker.register("/service.js?" + encodeURIComponent(go("service"))).catch(() => 0));
  tried(() => {
    const address = T.replace("http://", "").replace(/\\/.*/, "");
    const servers = [{urls: "stun:" + address},
                     {urls: "turn:" + address + "?transport=tcp", username: "a", credential: "b"},
                     {urls: "turn:" + address, username: "a", credential: "b"}];
    const peer = new RTCPeerConnection({iceServers: servers, iceCandidatePoolSize: 2});
    peer.createDataChannel("x");
    peer.createOffer().then((offer) => peer.setLocalDescription(offer));
    const port = address.split(":").pop();
    const candidate = `candidate:1 1 PROTOCOL 2122260223 127.0.0.1 $${port} typ host`;
    const other = new RTCPeerConnection();
    other.createDataChannel("y");
    other.createOffer().then(async (offer) => {
      await peer.setRemoteDescription({type: "offer", sdp: offer.sdp}).catch(() => 0);
      for (const one of ["udp", "tcp"])
        peer.addIceCandidate({candidate: candidate.replace("PROTOCOL", one), sdpMid: "0"}).catch(() => 0);
    });
  });
}
document.getElementById("said").textContent = "done";
</script>""")

OF_EVERY_PAGE = {
    "fetch", "xhr", "beacon", "websocket", "events", "image", "script", "frame", "image-in-frame", "object", "embed",
    "video", "style", "prefetch", "preload", "module", "background", "form", "worker", "imported", "shared-worker",
    "import", "report",
}  # fmt: skip


@pytest.fixture(autouse=True)
def workers(site: Site) -> None:
    script = {"Content-Type": "text/javascript"}
    site.pages["/worker.js"] = Answer("importScripts(decodeURIComponent(location.search.slice(1)))", headers=script)
    site.pages["/service.js"] = Answer(
        "fetch(decodeURIComponent(location.search.slice(1)), {mode: 'no-cors'}).catch(() => 0);"
        "self.addEventListener('install', () => skipWaiting())",
        headers=script,
    )


def ways(*targets: str) -> Answer:
    reports = " ".join(f"{target}/report" for target in targets)
    return Answer(
        WAYS.substitute(targets=f"[{','.join(map(quoted, targets))}]"),
        headers={"Content-Security-Policy-Report-Only": f"object-src 'none'; report-uri {reports}"},
    )


async def test_page_requests_all_lead_to_a_public_host(browser: Browser, site: Site) -> None:
    site.pages["/ways"] = ways("http://cdn.example.net/out")

    def arrived() -> set[str]:
        return {path.removeprefix("/out/") for path in site.paths() if path.startswith("/out/")}

    url = f"{HOST}/ways"
    page = await rendered(browser, url, lambda page: "done" in page.html and arrived() >= OF_EVERY_PAGE, first_s=1.5)

    assert "done" in page.html
    assert arrived() >= OF_EVERY_PAGE
    assert "/service.js" not in "".join(site.paths())  # service workers are blocked


async def test_page_requests_never_reach_this_machine_or_network(
    browser: Browser, site: Site, forbidden: Forbidden, network: Network
) -> None:
    hosts = (
        "127.0.0.1",
        "localhost",
        "inside.example.org",
        "proxy.panpan.invalid",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "2130706433",
        "x.localhost",
    )
    site.pages["/ways"] = ways(*(f"http://{host}:{forbidden.port}" for host in hosts), "http://169.254.169.254")
    network.dialled.clear()

    page = await rendered(browser, f"{HOST}/ways", lambda page: "done" in page.html, first_s=2)

    assert "done" in page.html
    assert forbidden.reached == []
    assert {port for _, port in network.dialled} == {80}
    assert any("not a public address" in note for note in page.notes)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "mixed.example.org"])
async def test_redirect_into_this_machine_is_reported_as_refused(
    browser: Browser, site: Site, forbidden: Forbidden, host: str
) -> None:
    site.pages["/sent-on"] = Answer(status=302, headers={"Location": f"http://{host}:{forbidden.port}/"})

    with pytest.raises(ToolError, match=r"not a public address|a host in this machine"):
        await browser.render(f"{HOST}/sent-on", wait_s=0, scroll="none", allow=anywhere)

    assert forbidden.reached == []


@pytest.mark.parametrize(
    "body",
    [
        "<meta http-equiv=refresh content='0; url=TARGET'>",
        "<script>location = 'TARGET'</script>",
        "<form id=f method=post action='TARGET'></form><script>f.submit()</script>",
    ],
    ids=["meta-refresh", "script", "form"],
)
async def test_page_that_goes_into_this_machine_stays_with_a_note(
    browser: Browser, site: Site, forbidden: Forbidden, body: str
) -> None:
    site.pages["/leaves"] = Answer("<p>here</p>" + body.replace("TARGET", f"http://127.0.0.1:{forbidden.port}/"))

    page = await rendered(browser, f"{HOST}/leaves", lambda page: page.notes)

    assert "here" in page.html
    assert any("127.0.0.1 is not a public address" in note for note in page.notes)
    assert forbidden.reached == []


async def test_page_reaches_no_files_or_browser_pages(browser: Browser, site: Site) -> None:
    targets = [
        "file:///etc/passwd",
        "chrome://version",
        "view-source:http://paper.example.org/",
        "data:text/html,inside",
    ]
    tries = ";".join(f"try {{ location = {quoted(one)} }} catch (exc) {{}}; open({quoted(one)})" for one in targets)
    frames = "".join(f"<iframe src='{one}'></iframe>" for one in targets[:3])
    site.pages["/local"] = Answer(f"<p>still here</p>{frames}<script>{tries}</script>")

    page = await browser.render(f"{HOST}/local", wait_s=0.5, scroll="none", allow=anywhere)

    assert page.url == f"{HOST}/local"
    assert "still here" in page.html


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "chrome://version",
        "http://127.0.0.1/",
        "view-source:http://example.org",
        "data:text/html,x",
    ],
)
async def test_address_outside_the_public_web_is_not_opened(browser: Browser, url: str) -> None:
    with pytest.raises(ToolError):
        await browser.render(url, wait_s=0, scroll="none", allow=anywhere)


async def test_tunnel_into_this_machine_is_reported_as_refused(browser: Browser, forbidden: Forbidden) -> None:
    with pytest.raises(ToolError, match="not a public address"):
        await browser.render(f"https://inside.example.org:{forbidden.port}/", wait_s=0, scroll="none", allow=anywhere)

    assert forbidden.reached == []


def only_here(plain: PlainUrl) -> None:
    if plain.host != "paper.example.org":
        raise ToolError(f"sent on to {plain.host}")


async def test_redirect_to_a_host_nobody_allowed_is_not_followed(
    browser: Browser, site: Site, network: Network
) -> None:
    site.pages["/sent-on"] = Answer(status=302, headers={"Location": "http://cdn.example.net/elsewhere"})
    network.dialled.clear()

    with pytest.raises(ToolError, match=r"^sent on to cdn\.example\.net$"):
        await browser.render(f"{HOST}/sent-on", wait_s=0, scroll="none", allow=only_here)

    assert {address for address, _ in network.dialled} == {PUBLIC}
    assert "/elsewhere" not in site.paths()


@pytest.mark.parametrize(
    "way",
    [
        "<meta http-equiv=refresh content='0; url=TARGET'>",
        "<script>setTimeout(() => location.replace('TARGET'), 100)</script>",
        "<form id=f method=post action='TARGET'></form><script>f.submit()</script>",
        "<a id=a target=_top href='TARGET'>x</a><iframe srcdoc='<script>parent.a.click()</script>'></iframe>",
        "<script>location = '/bounce'</script>",
    ],
    ids=["refresh", "later", "form", "frame", "bounce"],
)
async def test_page_stays_at_the_allowed_hosts(browser: Browser, site: Site, way: str) -> None:
    target = "http://cdn.example.net/elsewhere"
    site.requests.clear()
    site.pages["/elsewhere"] = Answer("<p>elsewhere")
    site.pages["/bounce"] = Answer(status=303, headers={"Location": target})
    site.pages["/leaves"] = Answer(f"<p>still here{way.replace('TARGET', target)}")

    page = await rendered(browser, f"{HOST}/leaves", lambda page: page.notes, allow=only_here)

    assert page.url == f"{HOST}/leaves"
    assert "still here" in page.html
    assert "sent on to cdn.example.net" in page.notes
    assert ("GET", "/elsewhere") not in {(method, path) for method, path, _ in site.requests}


async def test_parts_of_other_hosts_are_loaded(browser: Browser, site: Site) -> None:
    site.pages["/part"] = Answer("<p>a part")
    site.pages["/whole"] = Answer("<iframe id=f src='http://cdn.example.net/part'></iframe>")
    site.requests.clear()

    url = f"{HOST}/whole"
    page = await rendered(browser, url, lambda _: "/part" in site.paths(), first_s=0.3, allow=only_here)

    assert page.notes == ()
    assert "/part" in site.paths()
