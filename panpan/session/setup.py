"""Configuration of a session before it is opened: its folder, settings, model and tools.

Nothing here is open, and nothing is sent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeAlias

from panpan.config.locations import Locations
from panpan.config.models import ModelFacts
from panpan.config.settings import Settings
from panpan.config.sources import Loaded, load_settings
from panpan.config.trust import trust_of
from panpan.core.tool import Tool, enabled_tools
from panpan.errors import BudgetError, ConfigError
from panpan.models.factory import GenerationOptions, ResolvedModel, generation_options, notes_on_options, resolve_from
from panpan.models.provider_kind import ModelProfile, ProviderKinds
from panpan.permissions.rules.rules import RuleSource, rule_sources, rules_of_no_tool, unusable_rules
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort

KindsOf: TypeAlias = Callable[..., ProviderKinds]
"""Returns the provider kinds that settings, and the place of panpan's own files, lead to."""

NO_MODEL = ResolvedModel("", "openai", "", "", ModelFacts("", 0, 0, None, is_known=False), "")
"""Placeholder for a session in which no model is asked, as when tools are only listed."""


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """The user's changes to the system prompt."""

    override: str | None = None
    """Text in place of the model's own."""
    append: str | None = None
    """Text that is added behind it."""

    @property
    def are_chosen(self) -> bool:
        return bool(self.override or self.append)


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """The settings of a session and what follows from them."""

    cwd: Path
    """Canonical."""
    env: Mapping[str, str]
    overrides: Mapping[str, object]
    """Settings by dotted key, as the command line gives them."""
    locations: Locations
    loaded: Loaded
    every_tool: Sequence[Tool[Any]]
    model: ResolvedModel
    generation: GenerationOptions
    kinds: ProviderKinds = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def profile(self) -> ModelProfile:
        return self.model.profile

    @property
    def context_window(self) -> int | None:
        """Tokens of the model's context window, as far as it may be filled; None if its size is not known."""
        facts = self.model.facts
        return self.settings.compaction.usable_window(facts.context_tokens if facts.is_known else None)

    @property
    def tools(self) -> Sequence[Tool[Any]]:
        """The tools that are on and that the model can take."""
        given = [tool for tool in self.every_tool if self.profile.includes(tool.name) and self._is_wanted(tool)]
        return enabled_tools(given, self.settings.tools.enabled, disallowed=self.settings.permission.deny)

    def _is_wanted(self, tool: Tool[Any]) -> bool:
        only = self.settings.tools.only
        return only is None or tool.is_beside_lists or tool.name.casefold() in map(str.casefold, only)

    def _unknown_tools(self) -> Sequence[str]:
        """Return a warning about the names in `tools.only` that no tool has; empty if all are known."""
        known = {tool.name.casefold() for tool in self.every_tool}
        unknown = [name for name in self.settings.tools.only or () if name.casefold() not in known]
        place = self.loaded.origins["tools.only"].place if unknown else ""
        return (f"{place} names tools that this panpan does not have: {', '.join(unknown)}",) if unknown else ()

    @property
    def rule_sources(self) -> Sequence[RuleSource]:
        return rule_sources(self.loaded)

    @property
    def warnings_of_model(self) -> Sequence[str]:
        banner = (self.profile.banner,) if self.profile.banner else ()
        return (*banner, *notes_on_options(self.model, self.generation))

    @property
    def warnings_of_settings(self) -> Sequence[str]:
        names = [tool.name for tool in self.every_tool]
        unusable = (*unusable_rules(self.loaded), *rules_of_no_tool(self.rule_sources, names))
        return (*self.loaded.warnings, *unusable, *self._unknown_tools())

    def with_model(self, name: str, *, only_here: bool = False) -> "SessionSetup":
        """Return the same with the model that `--model NAME` would choose, in the user's settings as they are now.

        Args:
            name: As with `--model`.
            only_here: True if it must be at the same place as the present one.

        Raises:
            ConfigError: The name leads to no model, or elsewhere.
            BudgetError: There is a budget and the price of the model is not known.
        """
        overrides = {**self.overrides, "model": name}
        trust, keys = self.loaded.trust, self.loaded.keys
        loaded = load_settings(self.cwd, self.env, overrides, self.locations, trust=trust, keys=keys)
        model = resolve_from(loaded, self.env, kinds=self.kinds, why_override=f"you chose {name}")
        here = self.model
        if only_here and (here.provider, here.base_url) != (model.provider, model.base_url):
            raise ConfigError(f"{model.model} is at {model.provider}, and only a model at {here.provider} may be")
        return replace(self, overrides=overrides, model=model).checked()

    def with_effort(self, effort: Effort | None) -> "SessionSetup":
        return replace(self, generation=self.generation.in_session("effort", effort=effort))

    def with_thinking(self, *, is_on: bool) -> "SessionSetup":
        """Return the same with a model that thinks first, where it can, or that does not."""
        budget = self.settings.thinking_budget_tokens if is_on else None
        return replace(self, generation=self.generation.in_session("thinking", thinking_budget_tokens=budget))

    def checked(self) -> "SessionSetup":
        """Return this, or raise BudgetError if there is a budget and the price of the model is not known."""
        if self.settings.max_budget_usd is not None and self.model.facts.price is None:
            raise BudgetError(
                f"the budget cannot be enforced: the price of {self.model.model} is unknown; start without "
                "--max-budget-usd, or choose a model with a known price"
            )
        return self


def load_setup(
    cwd: Path,
    env: Mapping[str, str],
    overrides: Mapping[str, object],
    every_tool: Sequence[Tool[Any]],
    *,
    kinds: KindsOf,
    why_model: str | None = None,
    trusts_project: bool = False,
) -> SessionSetup:
    """Read the settings and decide what follows from them.

    Args:
        cwd: The workspace.
        env: The environment.
        overrides: Settings by dotted key, stronger than files and environment.
        every_tool: All tools that there are.
        kinds: Returns the provider kinds, as the settings say.
        why_model: Reason why the overrides name the model, as half a sentence; None: the command line does.
        trusts_project: True if what the project says is believed, as it is now and in this session.

    Raises:
        ConfigError: A setting, the model, the key or the folder is not there or wrong.
        BudgetError: There is a budget and the price of the model is not known.
    """
    cwd = _workspace(cwd)
    locations = Locations.find(cwd, env)
    trust = trust_of(locations)
    loaded = load_settings(cwd, env, overrides, locations, trust=trust.for_this_run() if trusts_project else trust)
    all_kinds = kinds(loaded, locations)
    model = resolve_from(loaded, env, kinds=all_kinds, why_override=why_model)
    generation = generation_options(loaded.settings, loaded.origins)
    return SessionSetup(cwd, env, overrides, locations, loaded, every_tool, model, generation, all_kinds).checked()


def _workspace(cwd: Path) -> Path:
    try:
        canonical = cwd.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"the working directory {cwd} cannot be used: it does not exist") from error
    if not canonical.is_dir():
        raise ConfigError(f"the working directory {cwd} is not a folder")
    return canonical
