"""A key is tried with a real request, and a list of models is read."""

import socket

import pytest

from panpan.config.models import vendor_named
from panpan.models.factory import resolve_model
from panpan.models.model_choice import ModelRequirement
from panpan.models.model_list import check_key, listed_models
from tests.model_server import ModelServer, serving
from tests.models import loopback

KEY = "sk-right-0123456789"
DIALECTS = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}


def env_of(vendor: str, server: ModelServer) -> dict[str, str]:
    return {DIALECTS[vendor]: server.url if vendor == "anthropic" else server.openai_url}


@pytest.mark.parametrize("name", list(DIALECTS))
async def test_check_key_tells_right_from_wrong(name: str) -> None:
    vendor = vendor_named(name)
    assert vendor is not None
    with serving([], api_key=KEY) as server:
        right = await check_key(vendor, KEY, env_of(name, server))
        wrong = await check_key(vendor, "sk-wrong-0123456789", env_of(name, server))

    assert right.verdict == "accepted"
    assert (wrong.verdict, wrong.reason) == ("rejected", f"{vendor.title} rejected the API key (invalid x-api-key)")
    assert [request.path for request in server.other_requests] == ["/v1/models"] * 2


async def test_check_key_sends_nothing_that_is_no_key() -> None:
    vendor = vendor_named("openai")
    assert vendor is not None
    with serving([], api_key=KEY) as server:
        check = await check_key(vendor, "two words", env_of("openai", server))

    assert (check.verdict, server.other_requests) == ("rejected", [])
    assert "two words" not in check.reason


async def test_key_that_cannot_be_checked_is_not_rejected() -> None:
    vendor = vendor_named("openai")
    assert vendor is not None
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for status in (403, 404, 500):
        async with loopback.serving(loopback.Answer([b"{}"], status=status)) as server:
            assert (await check_key(vendor, KEY, {"OPENAI_BASE_URL": server.url})).verdict == "unchecked"
    check = await check_key(vendor, KEY, {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"})
    assert (check.verdict, KEY in check.reason) == ("unchecked", False)


async def test_listed_models_are_those_that_talk() -> None:
    models = ["qwen3-coder:30b", "text-embedding-nomic", "bad\nname"]
    with serving([], models=models) as server:
        requirement = ModelRequirement(model="custom/any", base_url=server.openai_url)
        assert await listed_models(resolve_model([requirement], {})) == ["qwen3-coder:30b"]
