"""Facts about the machine of a check, without its name."""

import os
import platform
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from anyio import to_thread

from panpan.errors import ToolError
from panpan.system.processes.process import capture

_GPU_S = 10.0


async def hardware(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the processor, memory, GPUs and system of this machine; what is not known is left out."""
    found = await to_thread.run_sync(_machine)
    gpus = await _gpus(environ)
    return {**found, "gpus": gpus}


def _machine() -> dict[str, Any]:
    memory = 0
    with suppress(ValueError, OSError):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "processor": _processor() or platform.processor(),
        "processors": os.cpu_count(),
        "memory_bytes": memory or None,
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()).strip(),
    }


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""


async def _gpus(environ: Mapping[str, str]) -> list[str]:
    program = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if program is None:
        return []
    query = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = await capture(query, cwd=Path("/"), timeout_s=_GPU_S)
    except ToolError:
        return []
    return done.stdout.decode(errors="replace").splitlines() if done.exit_code == 0 else []
