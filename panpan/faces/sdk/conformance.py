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
    Row("--allow-dangerously-skip-permissions", "works"),
    Row("--allowedTools", "works"),
    Row("--append-system-prompt", "works"),
    Row("--append-system-prompt-file", "works"),
    Row("--await-initialize", "works"),
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
    Row("--include-hook-events", "works", "`output` is the reason or the context that the hook gave"),
    Row("--include-partial-messages", "works"),
    Row("--initialize-fields", "works", "`settings` and `disallowedTools`; without them the run ends"),
    Row("--input-format", "works"),
    Row("--json-schema", "works", "5 tries; the model may also write the JSON as its answer"),
    Row("--managed-settings", "refused", "panpan has no settings of an organisation"),
    Row("--managed-settings-in-initialize", "refused", "panpan has no settings of an organisation"),
    Row("--max-budget-usd", "works"),
    Row("--max-thinking-tokens", "works", "at least 1,024; 0 is off"),
    Row("--max-turns", "works"),
    Row("--mcp-config", "works", "servers of type `sdk` are those of the program"),
    Row("--model", "works", "any model of panpan, such as `openai/gpt-5`"),
    Row("--no-session-persistence", "works", "with `--continue` or `--resume` only for a copy"),
    Row("--output-format", "works"),
    Row("--permission-mode", "works", "`manual` is `default`; `auto` runs commands in the sandbox without questions"),
    Row("--permission-prompt-tool", "works", "`stdio` only"),
    Row("--permission-prompts", "works"),
    Row("--plugin-dir", "works"),
    Row("--plugin-dir-no-mcp", "works"),
    Row("--project-config-root", "refused", "the project is the nearest folder with `.git`"),
    Row("--replay-user-messages", "works"),
    Row("--resume", "works"),
    Row("--resume-drops-turn", "works"),
    Row("--resume-session-at", "works"),
    Row("--sdk-url", "refused", "panpan speaks over its pipes only"),
    Row("--session-id", "works"),
    Row("--session-mirror", "works", "the records are panpan's; also the log of the session stays in `~/.panpan`"),
    Row("--setting-sources", "works", "the user's models and providers always count, as a login does"),
    Row(
        "--settings",
        "works",
        "panpan's, or Claude Code's: `permissions`, `env`, `hooks`, `model`, `sandbox`, `outputStyle`, `statusLine`",
    ),
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

_READ_ONCE = "a session reads them once; end it, and go on with `resume`"

REQUESTS: Sequence[Row] = (
    Row("apply_flag_settings", "works", "`model` and `effortLevel`; after the running turn"),
    Row("background_tasks", "works"),
    Row("cancel_async_message", "works"),
    Row("end_session", "works"),
    Row("file_suggestions", "works", "`suggestions`, each with a `path`, as behind an @ in the terminal"),
    Row("get_context_usage", "works", "the parts are panpan's; no lists of files, tools and agents"),
    Row("get_hooks_listing", "works", "hooks that a skill brings along are not listed"),
    Row("get_session_cost", "works"),
    Row("get_settings", "works", "panpan's names, without secrets; `sources` have what counts of each"),
    Row("get_task_output", "works"),
    Row("get_usage", "refused", "panpan has no subscription that could be used up"),
    Row("initialize", "works", "a second one replaces the hooks; `commands` are those of every session"),
    Row("interrupt", "works", "the turn, not the process"),
    Row("list_models", "works", "those for which there is a key or a server"),
    Row("list_permission_rules", "works"),
    Row("mcp_call", "works", "the text of the result; no staged files, time-outs or checks of permissions"),
    Row("mcp_read_resource", "works", "addresses that begin with `ui://`"),
    Row("mcp_reconnect", "works"),
    Row("mcp_set_servers", "works", "in a session that began with a server; the model finds the new tools by search"),
    Row("mcp_status", "works"),
    Row("mcp_toggle", "works", "for this session"),
    Row("read_file", "works", "what the model may read without a question; at most 10 MB"),
    Row("register_repo_root", "refused", "the project is the nearest folder with `.git`"),
    Row("reload_output_styles", "refused", _READ_ONCE),
    Row("reload_plugins", "refused", _READ_ONCE),
    Row("reload_skills", "refused", _READ_ONCE),
    Row("rename_session", "works"),
    Row("rewind_files", "works", "any change, also of commands; files that others have changed since stay"),
    Row("seed_read_state", "refused", "only what the model has read counts as read"),
    Row("set_max_thinking_tokens", "works", "on or off; after the running turn"),
    Row("set_model", "works", "after the running turn"),
    Row("set_permission_mode", "works", "`bypassPermissions` as the command line allows"),
    Row("stop_task", "works"),
    Row("update_settings", "refused", "a program writes no settings files; `apply_flag_settings` is for its session"),
)
"""Control requests of the program, by name."""

ASKED: Sequence[Row] = (
    Row(
        "can_use_tool",
        "works",
        "waits without limit; also for questions of the model (`AskUserQuestion`) and plans (`ExitPlanMode`)",
    ),
    Row("elicitation", "works", "a program that does not know it is asked by `can_use_tool` instead"),
    Row("hook_callback", "works", "600 s, or the time of its matcher; `PreToolUse` that does not answer denies"),
    Row("mcp_message", "works"),
    Row("request_user_dialog", "not yet"),
)
"""Control requests that panpan sends to the program."""
