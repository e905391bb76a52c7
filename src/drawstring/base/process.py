"""How a process names itself to others, in lock files and messages."""

from __future__ import annotations

import os
import socket


def this_process() -> str:
    """Return the id of this process and the name of its host, as text for people."""
    return f"process {os.getpid()} on {socket.gethostname()}"
