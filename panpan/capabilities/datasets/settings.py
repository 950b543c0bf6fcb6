"""Settings of downloads."""

from pydantic import Field

from panpan.config.settings import Name, Table, WebAddress


class DataSettings(Table):
    """Downloads of data sets, `[data]`; set by the user alone."""

    table = "data"

    max_gb: float = Field(default=100.0, gt=0, le=1_000_000)
    """GB (10⁹ bytes) of one download, and of one unpacked archive."""
    max_ratio: float = Field(default=200.0, ge=1, le=100_000)
    """Unpacked size of an archive, as a multiple of its own size; up to 10 MB are always allowed."""
    hub: WebAddress = "https://huggingface.co"
    """Address of the hub for `hf://`, such as a mirror; it may be on this machine or in its network."""
    hub_token_env: Name = "HF_TOKEN"
    """Environment variable that holds the user's token for the hub."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        return (self.hub_token_env,)
