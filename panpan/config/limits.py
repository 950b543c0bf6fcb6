"""From the settings of limits to the limits of commands."""

from panpan.config.settings import LimitSettings
from panpan.system.processes.limits import GB, Limits, default_processes


def limits_of(settings: LimitSettings) -> Limits:
    """Return what one command may use."""
    processes = default_processes() if settings.processes is None else settings.processes
    return Limits(
        memory_bytes=None if settings.memory_gb is None else int(settings.memory_gb * GB),
        processes=processes if isinstance(processes, int) else None,
        file_bytes=settings.file_gb * GB if isinstance(settings.file_gb, int) else None,
        cpu_s=settings.cpu_s,
        required=frozenset(settings.model_fields_set),
    )
