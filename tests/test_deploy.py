"""What is in deploy/: read by the tools it is for where they are installed, and in step with what the program does."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tickler import ManualClock, connect
from tickler.observe.metrics import Metrics

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
NAME = re.compile(r"\btickler_\w+")
COMMAND = "/opt/tickler/bin/tickler"


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    return found


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panel_expressions() -> list[str]:
    return [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]


@pytest.fixture
async def exported() -> dict[str, set[str]]:
    """The names of all samples, by metric."""
    async with connect("memory://", clock=ManualClock(1_921_406_400_000)) as t:
        return {
            family.name: {sample.name for sample in family.samples if not sample.name.endswith("_created")}
            for family in Metrics(t).registry.collect()
        }


# Prometheus and Grafana.


def test_dashboard_and_alerts_name_only_what_is_exported(exported: dict[str, set[str]]) -> None:
    known = set().union(*exported.values())
    variables = [each["definition"] for each in dashboard()["templating"]["list"] if "definition" in each]
    for expression in [*panel_expressions(), *variables, *(rule["expr"] for rule in alerts())]:
        named = set(NAME.findall(expression))
        assert named, expression
        assert named <= known, f"{named - known} in {expression}"


def test_every_metric_has_a_panel(exported: dict[str, set[str]]) -> None:
    shown = {name for expression in panel_expressions() for name in NAME.findall(expression)}
    assert {metric for metric, samples in exported.items() if not samples & shown} == set()


def test_expressions_are_whole() -> None:
    for expression in [*panel_expressions(), *(rule["expr"] for rule in alerts())]:
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), expression
        if "histogram_quantile" in expression:
            assert "_bucket" in expression
            assert re.search(r"by \((job, )?le\)", expression), expression
        for counter in re.findall(r"tickler_\w+_(?:total|bucket)", expression):
            assert f"rate({counter}" in expression, f"of a counter only its rate says something: {expression}"


def test_panels_have_ids_of_their_own_say_what_they_are_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["title"]
        assert panel["description"].endswith(".")
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_the_three_alerts_say_what_is_wrong_and_what_to_do() -> None:
    assert [rule["alert"] for rule in alerts()] == ["TicklerNothingClaimed", "TicklerLate", "TicklerDeadFires"]
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert re.fullmatch(r"\d+m", rule["for"])
        assert {"summary", "description"} == set(rule["annotations"])


STANDING = ("tickler_store_up", "tickler_oldest_due_seconds", "tickler_last_claim_timestamp_seconds", "tickler_dead_fires")
UP = {"tickler_store_up": "1x20", "tickler_dead_fires": "0x20", "tickler_oldest_due_seconds": "0x20"}
CLAIMS = {"tickler_last_claim_timestamp_seconds": "0+60x20"}
DOWN = {"tickler_store_up": "0x20", **dict.fromkeys(STANDING[1:], "NaN " * 21)}
NOTHING_CLAIMED = {
    **UP,
    "tickler_oldest_due_seconds": "0+60x20",
    "tickler_last_claim_timestamp_seconds": "0x20",
}


@pytest.mark.parametrize(
    ("exports", "raised"),
    [
        ([{**UP, **CLAIMS}], {}),
        ([NOTHING_CLAIMED], {"TicklerNothingClaimed": "has waited for 15m 0s", "TicklerLate": "were 15m 0s late"}),
        ([{**UP, **CLAIMS, "tickler_oldest_due_seconds": "400x20"}], {"TicklerLate": "6m 40s late"}),
        ([{**UP, **CLAIMS, "tickler_dead_fires": "3x20"}], {"TicklerDeadFires": "3 fires failed"}),
        ([DOWN], {"TicklerNothingClaimed": "The store does not answer"}),
        ([DOWN, {**UP, **CLAIMS}], {}),
        ([], {"TicklerNothingClaimed": "No Tickler process is scraped"}),
    ],
    ids=["well", "nothing claimed", "late", "dead", "no store", "one of two without", "no process"],
)
def test_prometheus_raises_the_alert_that_fits(tmp_path: Path, exports: list[dict[str, str]], raised: dict[str, str]) -> None:
    """A quarter of an hour in, of what one process of a job exports, or two."""
    series = [
        {"series": f'{name}{{job="tickler", instance="{number}"}}', "values": values}
        for number, export in enumerate(exports)
        for name, values in export.items()
    ]
    for rule in alerts():
        done = promtool_test(tmp_path, rule["alert"], series)
        assert bool(done.returncode) is (rule["alert"] in raised), f"{rule['alert']}: {done.stdout}{done.stderr}"
        assert raised.get(rule["alert"], "") in re.sub(r"\s+", " ", done.stdout + done.stderr)


def promtool_test(folder: Path, alert: str, series: list[dict[str, str]]) -> subprocess.CompletedProcess[str]:
    """Expects that it is not raised: if it is, promtool fails, and says what was."""
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("PROMTOOL IS NOT INSTALLED: the alerts in deploy/ were not tried (it comes with Debian's package prometheus)")
    test = {
        "interval": "1m",
        "input_series": series,
        "alert_rule_test": [{"eval_time": "15m", "alertname": alert, "exp_alerts": []}],
    }
    written = {"rule_files": [str(DEPLOY / "alerts.yaml")], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    return subprocess.run([promtool, "test", "rules", str(folder / "test.yaml")], capture_output=True, text=True, timeout=60)


# systemd.


def unit(tmp_path: Path) -> Path:
    """The unit with a command that is here."""
    text = (DEPLOY / "tickler.service").read_text(encoding="utf-8")
    assert text.count(f"ExecStart={COMMAND} serve\n") == 1
    (tmp_path / "tickler.service").write_text(text.replace(f"ExecStart={COMMAND}", f"ExecStart={sys.executable} -m tickler"))
    return tmp_path / "tickler.service"


def systemd_analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("SYSTEMD IS NOT INSTALLED: the unit in deploy/ was not checked (apt-get install systemd)")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60)


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    done = systemd_analyze("verify", "--man=no", str(unit(tmp_path)))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_unit_gives_away_little(tmp_path: Path) -> None:
    done = systemd_analyze("security", "--offline=yes", "--threshold=20", str(unit(tmp_path)))
    assert done.returncode == 0, done.stdout[-300:] + done.stderr


def test_the_unit_keeps_its_state_where_it_may_write() -> None:
    text = (DEPLOY / "tickler.service").read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z]\w+=", line))
    assert (settings["DynamicUser"], settings["NoNewPrivileges"], settings["ProtectSystem"]) == ("yes", "yes", "strict")
    assert settings["StateDirectory"] == "tickler"
    assert int(settings["LimitNOFILE"]) >= 65_536  # its filter of system calls keeps it from raising the limit itself
    assert "Environment=TICKLER_STORE=sqlite:///%S/tickler/" in text


# The container.


def container_lines() -> list[str]:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    whole = re.sub(r"\\\n\s*", "", text)
    return [line for line in whole.splitlines() if line and not line.startswith("#")]


def test_the_container_is_made_of_what_is_here_and_does_not_run_as_root() -> None:
    lines = container_lines()
    images = {line.split()[1] for line in lines if line.startswith("FROM ")}
    assert images == {"python:3.13-slim"}, "a short name: whose registry is the operator's to say"
    copied = [name for line in lines if re.match(r"COPY (?!--)", line) for name in line.split()[1:-1]]
    assert all((ROOT / name).exists() for name in copied), copied
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert all(extra in extras for line in lines for extra in re.findall(r"'\.\[(\w+)\]'", line))
    (user,) = (line.split()[1] for line in lines if line.startswith("USER "))
    assert user not in ("0", "root")
    assert lines.index(f"USER {user}") < lines.index('ENTRYPOINT ["tickler"]')


def health_check() -> list[str]:
    (line,) = (line for line in container_lines() if line.startswith("HEALTHCHECK "))
    command: list[str] = json.loads(line.partition(" CMD ")[2])
    assert command[0] == "python"
    return [sys.executable, *command[1:]]


def test_workers_are_not_asked_at_a_port_that_they_do_not_have() -> None:
    """The health check is that of `serve`; one that always fails has a worker restarted for ever."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\n# ", " ")
    examples = re.findall(r"podman run [^;\n]*?tickler work", text)
    assert examples
    assert all("--no-healthcheck" in example for example in examples)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found: int = free.getsockname()[1]
        return found


@pytest.fixture
def service(tmp_path: Path, port: int) -> Iterator[dict[str, str]]:
    """`tickler serve`, and the environment it was started with."""
    environ = {**os.environ, "TICKLER_STORE": f"sqlite:///{tmp_path / 't.db'}", "TICKLER_PORT": str(port), "TICKLER_LOG": "json"}
    command = [sys.executable, "-m", "tickler", "serve"]
    with subprocess.Popen(command, env=environ, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as serving:
        yield environ
        serving.terminate()
        said = serving.communicate(timeout=60)[1]
    assert serving.returncode == 0, said


def test_the_health_check_knows_a_service_that_is_ready_and_metrics_can_be_scraped(service: dict[str, str], port: int) -> None:
    until = time.monotonic() + 60
    while (checked := subprocess.run(health_check(), env=service, capture_output=True, timeout=60)).returncode:
        assert time.monotonic() < until, checked.stderr
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert b"\ntickler_store_up 1.0\n" in answer.read()


def test_the_health_check_fails_where_nothing_answers(port: int) -> None:
    checked = subprocess.run(health_check(), env={**os.environ, "TICKLER_PORT": str(port)}, capture_output=True, timeout=60)
    assert checked.returncode == 1
