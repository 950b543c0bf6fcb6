"""A kind of models that somebody else brings along: named on the command line, asked, and told apart when it fails."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from panpan.api import open_session
from panpan.config.models import FREE, ModelFacts
from panpan.errors import ConfigError
from panpan.models.factory import ResolvedModel, create_client, resolve_model
from panpan.models.model_choice import ModelRequirement
from panpan.models.provider_kind import KnownModel, NamedProvider, ProviderKind, ready_models
from panpan.models.reply import ReplyBuilder
from panpan.session.capability import Capability, provider_kinds
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest, Provider
from panpan.types.messages import AssistantMessage, UserMessage


class Echo(Provider):
    """Says what was said."""

    name = "echo"

    def __init__(self, key: str) -> None:
        self.key = key

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        builder = ReplyBuilder(model=options.model, taken_ids=request.tool_use_ids)
        builder.start(message_id="echo")
        said = [message.text for message in request.messages if isinstance(message, UserMessage)]
        builder.add("text", f"{options.model}: {said[-1]}")
        builder.finish("end_turn")
        for event in builder.take():
            yield event


class EchoModels(ProviderKind):
    def describe_model(self, name: str, env: Mapping[str, str], settings: NamedProvider | None) -> KnownModel:
        if not name:
            raise ConfigError("echo names no model; use --model echo:NAME")
        address = settings.base_url if settings and settings.base_url else "https://echo.example"
        facts = ModelFacts(name, 1_000, 100, FREE)
        return KnownModel(name, address, facts, f"{name} that echoes", takes_key=True)

    def provider(self, resolved: ResolvedModel, *, idle_timeout_s: float | None) -> Provider:
        return Echo(resolved.api_key)


class BrokenModels(EchoModels):
    def describe_model(self, name: str, env: Mapping[str, str], settings: NamedProvider | None) -> KnownModel:
        raise LookupError(name)


class EchoCapability(Capability):
    name = "echo"
    providers: ClassVar[Mapping[str, str]] = {"echo": f"{__name__}:EchoModels", "broken": f"{__name__}:BrokenModels"}


KINDS = provider_kinds([EchoCapability])


def resolved(model: str, provider: NamedProvider | None = None, **env: str) -> ResolvedModel:
    providers = {} if provider is None else {provider.name: provider}
    return resolve_model([ModelRequirement("--model", model=model)], env, providers=providers, kinds=KINDS)


async def test_provider_kind_of_another_package_answers() -> None:
    client = create_client(resolved("echo:parrot"))

    events = [event async for event in client.stream(ModelRequest("", (), (UserMessage.of("hello"),)))]

    replies = [event.text for event in events if isinstance(event, AssistantMessage)]
    assert replies == ["parrot: hello"]
    await client.aclose()


async def test_provider_kind_answers_the_turns_of_a_session(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")}
    options = {"overrides": {"model": "echo:parrot"}, "env": env}

    async with open_session(tmp_path, capabilities=[EchoCapability], **options) as session:
        async for _ in session.submit("hello"):
            pass
        assert (session.info.model, session.conversation.messages[-1].text) == ("parrot", "parrot: hello")
    with pytest.raises(ConfigError, match="nothing says who serves"):
        async with open_session(tmp_path, **options):
            pass


async def test_provider_kind_of_a_file_counts_if_settings_name_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "capabilities").mkdir(parents=True)
    (home / "settings.toml").write_text("capabilities.own = true\nmodel = 'own:x'\n")
    (home / "capabilities" / "own.py").write_text(
        "from panpan.capabilities import Capability\n"
        "from tests.models.test_provider_kind import EchoModels\n"
        "class Own(Capability):\n    name = 'own'\n    providers = {'own': f'{__name__}:OwnModels'}\n"
        "class OwnModels(EchoModels): pass\n"
    )

    async with open_session(tmp_path, env={"HOME": str(tmp_path), "PANPAN_HOME": str(home)}) as session:
        assert session.info.choice == f"x that echoes, since {home}/settings.toml chose it"


def test_provider_kind_can_be_named_as_the_provider() -> None:
    wish = ModelRequirement("--provider", provider="echo", model="parrot")

    assert resolve_model([wish], {}, kinds=KINDS).reason == "parrot that echoes, since --provider chose echo"


def test_provider_kind_gets_the_key_and_address_of_its_settings() -> None:
    settings = NamedProvider("echo", base_url="https://mine.example", api_key_env="ECHO_KEY")

    model = resolved("echo:parrot", settings, ECHO_KEY="sk-echo")

    assert (model.base_url, model.api_key, model.key_place) == ("https://mine.example", "sk-echo", "ECHO_KEY")
    assert create_client(model)


def test_provider_kind_gets_no_key_of_a_vendor() -> None:
    assert resolved("echo:parrot", OPENAI_API_KEY="sk-oai").api_key == ""


@pytest.mark.parametrize(
    ("kinds", "model", "complaint"),
    [
        (KINDS, "echo", "echo names no model"),
        (KINDS, "broken:x", "BrokenModels, failed: LookupError: x"),
        ({"gone": "no.such.module:Class"}, "gone:x", "no.such.module:Class, failed: ModuleNotFoundError"),
        ({"gone": f"{__name__}:Missing"}, "gone:x", "Missing, failed: AttributeError"),
        ({}, "echo:parrot", "nothing says who serves the model"),
    ],
)
def test_provider_kind_that_cannot_be_asked_says_why(kinds: Mapping[str, str], model: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        resolve_model([ModelRequirement(model=model)], {}, kinds=kinds)


def test_provider_kind_of_two_capabilities_is_refused() -> None:
    class Other(Capability):
        name = "other"
        providers: ClassVar[Mapping[str, str]] = {"echo": "elsewhere:Echo"}

    assert provider_kinds([EchoCapability, EchoCapability]) == EchoCapability.providers
    with pytest.raises(ConfigError, match="two capabilities bring echo models"):
        provider_kinds([EchoCapability, Other])


class ReadyModels(EchoModels):
    def ready_models(self, env: Mapping[str, str]) -> Mapping[str, str]:
        return {"echo:loud": "says it in capitals"} if "LOUD" in env else {}


def test_provider_kinds_name_their_ready_models() -> None:
    kinds = {"echo": f"{__name__}:ReadyModels", "broken": "no_such_module:Kind"}

    assert ready_models(kinds, {}) == {}
    assert ready_models(kinds, {"LOUD": "1"}) == {"echo:loud": "says it in capitals"}
