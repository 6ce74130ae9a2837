from __future__ import annotations

import threading

from pipediag.library.watching import OwnThread


def test_the_program_counts_its_own_threads_alone() -> None:
    before, seen, go = threading.enumerate(), threading.Event(), threading.Event()

    def works() -> None:
        seen.set()
        go.wait(10)

    thread = OwnThread(works)
    assert seen.wait(10)
    assert threading.enumerate() == before
    go.set()
    thread.join()


def test_it_does_not_wait_for_itself() -> None:
    threads: list[OwnThread] = []
    made, joined = threading.Event(), threading.Event()

    def joins() -> None:
        made.wait(10)
        threads[0].join()
        joined.set()

    threads.append(OwnThread(joins))
    made.set()
    assert joined.wait(10)
    threads[0].join()
