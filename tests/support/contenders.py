"""Programs that take locks beside drawstring, in processes of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

JAVA = Path(__file__).with_name("java")


class Contender:
    """A program that takes commands line by line, and answers each with a line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def acquire(self, wait_ms: int) -> bool:
        return self.say(f"acquire {wait_ms}") == "true"

    def release(self) -> None:
        assert self.say("release") == "released"

    def say(self, command: str) -> str:
        self.send(command)
        return self.answer()

    def send(self, command: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Return the next line of an answer; the log that Java prints between is passed over."""
        assert self._process.stdout
        for line in self._process.stdout:
            if (told := line.strip()) in ("ready", "true", "false", "released"):
                return told
        raise AssertionError("the program ended")


@contextmanager
def contender(command: Sequence[str]) -> Iterator[Contender]:
    """Run a program until the block ends."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with process:
        try:
            program = Contender(process)
            assert program.answer() == "ready"
            yield program
        finally:
            process.kill()
