"""The process of a worker: `python -P -m panpan.batch.cluster.worker_process ADDRESS`.

It ends when the scheduler is gone, on SIGTERM, and, where the coordinator holds its input, when that closes. Its
attempts stop before, and go on elsewhere.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import dask
from distributed import Worker
from distributed.comm.addressing import get_address_host
from distributed.core import Status
from distributed.utils import get_ip

from panpan.batch.cluster.dask_library import SETTINGS, QuietWorker
from panpan.batch.cluster.security import security_in
from panpan.batch.cluster.worker import Seat

_CLOSE_S = 3.0


@click.command()
@click.argument("address")
@click.option("--certificate", type=click.Path(path_type=Path), required=True, help="Folder with the certificate.")
@click.option("--name", required=True)
@click.option("--nthreads", type=click.IntRange(min=1), required=True, help="Attempts at once.")
@click.option("--death-timeout", type=float, default=60.0, help="Seconds to wait for the scheduler at the start.")
@click.option("--gpus", help="Numbers of the GPUs, as 0,1.")
@click.option("--held", is_flag=True, help="End when the input closes.")
@click.option("--interface", help="Network to listen at, from Dask's settings of Slurm.")
@click.option("--local-directory", help="Folder for Dask's own files, from its settings of Slurm.")
@click.option("--memory-limit", expose_value=False, help="Not used: attempts are programs of their own.")
def main(
    address: str,
    certificate: Path,
    name: str,
    nthreads: int,
    death_timeout: float,
    gpus: str | None,
    held: bool,
    interface: str | None,
    local_directory: str | None,
) -> None:
    """Work for the scheduler at ADDRESS."""
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    # a folder of its own, since Dask shares one of /tmp with whoever made it first
    with dask.config.set(SETTINGS), TemporaryDirectory(prefix="panpan-worker-") as scratch:
        asyncio.run(
            _work(
                partial(
                    QuietWorker,
                    address,
                    name=name,
                    nthreads=nthreads,
                    security=security_in(certificate),
                    interface=interface,
                    host=None if interface else get_ip(get_address_host(address)),  # else it listens everywhere
                    local_directory=local_directory or scratch,
                    memory_limit=0,
                    death_timeout=death_timeout,
                ),
                is_held=held,
            )
        )


async def _work(make: Callable[[], Worker], *, is_held: bool) -> None:
    loop = asyncio.get_running_loop()
    leaves = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, leaves.set)
    if is_held:
        loop.add_reader(0, _look_at_input, leaves)
    worker = make()
    if await _first(_started(worker), leaves) and not await _first(worker.finished(), leaves):
        await _leave(worker)


async def _started(worker: Worker) -> None:
    await worker


async def _first(work: Coroutine[None, None, None], leaves: asyncio.Event) -> bool:
    """Wait for some work; False if the worker is to leave before."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(leaves.wait())
    await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    leaving.cancel()
    if not working.done():
        working.cancel()
        return False
    try:
        working.result()
    except (OSError, TimeoutError) as error:
        sys.exit(f"the scheduler does not answer: {error}")
    return True


async def _leave(worker: Worker) -> None:
    worker.status = Status.paused  # so that the scheduler sends it nothing more
    seats = [plugin for plugin in worker.plugins.values() if isinstance(plugin, Seat)]
    await asyncio.gather(*(seat.leave() for seat in seats))
    with suppress(TimeoutError):
        await asyncio.wait_for(worker.close(timeout=_CLOSE_S, executor_wait=False), _CLOSE_S * 2)


def _look_at_input(leaves: asyncio.Event) -> None:
    if not os.read(0, 4096):
        leaves.set()
        asyncio.get_running_loop().remove_reader(0)


if __name__ == "__main__":
    main()
