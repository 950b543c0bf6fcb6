"""Rules for Seatbelt: what they say, on any system; what they hold is shown by the tests of all boxes, on a Mac."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path, PurePosixPath

import anyio
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from panpan.system.files.canonical import is_below
from panpan.system.processes.process import capture
from panpan.system.sandbox.choice import find_sandbox
from panpan.system.sandbox.domain_proxy import DomainAccess
from panpan.system.sandbox.profile import ALWAYS, Profile, ProxyEndpoint, read_only, workspace_write
from panpan.system.sandbox.seatbelt import Seatbelt, kernel_name, rules
from tests.fakes.outside import PUBLIC, Network, Server, serving
from tests.needed_programs import need
from tests.system.backends import on_both_backends, run_on, until
from tests.system.sandbox.boxes import ENV, Box, captured
from tests.system.sandbox.seatbelt_rules import Pattern, Rules, Text, read

READS = ("file-read-data", "file-read-xattr")
WRITES = (
    "file-write-create", "file-write-data", "file-write-mode", "file-write-owner", "file-write-times",
    "file-write-flags", "file-write-xattr", "file-write-acl", "file-write-setugid",
)  # fmt: skip
NAMES_OF_PLACE = ("link", "clone")


def compiled(profile: Profile) -> Rules:
    text, parameters = rules(profile)
    return Rules(text, {name: str(place) for place, name in parameters.items()})


WORKSPACE, HOME, TEMPORARY = Path("/Users/me/ws"), Path("/Users/me"), Path("/private/var/folders/x/T/panpan-1")
WORKS = Profile(
    writable=(WORKSPACE, TEMPORARY, WORKSPACE / ".panpan/trees/one", Path("/Users/me/notes.txt")),
    protected=(*(WORKSPACE / name for name in ALWAYS), WORKSPACE / "sub/nested/.git", Path("/Users/me/.panpan")),
    held=(WORKSPACE, Path("/Users/me/.panpan")),
).hiding([Path("/Users/me/.ssh"), Path("/Users/me/.panpan"), WORKSPACE / ".env", WORKSPACE / "web/secret"])
UNASKED = WORKS.hiding([HOME, HOME / "tool/.aws"], shown=[HOME / "tool", HOME / "link"])

PROMISES: Sequence[tuple[str, Profile, str, str, bool]] = [
    ("a file of the workspace is written", WORKS, "file-write-data", "/Users/me/ws/src/module.py", True),
    ("a new one is made", WORKS, "file-write-create", "/Users/me/ws/new", True),
    ("one is removed", WORKS, "file-write-unlink", "/Users/me/ws/src/module.py", True),
    ("a temporary file is made", WORKS, "file-write-create", f"{TEMPORARY}/x", True),
    ("a single file that is open", WORKS, "file-write-data", "/Users/me/notes.txt", True),
    ("and nothing beside it", WORKS, "file-write-create", "/Users/me/notes.txt2", False),
    ("a folder with the same beginning is none of it", WORKS, "file-write-create", "/Users/me/ws2/new", False),
    ("the shared folder for temporary files", WORKS, "file-write-create", "/private/tmp/x", False),
    ("the folder around temporary files", WORKS, "file-write-create", "/private/var/folders/x/T/x", False),
    ("the user's files", WORKS, "file-write-data", "/Users/me/.zshrc", False),
    ("the system", WORKS, "file-write-create", "/usr/local/bin/x", False),
    ("metadata of git", WORKS, "file-write-data", "/Users/me/ws/.git/config", False),
    ("a new hook", WORKS, "file-write-create", "/Users/me/ws/.git/hooks/post-checkout", False),
    ("git's folder, where there is none", WORKS, "file-write-create", "/Users/me/ws/.git", False),
    ("the same in other letters", WORKS, "file-write-create", "/Users/me/ws/.Git", False),
    ("and in it", WORKS, "file-write-create", "/Users/me/ws/.GIT/config", False),
    ("a name that only begins like it", WORKS, "file-write-create", "/Users/me/ws/.gitignore", True),
    ("one deeper down, which is not known", WORKS, "file-write-create", "/Users/me/ws/clone/.git", True),
    ("one deeper down, which is", WORKS, "file-write-data", "/Users/me/ws/sub/nested/.git/config", False),
    ("the folder around it is moved away", WORKS, "file-write-unlink", "/Users/me/ws/sub/nested", False),
    ("and that one", WORKS, "file-write-unlink", "/Users/me/ws/sub", False),
    ("and the workspace", WORKS, "file-write-unlink", "/Users/me/ws", False),
    ("metadata of git are read", WORKS, "file-read-data", "/Users/me/ws/.git/config", True),
    ("a folder within a protected one, named all the same", WORKS, "file-write-create",
     "/Users/me/ws/.panpan/trees/one/x", True),
    ("and nothing beside it", WORKS, "file-write-create", "/Users/me/ws/.panpan/trees/x", False),
    ("a secret folder", WORKS, "file-read-data", "/Users/me/.ssh/key", False),
    ("names in it", WORKS, "file-read-data", "/Users/me/.ssh", False),
    ("whether it exists", WORKS, "file-read-metadata", "/Users/me/.ssh", True),
    ("whether something in it exists", WORKS, "file-read-metadata", "/Users/me/.ssh/key", False),
    ("a secret file of the workspace", WORKS, "file-read-data", "/Users/me/ws/.env", False),
    ("it is replaced", WORKS, "file-write-unlink", "/Users/me/ws/.env", False),
    ("a folder with a secret is moved away", WORKS, "file-write-unlink", "/Users/me/ws/web", False),
    ("the rest of the home", WORKS, "file-read-data", "/Users/me/notes", True),
    ("the rest of the home, unasked", UNASKED, "file-read-data", "/Users/me/notes", False),
    ("the workspace, unasked", UNASKED, "file-read-data", "/Users/me/ws/src/module.py", True),
    ("and written", UNASKED, "file-write-create", "/Users/me/ws/src/new", True),
    ("a program of the home", UNASKED, "file-read-data", "/Users/me/tool/bin/run", True),
    ("it is changed", UNASKED, "file-write-data", "/Users/me/tool/bin/run", False),
    ("a secret in it", UNASKED, "file-read-data", "/Users/me/tool/.aws/credentials", False),
    ("a link in the home", UNASKED, "file-read-metadata", "/Users/me/link", True),
    ("the way to the workspace", UNASKED, "file-read-metadata", "/Users/me", True),
    ("names in the home", UNASKED, "file-read-data", "/Users/me", False),
    ("another place of the same volume", WORKS, "file-read-data", "/System/Volumes/Data/Users/me/.ssh/key", False),
    ("the system is read", UNASKED, "file-read-data", "/usr/lib/libSystem.B.dylib", True),
    ("another name for a file", WORKS, "file-link", "/Users/me/ws/src/module.py", False),
    ("a clone of a secret", WORKS, "file-clone", "/Users/me/.ssh/key", False),
    ("nothing", WORKS, "file-write-data", "/dev/null", True),
    ("the controlling terminal", WORKS, "file-read-data", "/dev/tty", True),
    ("a terminal of its own", WORKS, "file-read-data", "/dev/ptmx", True),
    ("the user's terminal", WORKS, "file-read-data", "/dev/ttys000", False),
    ("the disk", WORKS, "file-read-data", "/dev/rdisk0", False),
    ("a command that only looks writes nothing", read_only(), "file-write-create", "/Users/me/ws/new", False),
]  # fmt: skip


@pytest.mark.parametrize(("profile", "operation", "path", "is_allowed"), [case[1:] for case in PROMISES],
                         ids=[f"{case[0]} {case[3]}" for case in PROMISES])  # fmt: skip
def test_seatbelt_rules_keep_their_promises(profile: Profile, operation: str, path: str, is_allowed: bool) -> None:
    assert compiled(profile).decides(operation, path) is is_allowed


PARTS = ("a", "b", "c", ".git", ".env")
places = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map(lambda parts: Path("/w", *parts))
profiles = st.builds(
    lambda writable, protected, hidden, shown: Profile(
        writable=tuple(writable), protected=tuple(protected), held=tuple(writable)
    ).hiding(hidden, shown=shown),
    *(st.lists(places, max_size=3, unique=True) for _ in range(4)),
)


def named(place: Path, path: Path, *, in_any_case: bool) -> bool:
    """Return whether a path is a place or lies in it, the place's own name also in other letters."""
    size = len(place.parts)
    if in_any_case and is_below(path, place.parent) and len(path.parts) >= size:
        return path.parts[size - 1].lower() == place.name
    return is_below(path, place)


def kind_of(profile: Profile, path: Path, kinds: Mapping[str, Sequence[Path]]) -> str:
    """Return the kind of the innermost place that holds a path; of two kinds for one place the later."""
    found = [
        (len(place.parts), order, kind)
        for order, (kind, all_) in enumerate(kinds.items())
        for place in all_
        if named(place, path, in_any_case=kind == "protected" and place.name in ALWAYS)
    ]
    return max(found)[2] if found else "system"


@settings(max_examples=400)
@given(profiles, st.lists(st.sampled_from((*PARTS, ".GIT", ".Git", "d")), max_size=5), st.sampled_from(WRITES))
def test_seatbelt_rules_decide_as_the_profile_says(profile: Profile, parts: list[str], write: str) -> None:
    path = Path("/w", *parts)
    decides = compiled(profile).decides
    shown = [place for place in profile.shown if any(is_below(place, hidden) for hidden in profile.hidden)]
    to_read = {"writable": profile.writable, "hidden": profile.hidden, "shown": shown}
    to_write = {"writable": profile.writable, "protected": profile.protected, "hidden": profile.hidden, "shown": shown}

    for read_ in READS:
        assert decides(read_, str(path)) == (kind_of(profile, path, to_read) != "hidden")
    may_write = kind_of(profile, path, to_write) == "writable"
    assert decides(write, str(path)) == may_write
    if any(is_below(place, path) for place in (*profile.writable, *profile.protected, *profile.hidden)):
        assert not decides("file-write-unlink", str(path))
    else:
        assert decides("file-write-unlink", str(path)) == may_write
    is_on_the_way = any(is_below(place, path) for place in (*profile.writable, *shown, *profile.hidden))
    assert decides("file-read-metadata", str(path)) == (kind_of(profile, path, to_read) != "hidden" or is_on_the_way)
    for name in NAMES_OF_PLACE:
        assert not decides(f"file-{name}", str(path))


hostile = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=40) | st.sampled_from([
    '"))(allow default)', "\n(allow default)\n", '\\")(allow file-write*', "a b", ";", '#"', "=", "-f", "P0=/",
    "(param", "é",
])  # fmt: skip


@given(st.lists(hostile.filter(lambda name: name not in (".", "..")), min_size=4, max_size=4, unique=True))
def test_seatbelt_rules_are_not_changed_by_file_names(names: list[str]) -> None:
    def profile(root: str, inner: str, secret: str, open_: str) -> Profile:
        work = Path("/w", root)
        return Profile(
            writable=(work,), protected=(work / ".git", work / inner), held=(work,), devices=(work / inner,)
        ).hiding([Path("/h") / secret], shown=[Path("/h") / secret / open_])

    assume(len({".git", *names}) == 5)
    text, parameters = rules(profile(*names))
    with Seatbelt(name_of=lambda place: place).wrap(["ls", "-f"], profile(*names), Path("/")) as boxed:
        program, flag, given_text, *options = boxed.argv

    assert text == rules(profile("root", "inner", "secret", "open"))[0] == given_text
    assert (program, flag, options[-3:]) == ("/usr/bin/sandbox-exec", "-p", ["--", "ls", "-f"])
    values = dict(option.removeprefix("-D").split("=", 1) for option in options[:-3])
    assert values == {name: str(place) for place, name in parameters.items()}
    assert set(values.values()) == {str(PurePosixPath("/w", names[0])), *map(str, parameters)}


def texts(of: object) -> Iterator[Text | Pattern]:
    if isinstance(of, Text | Pattern):
        yield of
    elif isinstance(of, list):
        for part in of:
            yield from texts(part)


def test_seatbelt_rules_open_needs_but_no_acting_services() -> None:
    text, _ = rules(WORKS)
    assert ["deny", "file-link", "file-clone"] in read(text)
    allowed = {part.value for rule in read(text) if isinstance(rule, list) and "mach-lookup" in rule
               for part in texts(rule)}  # fmt: skip
    known = {part.value for rule in read(text) if isinstance(rule, list) and "sysctl-read" in rule
             for part in texts(rule)}  # fmt: skip

    assert "com.apple.system.opendirectoryd.libinfo" in allowed
    for part in ("Security", "security", "pasteboard", "pboard", "launch", "lsd", "cfprefs", "coreservices", "trustd"):
        assert not any(part in name for name in allowed)
    assert {"hw.", "kern.argmax"} <= known
    assert not any("kern.procargs2".startswith(name) for name in known)


def test_seatbelt_patterns_are_short_and_rules_ascii() -> None:
    deep = workspace_write([Path("/" + "/".join(["folder"] * 20))])
    deep = replace(deep, writable=(root := Path("/" + "/".join(["folder"] * 20)),),
                   protected=tuple(root / name for name in ALWAYS))  # fmt: skip
    text, _ = rules(deep)

    assert text.isascii()
    assert max(len(part.value) for part in texts(read(text))) < 255


@pytest.mark.parametrize(
    ("profile", "open_", "closed"),
    [
        (read_only(), [], ["network-outbound", "network-bind", "network-inbound"]),
        (read_only(has_network=True), ["network-outbound", "network-bind", "network-inbound"], []),
        (
            replace(read_only(), proxy=ProxyEndpoint(None, 9, ("pypi.org",), 61_999)),
            ["network-outbound"],
            ["network-bind", "network-inbound"],
        ),
    ],
    ids=["none", "all", "single hosts"],
)
def test_seatbelt_rules_open_only_the_granted_network(profile: Profile, open_: list[str], closed: list[str]) -> None:
    found = [rule for rule in read(rules(profile)[0]) if isinstance(rule, list) and rule[0] == "allow"]
    network = [rule for rule in found if any(isinstance(part, str) and "network" in part for part in rule)]
    operations = {part for rule in network for part in rule if isinstance(part, str)} - {"allow"}

    assert operations == set(open_)
    assert operations.isdisjoint(closed)
    if profile.proxy is not None:
        assert network == [["allow", "network-outbound", ["remote", "ip", Text("localhost:61999")]]]
    for rule in network:
        assert all(part != ["remote", "unix-socket"] for part in rule)


def test_seatbelt_passes_descriptors_only_for_single_hosts() -> None:
    proxy = ProxyEndpoint(None, 9, ("pypi.org",), 61_999)
    for profile, fds in ((read_only(), ()), (replace(read_only(), proxy=proxy), (9,)),
                         (replace(read_only(has_network=True), proxy=proxy), ())):  # fmt: skip
        with Seatbelt().wrap(["true"], profile, Path("/")) as boxed:
            assert tuple(boxed.pass_fds) == fds


def test_seatbelt_places_have_their_kernel_names() -> None:
    spelled = {"/tmp": "/private/tmp", "/var": "/private/var", "/users": "/Users"}

    def name_of(place: Path) -> Path:
        return next((Path(to, place.relative_to(of)) for of, to in spelled.items() if is_below(place, Path(of))), place)

    profile = Profile(writable=(Path("/users/me/ws"), Path("/tmp/x")), protected=(Path("/users/me/ws/.git"),))
    with Seatbelt(name_of=name_of).wrap(["true"], profile.hiding([Path("/var/db")]), Path("/")) as boxed:
        places_ = {option.partition("=")[2] for option in boxed.argv if option.startswith("-D")}

    assert places_ == {"/Users/me/ws", "/private/tmp/x", "/Users/me/ws/.git", "/private/var/db"}


def test_kernel_name_of_a_place_is_unique(tmp_path: Path) -> None:
    (tmp_path / "Folder").mkdir()
    (tmp_path / "link").symlink_to("Folder")
    here = kernel_name(tmp_path)

    assert kernel_name(tmp_path / "Folder" / "gone" / "x") == here / "Folder" / "gone" / "x"
    assert kernel_name(tmp_path / "link") == here / "link"
    if sys.platform == "darwin":
        assert kernel_name(Path("/tmp")) == Path("/tmp")
        assert kernel_name(Path("/private/TMP")) in (Path("/private/tmp"), Path("/private/TMP"))


def sandbox_exec(folder: Path, script: str) -> str:
    """Return a program that stands for sandbox-exec; what follows its `--` is the command."""
    program = folder / "sandbox-exec"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    return str(program)


RUNS_ALL = 'while [[ $1 != -- ]]; do shift; done; shift; exec "$@"'


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (RUNS_ALL, "it starts here, but does not keep a command from writing"),
        ("echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71", "Operation not permitted"),
        ("exit 9", "it ended with exit code 9"),
        ('[[ $2 == *mDNSResponder* ]] && { echo "unbound variable: x" >&2; exit 65; }; exit 0', "unbound variable"),
        ('[[ $* == *-DP0=* ]] && exit 64; exit 0', "exit code 64"),
    ],
    ids=["does not hold", "within a sandbox", "failed", "no rule for the network", "no parameters"],
)  # fmt: skip
async def test_sandbox_exec_that_does_not_work_is_skipped(tmp_path: Path, script: str, reason: str) -> None:
    choice = await find_sandbox(platform="darwin", sandbox_exec=sandbox_exec(tmp_path, script))

    assert choice.sandbox is None
    [told] = choice.passed_over
    assert told.startswith("Seatbelt cannot be used: ")
    assert reason in told


async def test_seatbelt_is_the_only_choice_on_a_mac(tmp_path: Path) -> None:
    missing = await find_sandbox(platform="darwin", sandbox_exec=str(tmp_path / "gone"))
    choice = await find_sandbox(platform="darwin", sandbox_exec=sandbox_exec(tmp_path, "exit 0"))

    assert missing.passed_over == (f"Seatbelt cannot be used: {tmp_path / 'gone'} is not there",)
    assert isinstance(choice.sandbox, Seatbelt)
    assert choice.passed_over == ()


@on_both_backends
def test_seatbelt_box_has_its_own_port_while_it_runs(backend: str) -> None:
    async def main() -> None:
        network = Network()
        async with (
            serving(Server().serve) as network.ports[PUBLIC, 80],
            DomainAccess(["example.org"], resolve=network.resolve, dial=network.dial) as access,
        ):
            one, other = access.open(shares_loopback=True), access.open(shares_loopback=True)
            port = one.endpoint.port
            assert one.environment()["https_proxy"] == f"http://127.0.0.1:{port}"
            assert port != other.endpoint.port
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n")
                assert b"200" in await stream.receive()
            one.close()
            await until(lambda: access.commands == 1)
            with pytest.raises(OSError, match="connection attempts failed"):
                await anyio.connect_tcp("127.0.0.1", port)
            other.close()

    run_on(backend, main)


@pytest.mark.skipif(sys.platform != "darwin", reason="only a Mac has Seatbelt")
async def test_boxed_command_reaches_granted_hosts_and_nothing_else(box: Box) -> None:
    if box.sandbox.name != "Seatbelt":
        pytest.skip("about Seatbelt")
    need("curl")
    network = Network()
    async with (
        serving(Server().serve) as network.ports[PUBLIC, 80],
        DomainAccess(["example.org"], resolve=network.resolve, dial=network.dial) as access,
    ):
        with closing(access.open(shares_loopback=True)) as proxy:
            profile = replace(box.profile, proxy=proxy.endpoint)
            script = (
                f"curl -sS http://example.org/; curl -sS --noproxy '*' http://127.0.0.1:{network.ports[PUBLIC, 80]}/"
            )
            with box.sandbox.wrap(["/bin/sh", "-c", script], profile, box.workspace) as wrapped:
                ended = await captured(wrapped, cwd=box.workspace, env=ENV | proxy.environment())

    assert ended.stdout.startswith(b"hello")
    assert ended.stdout.count(b"hello") == 1
    assert ended.exit_code != 0


@pytest.mark.skipif(sys.platform != "darwin", reason="only a Mac has Seatbelt")
async def test_developer_programs_work_in_the_box(box: Box) -> None:
    for argv in (["git", "--version"], ["clang", "--version"], ["make", "--version"], ["node", "-e", "1"]):
        need(argv[0])
        bare = await capture(argv, cwd=box.workspace, env=ENV, timeout_s=60)
        assert (await box.start(argv)).exit_code == bare.exit_code == 0
