"""The models of a session: from a setup to what the session has because of its model, the system prompt included."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from threading import Lock
from typing import Any

from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.models.client import LLMClient
from panpan.models.factory import create_client
from panpan.session.agent import ModelParts, SubagentModel
from panpan.session.frontend import SessionInterceptor
from panpan.session.log.record_kinds import SessionPrefix
from panpan.session.setup import PromptOptions, SessionSetup
from panpan.types.llm import Effort, Sampling

AS_THE_SESSION = Sampling()


class SessionModels:
    """Implements `ModelSource` for the main agent; `setup` has the model that the session begins with."""

    def __init__(
        self,
        setup: SessionSetup,
        hooks: Sequence[Hook],
        prompts: PromptOptions,
        *,
        unavailable: Sequence[str] = (),
        interceptor: SessionInterceptor | None = None,
    ) -> None:
        self._setup = setup
        self._hooks = hooks
        self._prompts = prompts
        self._unavailable = unavailable
        self._interceptor = interceptor or SessionInterceptor()
        self._client: LLMClient | None = None
        self._of_subagents: dict[tuple[object, ...], SubagentModel] = {}
        self._making = Lock()
        """Held while a model of subagents is made, which are opened in threads."""

    @property
    def setup(self) -> SessionSetup:
        return self._setup

    @property
    def every_tool(self) -> Sequence[Tool[Any]]:
        return self._setup.every_tool

    @property
    def advertised(self) -> Sequence[str]:
        """Names of the tools that are on and can work here."""
        return [tool.name for tool in self._setup.tools if tool.name not in self._unavailable]

    def _hooks_of(self, setup: SessionSetup) -> Sequence[Hook]:
        return [hook for hook in self._hooks if hook.is_for_small_windows or not setup.profile.fits_window]

    def first(self) -> ModelParts:
        """Return the parts of the model that the session begins with; ConfigError: it is not there."""
        return self._parts(self._setup, self._new_client(self._setup))

    def keep(self) -> Callable[[], None]:
        setup, client = self._setup, self._client

        def go_back() -> None:
            self._setup, self._client = setup, client
            if client is not None:
                options = setup.generation
                client.change_options(effort=options.effort, thinking_budget_tokens=options.thinking_budget_tokens)

        return go_back

    def other(self, name: str, *, only_here: bool = False) -> ModelParts:
        setup = self._interceptor.setup(self._setup.with_model(name, only_here=only_here))
        return self._parts(setup, self._new_client(setup))

    def with_effort(self, effort: Effort | None) -> ModelParts:
        client = self._client
        assert client is not None, "the session has a model"
        client.change_options(effort=effort)
        return self._parts(self._setup.with_effort(effort), client)

    def with_thinking(self, *, is_on: bool) -> ModelParts:
        client = self._client
        assert client is not None, "the session has a model"
        setup = self._setup.with_thinking(is_on=is_on)
        client.change_options(thinking_budget_tokens=setup.generation.thinking_budget_tokens)
        return self._parts(setup, client)

    def for_subagents(
        self, name: str | None = None, *, only_here: bool = False, sampling: Sampling = AS_THE_SESSION
    ) -> SubagentModel:
        """Return a model that subagents ask: the same for all that want the same one, until `close_subagents`.

        Args:
            name: As with `--model`; None: that of the session, asked as the session asks it.
            only_here: True if it must be at the same place as the session's.
            sampling: All of its sampling that is not as the session's.

        Raises:
            ConfigError: The name leads to no model, or elsewhere.
            BudgetError: There is a budget and the price of the model is not known.
        """
        generation = self._setup.generation
        of_session = (self._setup.model.reason, generation.effort, generation.thinking_budget_tokens)
        key = (only_here, name, sampling, *of_session)
        with self._making:
            if key not in self._of_subagents:
                self._of_subagents[key] = self._for_subagents(name, only_here, sampling)
            return self._of_subagents[key]

    def _for_subagents(self, name: str | None, only_here: bool, sampling: Sampling) -> SubagentModel:
        setup = self._setup if name is None else self._setup.with_model(name, only_here=only_here)
        generation = replace(setup.generation, sampling=replace(setup.generation.sampling, **sampling.given))
        client = create_client(setup.model, generation, fallbacks=self._fallbacks(setup) if name is None else ())
        return SubagentModel(setup.model.model, client, setup.profile, setup.context_window)

    async def close_subagents(self) -> None:
        while self._of_subagents:
            _, model = self._of_subagents.popitem()
            await model.llm.aclose()

    def _new_client(self, setup: SessionSetup) -> LLMClient:
        wrap, fallbacks = self._interceptor.provider, self._fallbacks(setup)
        return create_client(setup.model, setup.generation, wrap_provider=wrap, fallbacks=fallbacks)

    def _fallbacks(self, setup: SessionSetup) -> Sequence[LLMClient]:
        """Return the clients of the models that the user wants to be asked where the first one is away."""
        if self._interceptor.plays_back or not setup.settings.fallback_models:
            return ()
        others = [self._interceptor.setup(setup.with_model(name)) for name in setup.settings.fallback_models]
        wrap, first = self._interceptor.provider, (setup.model.base_url, setup.model.model)
        return [
            create_client(other.model, setup.generation, wrap_provider=wrap)
            for other in others
            if (other.model.base_url, other.model.model) != first
        ]

    def _parts(self, setup: SessionSetup, client: LLMClient) -> ModelParts:
        tools = setup.tools
        self._setup, self._client = setup, client
        model = setup.model
        return ModelParts(
            name=model.model,
            llm=client,
            tools=self._interceptor.tools({tool.name: tool for tool in tools}),
            hooks=self._interceptor.hooks(self._hooks_of(setup)),
            profile=setup.profile,
            prefix=self._prefix(setup),
            choice=model.reason,
            key_source=model.key_place or "none",
            effort=setup.generation.effort,
            thinks=setup.generation.thinking_budget_tokens is not None,
            context_window=setup.context_window,
            warnings=setup.warnings_of_model,
            retry_now=client.retry_now,
            prepare=client.prepare,
            aclose=client.aclose,
        )

    def _prefix(self, setup: SessionSetup) -> SessionPrefix:
        profile, prompts = setup.profile, self._prompts
        own = profile.system_prompt if prompts.override is None else prompts.override
        advertised = [tool for tool in setup.tools if tool.is_advertised and tool.name not in self._unavailable]
        return SessionPrefix(
            profile.name,
            system_prompt(own, prompts.append),
            tuple(profile.definition_of(tool.definition) for tool in advertised),
        )


def system_prompt(override: str | None = None, append: str | None = None) -> str:
    """Return the system prompt of a session: panpan's own or what replaces it, then what is appended."""
    base = _own_prompt() if override is None else override.strip()
    return "\n\n".join(part for part in (base, (append or "").strip()) if part)


def _own_prompt() -> str:
    return files(__package__).joinpath("system_prompt.md").read_text(encoding="utf-8").strip()
