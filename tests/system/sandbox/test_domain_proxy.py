"""Real programs in real boxes, whose only network is the proxy. The servers that they reach stand on the loopback."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream
from anyio.streams.tls import TLSStream

from panpan.errors import ConfigError, ToolError
from panpan.system.processes.process import ProcessEnded, capture, run_process
from panpan.system.sandbox.bubblewrap import Bubblewrap
from panpan.system.sandbox.choice import PLACES
from panpan.system.sandbox.domain_proxy import MAX_COMMANDS, MAX_CONNECTIONS, MAX_LOOKUPS, CommandProxy, DomainAccess
from panpan.system.sandbox.landlock import Landlock, landlock_version
from panpan.system.sandbox.profile import PROXY_PORT, Profile, Sandbox, workspace_write
from tests.fakes.outside import PUBLIC, Network, Server, serving
from tests.needed_programs import need
from tests.system.backends import on_both_backends, run_on, until
from tests.system.sandbox.boxes import ENV, made, names

NOT_GRANTED = '{0} is not among the granted domains; "{0}" in sandbox.domains would grant it, or --allow-network={0}'


@dataclass
class Ended:
    exit_code: int
    output: str


@dataclass
class Commands:
    """Commands in boxes, with the proxy as their network."""

    sandbox: Sandbox
    access: DomainAccess
    workspace: Path

    @property
    def profile(self) -> Profile:
        return workspace_write([self.workspace])

    async def run(self, script: str, *arguments: object, proxy: CommandProxy | None = None) -> Ended:
        """Run a script for bash, the arguments as `$1` and so on, with an entrance of its own unless it has one."""
        return await self.start(["/bin/bash", "-c", script, "bash", *map(str, arguments)], proxy)

    async def start(self, argv: Sequence[str], proxy: CommandProxy | None = None) -> Ended:
        with closing(proxy or self.access.open()) as entrance:
            profile = replace(self.profile, proxy=entrance.endpoint)
            with self.sandbox.wrap(argv, profile, self.workspace) as boxed:
                process = run_process(
                    boxed.argv,
                    cwd=self.workspace,
                    env=ENV | entrance.environment(),
                    timeout_s=60,
                    pass_fds=boxed.pass_fds,
                )
                output, exit_code = bytearray(), -1
                async with aclosing(process) as chunks:
                    async for chunk in chunks:
                        if isinstance(chunk, ProcessEnded):
                            exit_code = chunk.exit_code
                        else:
                            output += chunk
        return Ended(exit_code, output.decode())


@asynccontextmanager
async def commands(
    tmp_path: Path, network: Network, domains: Sequence[str] = ("example.org",)
) -> AsyncGenerator[Commands, None]:
    sandbox = await made("bubblewrap")
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    async with DomainAccess(domains, resolve=network.resolve, dial=network.dial) as access:
        yield Commands(sandbox, access, workspace)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate and its key for example.org that nobody has signed."""
    need("openssl")
    place = tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=example.org", "-addext", "subjectAltName=DNS:example.org", "-keyout", place, "-out",
         tmp_path / "signed.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    place.write_bytes(place.read_bytes() + (tmp_path / "signed.pem").read_bytes())
    return place


@asynccontextmanager
async def serving_files(folder: Path, certificate: Path) -> AsyncGenerator[int, None]:
    """Serve the files of a folder over TLS, to each connection one."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def serve(plain: SocketStream) -> None:
        async with await TLSStream.wrap(
            plain, server_side=True, ssl_context=context, standard_compatible=False
        ) as stream:
            request = b""
            while b"\r\n\r\n" not in request:
                request += await stream.receive()
            path = folder / request.split()[1].decode().partition("?")[0].lstrip("/")
            found = path.is_file()
            body = path.read_bytes() if found else b""
            head = f"HTTP/1.1 {'200 OK' if found else '404 Not Found'}\r\nContent-Length: {len(body)}\r\n"
            await stream.send(head.encode() + b"Connection: close\r\n\r\n" + body)

    async with serving(serve) as port:
        yield port


@on_both_backends
def test_curl_reaches_only_granted_hosts(backend: str, tmp_path: Path) -> None:
    need("curl")

    async def main() -> None:
        network = Network()
        async with serving(Server().serve) as network.ports[PUBLIC, 80], commands(tmp_path, network) as box:
            with closing(box.access.open()) as proxy:
                ended = await box.run("curl -sS http://example.org/; curl -sS https://evil.org/", proxy=proxy)

        assert ended.output.startswith("hello")
        assert ended.exit_code == 56  # what it says of a proxy that refuses
        assert proxy.refused == (NOT_GRANTED.format("evil.org"),)
        assert proxy.missing_hosts == ("evil.org",)
        assert network.dialled == [(PUBLIC, 80)]

    run_on(backend, main)


async def test_curl_shows_the_setting_of_a_refusal(tmp_path: Path) -> None:
    need("curl")
    async with commands(tmp_path, Network()) as box:
        plain = await box.run("curl -sS http://evil.org/")
        tunnel = await box.run("curl -sSv https://evil.org/")

    for ended in (plain, tunnel):
        assert '"evil.org" in sandbox.domains would grant it' in ended.output


async def test_programs_that_know_proxies_work_over_tls(tmp_path: Path, certificate: Path) -> None:
    need("curl")
    network, folder = Network(), tmp_path / "served"
    folder.mkdir()
    (folder / "file").write_text("from the server\n")
    code = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode(), end='')"
    async with serving_files(folder, certificate) as network.ports[PUBLIC, 443], commands(tmp_path, network) as box:
        curl = await box.run("curl -sS --cacert $1 https://example.org/file", certificate)
        python = await box.run(
            'SSL_CERT_FILE=$1 $2 -c "$3" https://example.org/file', certificate, sys.executable, code
        )

    assert (curl.output, curl.exit_code) == ("from the server\n", 0)
    assert (python.output, python.exit_code) == ("from the server\n", 0)


async def test_git_clones_from_a_granted_host(tmp_path: Path, certificate: Path) -> None:
    need("git")
    network, folder = Network(), tmp_path / "served"
    script = (
        "git init -q work && cd work && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first"
        " && cd .. && git clone -q --bare work served/repo.git && git -C served/repo.git update-server-info"
    )
    await anyio.run_process(["/bin/sh", "-c", script], cwd=tmp_path, env=ENV)
    async with serving_files(folder, certificate) as network.ports[PUBLIC, 443], commands(tmp_path, network) as box:
        ended = await box.run(
            "GIT_SSL_CAINFO=$1 git clone -q https://example.org/repo.git cloned && git -C cloned log --format=%s",
            certificate,
        )

    assert (ended.output, ended.exit_code) == ("first\n", 0)


async def test_box_without_the_proxy_has_no_way_out(tmp_path: Path) -> None:
    code = """
import socket, sys
for family, kind, address in (
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(sys.argv[1]))),
    (socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 80)),
    (socket.AF_UNIX, socket.SOCK_STREAM, sys.argv[2]),
):
    try:
        socket.socket(family, kind).connect(address)
        print("reached", address)
    except OSError:
        pass
"""
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        unix.listen()
        async with serving(Server().serve) as port, commands(tmp_path, Network()) as box:
            ended = await box.start([sys.executable, "-c", code, str(port), str(tmp_path / "socket")])

    assert (ended.output, ended.exit_code) == ("", 0)


async def test_name_that_leads_into_this_machine_is_not_followed(tmp_path: Path) -> None:
    need("curl")
    network = Network(names={"example.org": ["127.0.0.1"]})
    async with serving(Server().serve) as port:
        network.ports = {("127.0.0.1", 80): port, ("127.0.0.1", port): port}
        async with commands(tmp_path, network, ("example.org", f"localhost:{port}")) as box:
            with closing(box.access.open()) as proxy:
                rebinding = await box.run("curl -sS http://example.org/", proxy=proxy)
            named = await box.run("curl -sS http://localhost:$1/", port)

    assert "not a public address" in rebinding.output
    assert len(proxy.refused) == 1
    assert "not a public address" in proxy.refused[0]
    assert named.output == "hello"
    assert network.dialled == [("127.0.0.1", port)]


async def test_host_named_like_a_group_of_hosts_is_never_offered(tmp_path: Path) -> None:
    need("curl")
    network = Network()
    async with commands(tmp_path, network) as box:
        with closing(box.access.open()) as proxy:
            await box.run("curl -sS http://package-indexes/", proxy=proxy)

    assert proxy.refused
    assert proxy.missing_hosts == ()


async def test_redirect_is_a_new_question(tmp_path: Path) -> None:
    need("curl")
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://evil.org/next\r\nContent-Length: 0\r\n\r\n"
    network = Network()
    async with serving(Server(answer=answer).serve) as network.ports[PUBLIC, 80], commands(tmp_path, network) as box:
        with closing(box.access.open()) as proxy:
            ended = await box.run("curl -sSL http://example.org/", proxy=proxy)

    assert "evil.org is not among the granted domains" in ended.output
    assert proxy.refused == (NOT_GRANTED.format("evil.org"),)


async def test_own_server_of_a_command_is_reached_without_the_proxy(tmp_path: Path) -> None:
    code = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for host in ("127.0.0.1", "localhost"):
    print(urllib.request.urlopen(f"http://{host}:{server.server_port}/").status)
"""
    async with commands(tmp_path, Network()) as box:
        with closing(box.access.open()) as proxy:
            ended = await box.start([sys.executable, "-c", code], proxy)

    assert "200\n" in ended.output
    assert ended.exit_code == 0
    assert proxy.refused == ()


async def test_refusals_are_reported_once_to_their_own_command(tmp_path: Path) -> None:
    need("curl")
    async with commands(tmp_path, Network()) as box:
        with closing(box.access.open()) as first, closing(box.access.open()) as second:
            async with anyio.create_task_group() as task_group:
                for proxy, host in ((first, "one.org"), (second, "two.org")):
                    script = "for i in 1 2; do curl -s http://$1/ https://$1/; done"
                    task_group.start_soon(
                        lambda script=script, host=host, proxy=proxy: box.run(script, host, proxy=proxy)
                    )

    assert [proxy.refused for proxy in (first, second)] == [
        (NOT_GRANTED.format("one.org"),),
        (NOT_GRANTED.format("two.org"),),
    ]


async def test_command_inherits_nothing_of_the_proxy(tmp_path: Path) -> None:
    async with commands(tmp_path, Network()) as box:
        ended = await box.run("ls /proc/self/fd; ls -l /proc/self/fd | grep -c socket")

    assert ended.output.split() == ["0", "1", "2", "3", "0"]  # 3 is the folder that ls reads


async def test_proxy_is_closed_to_other_programs_of_the_machine(tmp_path: Path) -> None:
    async with commands(tmp_path, Network()) as box:
        with closing(box.access.open()) as proxy:

            async def look() -> None:
                await until((box.workspace / "ready").exists)
                with pytest.raises(OSError, match="connect"):
                    await anyio.connect_tcp("127.0.0.1", PROXY_PORT)
                (box.workspace / "go").touch()

            async with anyio.create_task_group() as task_group:
                task_group.start_soon(look)
                ended = await box.run("touch ready; until [ -e go ]; do sleep 0.01; done; echo went", proxy=proxy)

    assert ended.output == "went\n"


async def test_command_starts_as_without_the_proxy(tmp_path: Path) -> None:
    async with commands(tmp_path, Network()) as box:
        assert (await box.run("exit 7")).exit_code == 7
        assert (await box.run("kill -TERM $$")).exit_code == 128 + 15
        assert (await box.start(["/no/such/program"])).exit_code == 127
        assert (await box.run("trap - PIPE; yes | head -n 1; echo ${PIPESTATUS[0]}")).output == f"y\n{128 + 13}\n"
        (box.workspace / "file").write_text("x")
        assert (await box.start([str(box.workspace / "file")])).exit_code == 126


async def test_background_command_keeps_its_network_until_it_ends(tmp_path: Path) -> None:
    need("curl")
    network = Network()
    async with serving(Server().serve) as network.ports[PUBLIC, 80], commands(tmp_path, network) as box:
        script = (
            "(until [ -e go ]; do sleep 0.01; done; curl -s http://example.org/ >got) >/dev/null 2>&1 & echo started"
        )
        ended = await box.run(script)
        assert (ended.output, box.access.commands) == ("started\n", 1)

        (box.workspace / "go").touch()
        await until(lambda: box.access.commands == 0)

    assert (box.workspace / "got").read_text() == "hello"


async def test_proxy_of_a_box_that_never_started_is_returned(tmp_path: Path) -> None:
    async with commands(tmp_path, Network()) as box:
        await box.run("true")
        await until(lambda: box.access.commands == 0)
        before = names(Path("/proc/self/fd"))
        for _ in range(3):
            with closing(box.access.open()):
                pass
        await until(lambda: box.access.commands == 0)
        with closing(box.access.open()), pytest.raises(ToolError):
            await capture(["/no/such/bwrap"], cwd=tmp_path, env={}, timeout_s=1)
        await box.run("true")
        await until(lambda: box.access.commands == 0)

        assert names(Path("/proc/self/fd")) == before


@on_both_backends
def test_proxy_opened_as_the_session_ends_is_returned(backend: str) -> None:
    async def main() -> None:
        before = names(Path("/proc/self/fd"))
        async with DomainAccess(["example.org"]) as access:
            access.open().close()

        assert names(Path("/proc/self/fd")) == before

    run_on(backend, main)


@on_both_backends
def test_session_end_ends_every_connection(backend: str, tmp_path: Path) -> None:
    need("curl")
    left = anyio.Event()

    async def patient(stream: SocketStream) -> None:
        reached.set()
        async for _ in stream:
            pass
        left.set()

    async def main() -> None:
        nonlocal left, reached
        left, reached = anyio.Event(), anyio.Event()
        network = Network()
        async with serving(patient) as network.ports[PUBLIC, 80], anyio.create_task_group() as task_group:
            async with commands(tmp_path, network) as box:
                task_group.start_soon(box.run, "curl -s http://example.org/; echo")
                await reached.wait()
            await left.wait()

    reached = left
    run_on(backend, main)


@pytest.mark.parametrize("kind", ["datagrams", "not listening", "another port", "all addresses", "nothing", "unix"])
async def test_proxy_takes_only_a_listening_socket_of_its_port(kind: str) -> None:
    async with DomainAccess(["example.org"]) as access:
        with closing(access.open()) as proxy, socket.socket(fileno=os.dup(proxy.endpoint.handover_fd)) as handover:
            made_kind = socket.SOCK_DGRAM if kind == "datagrams" else socket.SOCK_STREAM
            with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET, made_kind) as sent:
                if kind == "another port":
                    sent.bind(("127.0.0.1", 0))
                elif kind == "all addresses":
                    sent.bind(("0.0.0.0", PROXY_PORT))
                if kind in ("another port", "all addresses"):
                    sent.listen()
                handed = [] if kind == "nothing" else [sent.fileno()]
                socket.send_fds(handover, [b"\n"], handed) if handed else handover.send(b"\n")

                await until(lambda: access.commands == 0)


async def test_proxies_are_limited_by_number_of_commands(tmp_path: Path) -> None:
    async with commands(tmp_path, Network()) as box:
        proxies = [box.access.open() for _ in range(MAX_COMMANDS)]
        with pytest.raises(ToolError, match=f"{MAX_COMMANDS} commands use the network"):
            box.access.open()
        for proxy in proxies:
            proxy.close()
        await until(lambda: box.access.commands == 0)
        box.access.open().close()


async def test_connections_over_the_limit_are_told_so(tmp_path: Path) -> None:
    code = """
import socket, sys
open_ones = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]) + 1)]
print(open_ones[-1].recv(1000).decode())
"""
    async with commands(tmp_path, Network()) as box:
        ended = await box.start([sys.executable, "-c", code, str(PROXY_PORT), str(MAX_CONNECTIONS)])
        await until(lambda: box.access.commands == 0)
        later = await box.run("exec 3<>/dev/tcp/127.0.0.1/$1; printf 'x\\r\\n\\r\\n' >&3; head -c 12 <&3", PROXY_PORT)

    assert ended.output.startswith("HTTP/1.1 503 panpan: ")
    assert later.output == "HTTP/1.1 400"  # the others count no more


async def test_name_lookups_are_limited(tmp_path: Path) -> None:
    looking, most, as_many_as_may = 0, 0, anyio.Event()

    async def resolve(host: str, port: int) -> Sequence[str]:
        nonlocal looking, most
        looking += 1
        most = max(most, looking)
        if looking == MAX_LOOKUPS:
            as_many_as_may.set()
        with anyio.move_on_after(10):
            await as_many_as_may.wait()
        await anyio.sleep(0.01)
        looking -= 1
        return []

    network = Network()
    network.resolve = resolve  # type: ignore[method-assign]
    async with commands(tmp_path, network, ["*.example.org"]) as box:
        await box.run("for i in {1..20}; do curl -s http://$i.example.org/ & done; wait")

    assert most == MAX_LOOKUPS


async def test_proxy_fault_costs_one_connection_and_is_reported(tmp_path: Path) -> None:
    need("curl")

    async def resolve(host: str, port: int) -> Sequence[str]:
        raise ZeroDivisionError

    network = Network()
    network.resolve = resolve  # type: ignore[method-assign]
    async with commands(tmp_path, network) as box:
        with closing(box.access.open()) as proxy:
            ended = await box.run("curl -s http://example.org/; curl -sS http://evil.org/", proxy=proxy)

    assert "evil.org is not among" in ended.output
    assert "failed unexpectedly: ZeroDivisionError" in proxy.refused[0]
    assert proxy.refused[1:] == (NOT_GRANTED.format("evil.org"),)


def test_invalid_domain_is_an_error_of_the_settings() -> None:
    with pytest.raises(ConfigError, match=r"sandbox\.domains holds 'https://pypi\.org', which is not a domain: write"):
        DomainAccess(["https://pypi.org"])


@pytest.mark.parametrize("has_user_namespace", [False, True])
async def test_proxy_works_with_and_without_a_user_namespace(tmp_path: Path, has_user_namespace: bool) -> None:
    need("curl")
    network = Network()
    async with serving(Server().serve) as network.ports[PUBLIC, 80], commands(tmp_path, network) as box:
        if os.geteuid() != 0 and not has_user_namespace:
            pytest.skip("only root needs no user namespace")
        box.sandbox = Bubblewrap(str(shutil.which("bwrap", path=PLACES)), has_user_namespace=has_user_namespace)
        ended = await box.run("curl -sS http://example.org/")
        if "namespace" in ended.output:
            pytest.skip(ended.output)

    assert ended.output == "hello"


async def test_landlock_grants_no_single_domains_and_no_network(tmp_path: Path) -> None:
    try:
        sandbox = Landlock(landlock_version())
    except ToolError as exc:
        pytest.skip(str(exc))
    async with serving(Server().serve) as port, DomainAccess(["example.org"]) as access:
        box = Commands(sandbox, access, tmp_path)
        ended = await box.run("exec 3<>/dev/tcp/127.0.0.1/$1", port)

    assert not sandbox.can_grant_domains
    assert any("single domains cannot be granted" in limit for limit in sandbox.limits)
    assert ended.exit_code != 0
