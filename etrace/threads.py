# SPDX-License-Identifier: Apache-2.0
"""Work of several threads that a signal ends.

A pool of `concurrent.futures` waits for its threads when it is left, and Python waits for them when
it ends: SIGTERM would be answered when a file of a terabyte was read.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
#: items that are handed out ahead of their results, for each thread
N_AHEAD = 4


def mapped(function: Callable[[T], R], items: Iterable[T], n_threads: int) -> Iterator[R]:
    """Yield the results of a function for all items, in their order, made by threads.

    The first error of the function is raised. The threads are daemons: whoever stops reading, by a
    signal too, does not wait for what they still do; what was not begun is not done.
    """
    todo: queue.SimpleQueue[tuple[int, T] | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, R | None, BaseException | None]] = queue.SimpleQueue()
    is_over = threading.Event()

    def work() -> None:
        while (task := todo.get()) is not None and not is_over.is_set():
            number, item = task
            try:
                done.put((number, function(item), None))
            except BaseException as error:  # noqa: BLE001  raised where the results are read
                done.put((number, None, error))

    results: dict[int, R] = {}
    n_added = n_yielded = 0
    rest = enumerate(items)
    try:
        while True:
            while n_added - n_yielded < N_AHEAD * n_threads and (task := next(rest, None)):
                if n_added < n_threads:
                    threading.Thread(target=work, daemon=True).start()
                todo.put(task)
                n_added += 1
            if n_yielded == n_added:
                return
            while n_yielded not in results:
                number, result, error = done.get()
                if error is not None:
                    raise error
                results[number] = result  # type: ignore[assignment]
            yield results.pop(n_yielded)
            n_yielded += 1
    finally:
        is_over.set()
        for _ in range(min(n_added, n_threads)):
            todo.put(None)
