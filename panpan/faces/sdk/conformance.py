"""Conformance with the Claude Agent SDK: a row for each flag that the SDKs send, and for each control request.

`scripts/sdk_page.py` writes the tables of docs/agent-sdk.md from here.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass

State: TypeAlias = Literal["works", "refused", "not yet"]
"""State of a row. refused: panpan does not have it on purpose. Both others than `works` are refused by their name."""


@dataclass(frozen=True, slots=True)
class Row:
    """One flag or control request."""

    name: str
    state: State
    note: str = ""
    """Difference from what the SDK's documentation says, or the reason; empty if there is none."""


FLAGS: Sequence[Row] = (
    Row("--add-dir", "works"),
    Row("--agent", "works"),
    Row("--allow-dangerously-skip-permissions", "not yet"),
    Row("--allowedTools", "works"),
    Row("--append-system-prompt", "works"),
    Row("--append-system-prompt-file", "works"),
    Row("--await-initialize", "not yet"),
    Row("--betas", "works", "Messages API only"),
    Row("--channels", "refused", "panpan takes no messages from other services"),
    Row("--continue", "works"),
    Row("--debug", "works"),
    Row("--debug-file", "works"),
    Row("--debug-to-stderr", "works"),
    Row("--disallowedTools", "works"),
    Row("--effort", "works"),
    Row("--fallback-model", "works", "several, with commas between; the first model is asked again after 5 minutes"),
    Row("--fork-session", "works"),
    Row("--include-hook-events", "not yet"),
    Row("--include-partial-messages", "works"),
    Row("--initialize-fields", "not yet"),
    Row("--input-format", "works"),
    Row("--json-schema", "works", "5 tries; the model may also write the JSON as its answer"),
    Row("--managed-settings", "refused", "panpan has no settings of an organisation"),
    Row("--managed-settings-in-initialize", "refused", "panpan has no settings of an organisation"),
    Row("--max-budget-usd", "works"),
    Row("--max-thinking-tokens", "works", "at least 1,024; 0 is off"),
    Row("--max-turns", "works"),
    Row("--mcp-config", "works", "servers of type `sdk`: not yet"),
    Row("--model", "works", "any model of panpan, such as `openai/gpt-5`"),
    Row("--no-session-persistence", "works", "with `--continue` or `--resume` only for a copy"),
    Row("--output-format", "works"),
    Row("--permission-mode", "works", "`manual` is `default`; `auto` runs commands in the sandbox without questions"),
    Row("--permission-prompt-tool", "not yet"),
    Row("--permission-prompts", "not yet"),
    Row("--plugin-dir", "works"),
    Row("--plugin-dir-no-mcp", "not yet"),
    Row("--project-config-root", "refused", "the project is the nearest folder with `.git`"),
    Row("--replay-user-messages", "works"),
    Row("--resume", "works"),
    Row("--resume-drops-turn", "works"),
    Row("--resume-session-at", "works"),
    Row("--sdk-url", "refused", "panpan speaks over its pipes only"),
    Row("--session-id", "works"),
    Row("--session-mirror", "not yet", "the log of a session is a file below `~/.panpan`"),
    Row("--setting-sources", "works", "the user's models and providers always count, as a login does"),
    Row("--settings", "works", "panpan's own settings, as JSON or a file"),
    Row("--strict-mcp-config", "works"),
    Row("--system-prompt", "works", "empty: no system prompt"),
    Row("--system-prompt-file", "works"),
    Row("--task-budget", "works", "Messages API only"),
    Row("--thinking", "works", "`adaptive` and `enabled` are the same: each model thinks in its own way"),
    Row("--thinking-display", "works", "Messages API only"),
    Row("--tools", "works", "names of panpan's tools"),
    Row("--verbose", "works"),
)
"""Flags that the SDKs send, by name."""
