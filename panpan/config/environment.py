"""The settings that environment variables give, and the secrets that are found among variables.

The vendors' own variables (`ANTHROPIC_API_KEY` and the like) are no settings: the model factory reads them where no
setting decides.
"""

from collections.abc import Callable, Mapping
from typing import Any

from panpan.config.keys import KeyPath, put, shown
from panpan.config.settings_file import Source, check
from panpan.errors import ConfigError

LOCAL_API_KEY_VARIABLE = "PANPAN_LOCAL_API_KEY"
"""What clients of `panpan local run` have to send."""

OTHER_VARIABLES = frozenset({"PANPAN_HOME", "PANPAN_PROCESS_MARKS", LOCAL_API_KEY_VARIABLE})
"""Variables of panpan that are no settings; the second is on the processes that it starts."""


def _truth(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    try:
        return words[text.lower()]
    except KeyError:
        raise ValueError("is neither true nor false; write one of them") from None


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("is no whole number; write one, such as 20") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("is no number; write one, such as 0.5") from None


VARIABLES: Mapping[str, tuple[KeyPath, Callable[[str], object]]] = {
    "PANPAN_MODEL": (("model",), str),
    "PANPAN_PROVIDER": (("provider",), str),
    "PANPAN_BASE_URL": (("base_url",), str),
    "PANPAN_API_KEY": (("api_key",), str),
    "PANPAN_MAX_OUTPUT_TOKENS": (("max_output_tokens",), _whole_number),
    "PANPAN_THINKING": (("thinking",), _truth),
    "PANPAN_THINKING_BUDGET_TOKENS": (("thinking_budget_tokens",), _whole_number),
    "PANPAN_EFFORT": (("effort",), str),
    "PANPAN_TEMPERATURE": (("temperature",), _number),
    "PANPAN_TOP_P": (("top_p",), _number),
    "PANPAN_TOP_K": (("top_k",), _whole_number),
    "PANPAN_PERMISSION_MODE": (("permission", "mode"), str),
    "PANPAN_MAX_ROUNDS": (("max_rounds",), _whole_number),
    "PANPAN_MAX_BUDGET_USD": (("max_budget_usd",), _number),
    "PANPAN_MAX_TOKENS": (("max_tokens",), _whole_number),
    "PANPAN_MAX_SECONDS": (("max_seconds",), _number),
    "PANPAN_SESSIONS_TITLE": (("sessions", "title"), str),
    "PANPAN_IDLE_TIMEOUT_S": (("idle_timeout_s",), _number),
}
"""Each variable with the setting it gives and how its text is read."""


def read_environment(env: Mapping[str, str]) -> tuple[Source, list[str]]:
    """Return the settings in the environment, checked, and a warning for each variable that panpan does not know.

    An empty variable counts as one that is not set, as with most programs: `PANPAN_MODEL= panpan` takes it away.

    Raises:
        ConfigError: A variable has a value that cannot be used.
    """
    values: dict[str, Any] = {}
    places: dict[KeyPath, str] = {}
    for name, (path, read) in VARIABLES.items():
        text = env.get(name, "").strip()
        if not text:
            continue
        try:
            put(values, path, read(text))
        except ValueError as exc:
            raise ConfigError(f"{name} {exc}") from exc
        places[path] = name
    source = Source("environment", "the environment", values, places)
    check(source)
    return source, [_unknown(name) for name in sorted(env) if _is_unknown(name, env[name])]


def _is_unknown(name: str, value: str) -> bool:
    return name.startswith("PANPAN_") and bool(value) and name not in VARIABLES and name not in OTHER_VARIABLES


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    matches = get_close_matches(name, [*VARIABLES, *OTHER_VARIABLES], n=1, cutoff=0.8)
    advice = f"did you mean {matches[0]}?" if matches else "it does nothing"
    return f"there is no variable {shown(name)}; {advice}"
