"""Settings of downloads."""

from pydantic import Field

from panpan.config.settings import Name, Table, WebAddress


class DataSettings(Table):
    """Downloads of data sets, `[data]`; set by the user alone."""

    table = "data"

    max_gb: float = Field(default=100.0, gt=0, le=1_000_000)
    """Billions of bytes that one download may bring, and that may come of one archive."""
    max_ratio: float = Field(default=200.0, ge=1, le=100_000)
    """Times its own size that an archive may become; one that becomes no more than 10 MB may in any case."""
    hub: WebAddress = "https://huggingface.co"
    """Address of the hub for `hf://`, such as a mirror; it may be on this machine or its network."""
    hub_token_env: Name = "HF_TOKEN"
    """Environment variable that holds the user's token for it."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        return (self.hub_token_env,)
