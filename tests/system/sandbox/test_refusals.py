from dataclasses import replace
from pathlib import Path

import pytest

from panpan.system.sandbox.profile import Profile, ProxyEndpoint, read_only
from panpan.system.sandbox.refusals import refusal_in
from tests.system.sandbox.boxes import Box

WORKSPACE = Path("/home/me/project")
WORKS = Profile(writable=(WORKSPACE, Path("/tmp/mine")), protected=(WORKSPACE / ".git", WORKSPACE / ".panpan"))
ONLINE = Profile(writable=WORKS.writable, protected=WORKS.protected, has_network=True)
LOOKS = read_only()

ONLY_IN = f"The sandbox lets this command change files only in {WORKSPACE} and /tmp/mine."
NO_FILES = "The sandbox lets this command change no files."
NO_NETWORK = "The sandbox gives this command no network."
NO_SOCKETS = "The sandbox lets this command make no unix sockets, through which it could reach other programs."
NO_NAMESPACES = "The sandbox lets this command make no sandbox, namespaces or mounts of its own."
KEEPS_GIT = f"The sandbox keeps {WORKSPACE}/.git as it is, since it is a protected place."


@pytest.mark.parametrize(
    ("output", "profile", "said"),
    [
        ("touch: cannot touch '/etc/x': Read-only file system", WORKS, ONLY_IN),
        ("touch: cannot touch 'x': Read-only file system", LOOKS, NO_FILES),
        ("OSError: [Errno 30] Read-only file system: '/home/me/.cache/x'\nmore\n", WORKS, ONLY_IN),
        ("Error: EROFS: read-only file system, open '/home/me/.npm/x'", WORKS, ONLY_IN),
        ("touch: cannot touch '/etc/x': Permission denied", WORKS, ONLY_IN),
        ("PermissionError: [Errno 13] Permission denied: 'x'", LOOKS, NO_FILES),
        (f"fatal: Unable to create '{WORKSPACE}/.git/index.lock': Read-only file system", WORKS, KEEPS_GIT),
        ("error: could not lock config file .git/config: Permission denied", WORKS, KEEPS_GIT),
        ("mv: cannot move '.git' to 'g': Device or resource busy", WORKS, KEEPS_GIT),
        ("umount: /mnt: target is busy: Device or resource busy", WORKS, None),
        ("ln: failed to create hard link 'x' => '/etc/x': Invalid cross-device link", WORKS, ONLY_IN),
        (f"touch: cannot touch '{WORKSPACE}/new': Permission denied", WORKS, ONLY_IN),
        (f"cat: {WORKSPACE}/src/mode-000: Permission denied", WORKS, None),
        ("curl: (6) Could not resolve host: example.org", WORKS, NO_NETWORK),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", LOOKS, NO_NETWORK),
        ("OSError: [Errno 101] Network is unreachable", WORKS, NO_NETWORK),
        ("npm error code EAI_AGAIN", WORKS, NO_NETWORK),
        ("go: dial tcp: lookup proxy.golang.org: no such host", WORKS, NO_NETWORK),
        (
            "  in __init__\n    _socket.socket.__init__\nPermissionError: [Errno 1] Operation not permitted",
            WORKS,
            NO_NETWORK,
        ),
        ("curl: (6) Could not resolve host: example.org", ONLINE, None),
        ("permission denied while trying to connect to the Docker daemon socket", ONLINE, NO_SOCKETS),
        ("File 'multiprocessing/connection.py'\nPermissionError: [Errno 1] Operation not permitted", WORKS, NO_SOCKETS),
        ("unshare: unshare failed: Operation not permitted", WORKS, NO_NAMESPACES),
        ("bwrap: No permissions to create new namespace, likely because the kernel", ONLINE, NO_NAMESPACES),
        ("[1:2:FATAL:zygote_host_impl_linux.cc(128)] No usable sandbox! If you are", ONLINE, NO_NAMESPACES),
        ("E   assert 1 == 2", WORKS, None),
        ("", WORKS, None),
    ],
)
def test_refusal_names_the_limit_of_the_box(output: str, profile: Profile, said: str | None) -> None:
    refusal = refusal_in(output, 1, profile)
    assert (refusal and refusal.text) == said
    assert (refusal is not None and refusal.needs_network) == (said == NO_NETWORK)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("fatal: Unable to create '{ws}/clone/.git/index.lock': Read-only file system", "{ws}/clone/.git"),
        ("fatal: Unable to create '{ws}/.git/index.lock': Read-only file system", "{ws}/.git"),
        ("error: could not lock config file .git/config: Read-only file system", "{ws}/clone/.git"),
        ("error: could not lock config file clone/.git/config: Read-only file system", "{ws}/clone/.git"),
        ("error: could not lock config file ../clone/.git/config: Read-only file system", "{ws}/clone/.git"),
        ("cp: cannot create '.github/workflows/x.yml': Read-only file system", "this .github"),
        ("fatal: cannot change '.git/info/x' now: Read-only file system", "{ws}/clone/.git"),
        ("cp: cannot create 'b/.github/workflows/x.yml': Read-only file system", "{ws}/b/.github"),
        ("sed: cannot open src/.vscode/x: Read-only file system", "{ws}/.vscode"),
        ("mkdir: cannot create '.vscode': Read-only file system", "{ws}/.vscode"),
    ],
)
def test_refusal_names_the_place_of_the_message(message: str, told: str, tmp_path: Path) -> None:
    for folder in ("clone/.git/refs", "a/.github/workflows", "b/.github/workflows"):
        (tmp_path / folder).mkdir(parents=True)
    places = (".git", ".github", ".vscode", "clone/.git", "a/.github", "b/.github")
    profile = Profile(writable=(tmp_path,), protected=tuple(tmp_path / place for place in places))

    found = refusal_in(message.format(ws=tmp_path), 1, profile)

    assert found is not None
    assert found.text == f"The sandbox keeps {told.format(ws=tmp_path)} as it is, since it is a protected place."


def test_refusal_ignores_a_like_named_place_elsewhere() -> None:
    found = refusal_in("fatal: Unable to create '/srv/x/.git/index.lock': Read-only file system", 1, WORKS)

    assert found is not None
    assert found.text == ONLY_IN


@pytest.mark.parametrize("exit_code", [0, 1])
def test_wrong_pin_behind_the_proxy_is_not_the_network(exit_code: int) -> None:
    behind_proxy = replace(WORKS, proxy=ProxyEndpoint(3, 4, ("pypi.org",)))
    wrong_pin = "ERROR: Could not find a version that satisfies the requirement six==99 (from versions: 1.17.0)"
    around_proxy = "Could not resolve host: pypi.org"

    assert refusal_in(wrong_pin, exit_code, behind_proxy) is None
    found = refusal_in(around_proxy, exit_code, behind_proxy)
    assert found is not None
    assert found.needs_network


@pytest.mark.parametrize(
    ("output", "profile", "said"),
    [
        ("fatal: Unable to create '.git/index.lock': Read-only file system", WORKS, KEEPS_GIT),
        ("ERROR: Could not find a version that satisfies the requirement six", WORKS, NO_NETWORK),
        ("ERROR: Could not find a version that satisfies the requirement six", ONLINE, None),
        ("PermissionError: [Errno 13] Permission denied: 'x'", WORKS, None),
        ("notes.txt: Read-only file system", LOOKS, None),
        ("Read-only file system\n" + "a line of the log\n" * 10, WORKS, None),
    ],
)
def test_refusal_hidden_by_the_end_of_the_line_is_found(output: str, profile: Profile, said: str | None) -> None:
    refusal = refusal_in(output, 0, profile)
    assert (refusal and refusal.text) == said


def test_script_that_is_not_executable_is_no_refusal() -> None:
    assert refusal_in("bash: ./run.sh: Permission denied", 126, WORKS) is None


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("touch $1/new", "change files only in"),
        ("echo x > $1/file", "change files only in"),
        ("mkdir .git/new", ".git as it is"),
        ("mv .git g", ".git as it is"),
        ("python3 -c \"open('$1/new', 'w')\"", "change files only in"),
    ],
)
async def test_refusal_is_found_for_real_failures_in_a_box(box: Box, script: str, said: str) -> None:
    (box.workspace / ".git").mkdir()

    ended = await box.run(script, box.outside)

    told = refusal_in((ended.stdout + ended.stderr).decode(), ended.exit_code, box.profile)
    assert told is not None
    assert said in told.text


async def test_failure_of_the_command_itself_is_no_refusal(box: Box) -> None:
    ended = await box.run("cat no-such-file")

    assert refusal_in(ended.stderr.decode(), ended.exit_code, box.profile) is None
