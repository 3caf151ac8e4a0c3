"""Executors for independent simulations: local processes or threads, or a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context, parent_process

from haptics.errors import ConfigurationError


@contextlib.contextmanager
def workers(kind: str, count: int) -> Iterator[tuple[Executor, int]]:
    """Yield an executor and its number of workers.

    Parameters
    ----------
    kind : str
        ``processes``, ``threads``, ``local`` for a Dask cluster on this machine, or the address of a Dask scheduler.
    count : int
        Number of workers; 0 for one per processor. Ignored for an existing cluster.

    Raises
    ------
    ConfigurationError
        If there is no such cluster, or Dask is not installed.
    """
    count = count or len(os.sched_getaffinity(0))
    if kind == "threads":
        with ThreadPoolExecutor(count) as threads:
            yield threads, count
        return
    if kind == "processes":
        with ProcessPoolExecutor(count, get_context("spawn"), end_with_parent) as processes:
            try:
                yield processes, count
            except BaseException:
                processes.shutdown(wait=False, cancel_futures=True)
                raise
        return
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ConfigurationError("--cluster needs Dask: pip install 'haptics[cluster]', or leave it out.") from error
    with contextlib.ExitStack() as stack:
        try:
            if kind == "local":
                own = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
                client = stack.enter_context(Client(stack.enter_context(own)))
            else:
                client = stack.enter_context(Client(kind, timeout=10.0))
        except (OSError, ValueError, TimeoutError) as error:
            raise ConfigurationError(f"--cluster {kind}: no scheduler answers there ({error}).") from error
        known = sum(client.nthreads().values())
        yield client.get_executor(pure=False, retries=3), max(known, 1)


def end_with_parent() -> None:
    """End this worker process when its parent has ended; otherwise it would wait for tasks forever."""

    def await_parent() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=await_parent, name="end with parent", daemon=True).start()
