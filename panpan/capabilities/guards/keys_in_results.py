"""Keeps the keys of model providers and search engines out of tool results, and so out of the log and of requests.

The rule: a result says where a key was taken out, since the file still holds it. Edits are literal on the file, so that
the rest of it can be changed as before.
"""

from collections.abc import Iterator, Mapping

from panpan.config.settings import ProviderSettings, Settings
from panpan.config.vendors import VENDORS
from panpan.core.hooks import Hook, ToolCall
from panpan.system.text.known_keys import KnownKeys
from panpan.types.content import ResultContent, TextBlock
from panpan.types.display import DiffDisplay, Display, PlanDisplay, SummaryDisplay, TodoDisplay
from panpan.types.tool import Output

_NOTE = (
    "[panpan put [redacted] in place of a key that it uses itself, which stays where it is: change other places with "
    "Edit, and do not write [redacted] over it]"
)


def provider_keys(env: Mapping[str, str], settings: Settings) -> KnownKeys:
    """Return the keys that panpan could send to a provider or a search engine.

    Not every secret there is: a test may print a token of its own, and the model has to see what it prints.

    Args:
        env: The environment; the variables count that vendors and settings name.
        settings: Their `api_key`, also those of the providers.
    """
    return KnownKeys(_keys(env, settings))


def without_provider_keys(env: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return `env` without the variables that vendors and settings name for keys."""
    variables = set(_key_variables(settings))
    return {name: value for name, value in env.items() if name not in variables}


def _keys(env: Mapping[str, str], settings: Settings) -> Iterator[str]:
    for source in _places_of_keys(settings):
        if source.api_key is not None:
            yield source.api_key.get_secret_value()
    for variable in _key_variables(settings):
        yield env.get(variable, "")


def _key_variables(settings: Settings) -> Iterator[str]:
    yield from (source.api_key_env for source in _places_of_keys(settings) if source.api_key_env is not None)
    for vendor in VENDORS:
        yield from vendor.key_variables
    yield from settings.web.key_variables
    yield settings.data.hub_token_env


def _places_of_keys(settings: Settings) -> tuple[Settings | ProviderSettings, ...]:
    return (settings, *settings.providers.values())


class KeysInResults(Hook):
    """Replaces keys in what a tool answers.

    Args:
        keys: Those to replace.
    """

    def __init__(self, keys: KnownKeys) -> None:
        self._keys = keys

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        blocks = tuple(self._redacted(block) for block in output.blocks)
        display = self._redacted_display(output.display)
        if blocks != output.blocks:
            return Output((*blocks, TextBlock(text=_NOTE)), display, is_error=output.is_error)
        if display != output.display:
            return Output(output.content, display, is_error=output.is_error)
        return output

    def _redacted(self, block: ResultContent) -> ResultContent:
        if not isinstance(block, TextBlock):
            return block
        text = self._keys.redact(block.text)
        return block if text == block.text else TextBlock(text=text)

    def _redacted_display(self, display: Display | None) -> Display | None:
        redact = self._keys.redact
        match display:
            case SummaryDisplay(text=text):
                return SummaryDisplay(text=redact(text))
            case DiffDisplay(files=files, notes=notes):
                return DiffDisplay(
                    files=tuple(
                        file.model_copy(update={"path": redact(file.path), "diff": redact(file.diff)}) for file in files
                    ),
                    notes=tuple(map(redact, notes)),
                )
            case PlanDisplay():
                return display.model_copy(update={"text": redact(display.text), "summary": redact(display.summary)})
            case TodoDisplay() | None:  # a list holds what the model's own call says
                return display
