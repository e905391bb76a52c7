"""Renewals: on time, each on its own, and without a thread for a write that ends before the first one."""

from __future__ import annotations

import os
import threading
import warnings

from drawstring.base.resources import Renewal

LONG = 60.0
SHORT = 0.001
PATIENCE = 30.0


def test_a_renewal_goes_on_until_it_says_so() -> None:
    done = threading.Event()
    left = [True, True, False]

    def renew() -> bool:
        goes_on = left.pop(0)
        if not left:
            done.set()
        return goes_on

    Renewal(renew, SHORT).start()
    assert done.wait(PATIENCE)


def test_a_failed_renewal_is_tried_again() -> None:
    done = threading.Event()
    failures = [OSError("first"), OSError("second")]

    def renew() -> bool:
        if failures:
            raise failures.pop(0)
        done.set()
        return False

    Renewal(renew, SHORT).start()
    assert done.wait(PATIENCE)


def test_a_renewal_that_hangs_holds_up_no_other() -> None:
    begun, done, released = threading.Event(), threading.Event(), threading.Event()

    def hang() -> bool:
        begun.set()
        released.wait(PATIENCE)
        return False

    def renew() -> bool:
        done.set()
        return False

    Renewal(hang, SHORT).start()
    assert begun.wait(PATIENCE)
    Renewal(renew, SHORT).start()
    assert done.wait(PATIENCE)
    released.set()


def test_a_renewal_that_is_due_earlier_does_not_wait_for_a_later_one() -> None:
    done = threading.Event()
    later = Renewal(lambda: True, LONG)
    later.start()
    Renewal(lambda: done.set() is not None, SHORT).start()
    assert done.wait(PATIENCE)
    later.stop()


def test_renewals_that_end_before_they_are_due_share_one_thread() -> None:
    calls: list[int] = []
    first = Renewal(lambda: True, LONG)
    first.start()
    before = set(threading.enumerate())
    for number in range(100):
        short = Renewal(lambda number=number: calls.append(number) is None, LONG)  # type: ignore[misc]
        short.start()
        assert set(threading.enumerate()) <= before
        short.stop()
    first.stop()
    assert calls == []


def test_a_stopped_renewal_begins_again() -> None:
    done = threading.Event()
    renewal = Renewal(lambda: done.set() is not None, SHORT)
    renewal.start()
    renewal.stop()
    done.clear()
    renewal.start()
    assert done.wait(PATIENCE)


def test_a_forked_process_renews_what_it_began_itself_and_nothing_else() -> None:
    others: list[int] = []
    inherited = Renewal(lambda: others.append(os.getpid()) is None, SHORT)
    kept = Renewal(lambda: True, LONG)
    kept.start()
    reading, writing = os.pipe()
    inherited.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the parent has threads: that is the point
        child = os.fork()
    if child == 0:
        done = threading.Event()
        own = Renewal(lambda: done.set() is not None, 50 * SHORT)
        own.start()
        is_renewed = done.wait(PATIENCE)
        os.write(writing, b"yes" if is_renewed and os.getpid() not in others else b"no")
        os._exit(0)
    os.waitpid(child, 0)
    inherited.stop()
    kept.stop()
    assert os.read(reading, 3) == b"yes"
