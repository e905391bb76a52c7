from __future__ import annotations

import errno
import os

import pytest

from drawstring.base.errors import UnavailableError
from drawstring.spark.workers.tasks import WorkerError, raise_worker_errors, serialize_errors


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EIO])
def test_a_full_disk_of_a_worker_reaches_the_driver_as_what_it_is(number: int) -> None:
    with pytest.raises(WorkerError) as caught, serialize_errors():
        raise OSError(number, os.strerror(number))
    with pytest.raises(UnavailableError, match="then try again"), raise_worker_errors():
        raise RuntimeError(f"Job aborted: {caught.value}")


def test_another_error_of_a_worker_stays_what_it_is() -> None:
    with pytest.raises(FileNotFoundError), serialize_errors():
        raise FileNotFoundError(errno.ENOENT, "gone")
