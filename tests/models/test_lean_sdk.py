"""The short import of the SDKs: it gives a client that works and real errors, and leaves the SDK's own name alone.

What is in `sys.modules` matters here, so most of it runs in processes of their own.
"""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.model_server.script import HttpError, say
from tests.model_server.server import serving

SDKS = [("anthropic", "AsyncAnthropic", "AnthropicError"), ("openai", "AsyncOpenAI", "OpenAIError")]

PRELUDE = """
    import sys
    from panpan.models.sdk_clients import load_sdk
    sdk, client_name, error_name = sys.argv[1:4]
    def load():
        return load_sdk(sdk, client_name=client_name, error_name=error_name)
"""

OPEN = """
    import anyio
    from panpan.models.sdk_clients import open_anthropic, open_openai
    from panpan.models.transport import Transport
    from contextlib import aclosing
    opened = {"anthropic": open_anthropic, "openai": open_openai}[sdk]
    path = {"anthropic": "/v1/messages", "openai": "/chat/completions"}[sdk]
    body = b'{"model": "m", "max_tokens": 10, "stream": true, "messages": [{"role": "user", "content": "hello"}]}'
    transport = Transport(provider=sdk, open_client=lambda: opened(api_key="k", base_url=sys.argv[4], headers={}))
    async def ask():
        try:
            async with aclosing(transport.stream(path, body)) as reads:
                return [event async for read in reads for event in read]
        finally:
            await transport.aclose()
"""


def run(code: str, *arguments: str, env: dict[str, str] | None = None) -> str:
    """Run code in a process of its own and return what it printed."""
    source = dedent(PRELUDE) + dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", **(env or {})},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


ERRORS = {
    400: "ProviderError",
    401: "AuthenticationError",
    404: "ProviderError",
    413: "ContextOverflowError",
    429: "RateLimitError",
    500: "RetryableError",
    529: "RetryableError",
}

STORY = f"""
    classes = load()
    client = classes.client_type(api_key="k", base_url="http://127.0.0.1:1")
    loaded = [name for name in sys.modules if name == sdk or name.startswith(sdk + ".")]
    print("loaded", classes.is_lean, loaded, len([n for n in sys.modules if n.startswith("_panpan_")]) < 500)
    print("loaded", classes.client_type.__name__, issubclass(classes.error_type, Exception))
    print("loaded", load().client_type is classes.client_type)
    print("answer", len(anyio.run(ask)) > 2, load().is_lean, sdk in sys.modules)
    for _ in range({len(ERRORS)}):
        try:
            anyio.run(ask)
        except Exception as exc:
            print("error", type(exc).__name__, exc.status, isinstance(exc.__cause__, load().error_type))
    sys.argv[4] = "http://127.0.0.1:1"
    transport = Transport(provider=sdk, open_client=lambda: opened(api_key="k", base_url=sys.argv[4], headers={{}}))
    try:
        anyio.run(ask)
    except Exception as exc:
        print("nobody", type(exc).__name__, isinstance(exc.__cause__, load().error_type))
    print("end", sdk in sys.modules)
"""
"""All in one process, since most of its time goes by until there is a client."""


@pytest.fixture(scope="module", params=SDKS, ids=lambda sdk: sdk[0])
def told(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    """Return a program's lines on each part of the story, by their first words."""
    sdk = request.param
    with serving([say("Hello."), *(HttpError(status) for status in ERRORS)]) as server:
        lines = run(OPEN + STORY, *sdk, server.url if sdk[0] == "anthropic" else server.openai_url).splitlines()
    parts: dict[str, list[str]] = {"client": [sdk[1]]}
    for part, _, line in (line.partition(" ") for line in lines):
        parts.setdefault(part, []).append(line)
    return parts


def test_lean_client_loads_without_the_rest_of_the_sdk(told: dict[str, list[str]]) -> None:
    assert told["loaded"] == ["True [] True", f"{told['client'][0]} True", "True"]


@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk[0])
def test_client_starts_no_program_for_its_first_request(sdk: tuple[str, str, str], tmp_path: Path) -> None:
    uname = tmp_path / "uname"
    uname.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    uname.chmod(0o755)
    with serving([say("Hello.")]) as server:
        url = server.url if sdk[0] == "anthropic" else server.openai_url
        run(OPEN + "\n    anyio.run(ask)\n", *sdk, url, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})

    assert not (tmp_path / "ran").exists()
    assert {key.lower(): value for key, value in server.requests[0].headers.items()}["x-stainless-os"] == (
        "MacOS" if sys.platform == "darwin" else "Linux"
    )


def test_lean_client_streams_an_answer_without_more_imports(told: dict[str, list[str]]) -> None:
    assert told["answer"] == ["True True False"]


def test_http_errors_become_ours(told: dict[str, list[str]]) -> None:
    assert told["error"] == [f"{error} {status} True" for status, error in ERRORS.items()]


def test_unreachable_server_error_loads_no_more_of_the_sdk(
    told: dict[str, list[str]],
) -> None:
    assert (told["nobody"], told["end"]) == (["ProviderError True"], ["False"])


def test_special_anthropic_errors_are_status_errors() -> None:
    told = run(
        """
        import httpx2
        classes = load()
        errors = sys.modules["_panpan_anthropic._error_classes"]
        request = httpx2.Request("POST", "http://localhost/")
        for (status, code) in errors.ERROR_CLASSES:
            body = {"error": {"type": "t", "message": "m", "details": {"error_code": code}}}
            error = errors.make_status_error("m", body=body, response=httpx2.Response(status, request=request))
            assert isinstance(error, classes.error_type), (status, code)
            assert error.status_code == status
        print(len(errors.ERROR_CLASSES) > 50)
        """,
        *SDKS[0],
    )
    assert told == "True"


@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk[0])
def test_later_import_of_the_sdk_is_complete(sdk: tuple[str, str, str]) -> None:
    told = run(
        """
        lean = load()
        package = __import__(sdk)
        client = getattr(package, client_name)
        made = client(api_key="k", base_url="http://127.0.0.1:1")
        creating = made.messages.create if sdk == "anthropic" else made.chat.completions.create
        model = package.types.Message if sdk == "anthropic" else package.types.chat.ChatCompletion
        print(client is not lean.client_type, callable(creating), len(model.model_fields) > 5)
        print(load().is_lean, load().client_type is client)
        """,
        *sdk,
    )
    assert told.splitlines() == ["True True True", "False True"]


@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk[0])
def test_imported_sdk_is_reused(sdk: tuple[str, str, str]) -> None:
    told = run(
        """
        package = __import__(sdk)
        classes = load()
        print(classes.is_lean, classes.client_type is getattr(package, client_name))
        print([name for name in sys.modules if name.startswith("_panpan_")])
        """,
        *sdk,
    )
    assert told.splitlines() == ["False True", "[]"]


def test_sdk_logging_causes_the_ordinary_import() -> None:
    told = run("print(load().is_lean, sdk in sys.modules)", *SDKS[1], env={"OPENAI_LOG": "info"})
    assert told == "False True"


IMPORT = "from ._exceptions import FakeError\n"
FAKE_ERROR = "class FakeError(Exception): ...\n"
FAKE_PACKAGE = {
    "__init__.py": "is_whole = True\nfrom ._exceptions import *\nfrom ._client import *\nfrom ._base_client import *\n",
    "_base_client.py": "class DefaultAsyncHttpxClient: ...\n",
    "_client.py": f"{IMPORT}class AsyncFake: ...\n",
    "_exceptions.py": FAKE_ERROR,
    "types/__init__.py": "",
    "types/sub.py": "class Shape:\n    class Inner: ...\n",
}


@pytest.mark.parametrize(
    "surprise",
    [
        {},  # the client makes no errors that could be tried
        {"_base_client.py": "", "_exceptions.py": f"{FAKE_ERROR}class DefaultAsyncHttpxClient: ..."},
        {"_client.py": f"from .types.sub import Shape\n{IMPORT}class AsyncFake(Shape.Inner): ..."},
        {"_client.py": f"from . import is_whole\n{IMPORT}class AsyncFake: ..."},
        {"_client.py": "class AsyncFake: ...\nclass FakeError(Exception): ...", "_exceptions.py": ""},
        {
            "_client.py": f"{IMPORT}class AsyncFake:\n"
            "    def _make_status_error(self, message, *, body, response):\n        return FakeError(message)\n"
        },
    ],
    ids=[
        "no errors to try",
        "network client elsewhere",
        "a base class left out",
        "needs its init",
        "error elsewhere",
        "another kind of error",
    ],
)
def test_surprise_in_the_sdk_causes_the_ordinary_import(tmp_path: Path, surprise: dict[str, str]) -> None:
    (tmp_path / "fakesdk" / "types").mkdir(parents=True)
    for name, text in {**FAKE_PACKAGE, **surprise}.items():
        (tmp_path / "fakesdk" / name).write_text(text)

    told = run(
        """
        sys.path.insert(0, sys.argv[4])
        finders = list(sys.meta_path)
        classes = load()
        print(classes.is_lean, classes.client_type.__module__, sys.modules[sdk].is_whole)
        print([name for name in sys.modules if name.startswith("_panpan_")], sys.meta_path == finders)
        """,
        *("fakesdk", "AsyncFake", "FakeError", str(tmp_path)),
    )

    assert told.splitlines() == ["False fakesdk._client True", "[] True"]


def test_missing_sdk_is_an_import_error() -> None:
    told = run(
        """
        try:
            load()
        except ImportError as exc:
            print(exc.name)
        """,
        "no_such_sdk",
        "AsyncNone",
        "NoneError",
    )
    assert told == "no_such_sdk"


def test_threads_that_load_at_once_get_the_same_classes() -> None:
    told = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: load(), range(8)))
        print(len({id(classes.client_type) for classes in found}), {classes.is_lean for classes in found})
        """,
        *SDKS[1],
    )
    assert told == "1 {True}"
