"""Settings of compaction."""

from pydantic import Field

from panpan.config.settings import WindowSettings


class CompactionSettings(WindowSettings):
    """Limits at which the conversation sent to a model is compacted, `[compaction]`."""

    table = "compaction"

    reserve_tokens: int = Field(default=16_384, ge=1_000)
    """Tokens of the window that stay free for the reply; a quarter of a small window."""
    keep_recent_tokens: int = Field(default=20_000, ge=1_000)
    """Tokens of the newest messages that stay as they are; fewer in a small window."""
