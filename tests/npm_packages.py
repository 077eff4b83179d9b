"""Packages of npm for tests that run other people's JavaScript: fetched once into a cache, which only `make soak` does."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

import pytest

DOWNLOAD_TIMEOUT_S = 300


def node_modules(*packages: str) -> Path:
    """The folder that has these, each as `name@version`. Skips the test where there is no node, or they cannot be had."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"NOT TESTED with {', '.join(packages)}: there is no {program}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tickler"
    folder = cache / f"npm-{sha256(' '.join(packages).encode()).hexdigest()[:16]}"
    if not folder.is_dir():
        try:
            _install(packages, folder)
        except (OSError, subprocess.SubprocessError) as error:
            why = " ".join(str(getattr(error, "stderr", None) or error).split())[:200]
            pytest.skip(f"NOT TESTED with {', '.join(packages)}: npm could not download them: {why}")
    return folder / "node_modules"


def _install(packages: tuple[str, ...], folder: Path) -> None:
    """Whoever comes second, when several processes do this at once, throws its copy away."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    options = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as temporary:
        fetched = Path(temporary) / "fetched"
        fetched.mkdir()
        (fetched / "package.json").write_text("{}")
        subprocess.run(
            ["npm", "install", *options, *packages],
            cwd=fetched, check=True, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S,
        )  # fmt: skip
        with contextlib.suppress(OSError):  # somebody else's is there
            fetched.rename(folder)
