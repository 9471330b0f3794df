"""What long calls show while they run."""

from __future__ import annotations

import re
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import monet
import pytest
from monet.progress import Display, progress_of

DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.fixture(params=["tqdm", "lines"])
def display(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "tqdm":
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    return str(request.param)


def test_short_calls_show_nothing(display: str, capfd: pytest.CaptureFixture[str]) -> None:
    network = monet.read_network(DATA / "workload" / "ds_cnn.onnx")
    network.inference().schedule(monet.read_chip(DATA / "hardware" / "edge_tpu.yaml"), mode="layer-by-layer", progress=True)
    assert capfd.readouterr() == ("", "")


def wait_for(text: str, capfd: pytest.CaptureFixture[str]) -> str:
    """What stderr had received when `text` appeared in it, at most a minute later."""
    seen = ""
    end = time.monotonic() + 60
    while text not in seen:
        assert time.monotonic() < end, seen
        time.sleep(0.01)
        seen += capfd.readouterr().err
    return seen


def test_stages_are_shown_though_they_say_nothing_more(display: str, capfd: pytest.CaptureFixture[str]) -> None:
    with Display(quiet=0.05) as progress:
        progress("training: fusion")
        wait_for("training: fusion", capfd)
        progress("training: tiling")
        wait_for("training: tiling", capfd)
    told = capfd.readouterr().err
    assert told.rstrip().splitlines()[-1].split("\r")[-1].startswith("monet: done")


@pytest.mark.parametrize("form", [dict, lambda **state: SimpleNamespace(**state)])
def test_searches_show_how_far_they_are(form: Any, display: str, capfd: pytest.CaptureFixture[str]) -> None:
    with Display(quiet=0.05) as progress:
        progress(form(phase="whole step", done=25, total=100, best=300.0, bound=240.0, seconds_left=12.3))
        told = wait_for("12 s left", capfd)
    assert "25 of 100" in told
    assert "best 300, bound 240, gap 25.0%, 12 s left" in told
    assert (" 25%|" in told) == (display == "tqdm")


def test_a_search_without_an_end_counts(display: str, capfd: pytest.CaptureFixture[str]) -> None:
    with Display(quiet=0.05) as progress:
        progress({"phase": "designs", "done": 1234, "total": None, "best": None})
        wait_for("designs 1,234", capfd)


def test_lines_are_rare(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with Display(quiet=0.2) as progress:
        begin = time.monotonic()
        while time.monotonic() < begin + 1:
            progress("stage")
            time.sleep(0.001)
    lines = capfd.readouterr().err.splitlines()
    assert 2 <= len(lines) <= (time.monotonic() - begin) / 0.2 + 1  # one every 0.2 s and the last


def test_a_call_that_fails_does_not_say_done(display: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError), Display(quiet=0.05) as progress:
        progress("stage")
        wait_for("stage", capfd)
        raise RuntimeError
    told = capfd.readouterr().err
    assert "stopped" in told
    assert "done" not in told


def test_threads_end_with_their_call(display: str) -> None:
    before = threading.active_count()
    for _ in range(20):
        with progress_of(True) as told:
            assert told is not None
            told("stage")
    assert threading.active_count() == before


def test_what_is_given_is_called() -> None:
    heard: list[object] = []
    with progress_of(heard.append) as told:
        assert told is not None
        told("stage")
    assert heard == ["stage"]
    for silent in (None, False):
        with progress_of(silent) as told:
            assert told is None


def test_a_closed_stderr_ends_no_call(display: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = (tmp_path / "closed").open("w")
    file.close()
    monkeypatch.setattr(sys, "stderr", file)
    with Display(quiet=0.02) as progress:
        for _ in range(20):
            progress("stage")
            time.sleep(0.01)


def test_times_are_of_the_call(display: str, capfd: pytest.CaptureFixture[str]) -> None:
    with Display(quiet=1.2) as progress:
        progress("stage")
        time.sleep(1.4)
    told = capfd.readouterr().err
    assert re.search(r"\[00:0[1-9]\]|\([1-9] s\)", told)
