"""What was ignored of the input: as Python's warnings, and in answers as the command line has it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import monet
import pytest
from command_line import CHIP, NETWORK, ROOT, SMALL, command
from test_package import chip_dict

LATE = "the latency of 3 cycles delays element-wise operators only"
MAPPING = [{"name": "Tokeniser", "core_allocation": [0]}, {"name": "default", "core_allocation": [0]}]
ENTRY = "entry 'Tokeniser' is ignored: there is no such layer, nor a type of operators"


def late_chip() -> dict[str, Any]:
    """Its first core has a memory whose latency the model ignores."""
    chip = chip_dict()
    chip["cores"][0]["memories"]["sram"]["latency"] = 3
    return chip


def told(call: Callable[[], object]) -> list[monet.MonetWarning]:
    """What the call warns of, at the line below."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    for one in caught:
        assert one.category is monet.MonetWarning
        assert one.filename == __file__, "the caller's line, not the package's"
    found = [one.message for one in caught]
    assert all(isinstance(one, monet.MonetWarning) for one in found)
    return found  # type: ignore[return-value]


def step() -> monet.Step:
    return monet.read_network(SMALL).inference("int8")


@pytest.fixture(scope="module")
def chip() -> monet.Chip:
    with pytest.warns(monet.MonetWarning):
        return monet.read_chip(late_chip())


def test_a_dicts_warning_has_its_key() -> None:
    [found] = told(lambda: monet.read_chip(late_chip()))
    assert found.where == "core 0['memories']['sram']['latency']"
    assert LATE in found.what
    assert str(found).startswith("core 0['memories']['sram']['latency']: ")
    again = pickle.loads(pickle.dumps(found))
    assert (str(again), again.where, again.what, again.hint) == (str(found), found.where, found.what, found.hint)


def test_a_hint_is_part_of_the_text() -> None:
    assert str(monet.MonetWarning("a.yaml:1:2", "is ignored", "did you mean b?")) == "a.yaml:1:2: is ignored (did you mean b?)"
    assert str(monet.MonetWarning("", "is ignored")) == "is ignored"


def test_every_call_warns_of_what_it_reads(chip: monet.Chip, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(json.dumps(MAPPING))
    calls: dict[str, Callable[[], Any]] = {
        "schedule": lambda: step().schedule(chip, mode="layer-by-layer", mapping=MAPPING),
        "allocation": lambda: monet.optimise.allocation(
            step(), monet.read_chip(CHIP), mode="layer-by-layer", evaluations=2, population=2, mapping=MAPPING
        ),
        "core": lambda: monet.core(ROOT / "examples/core/two_by_two.yaml", SMALL, mapping=[
            {"name": "Tokeniser", "core_allocation": [0], "spatial_mapping": {"D1": ["K, 2"]}}]),
        "run": lambda: monet.run({"workload": {"network": str(NETWORK), "batch": 1}, "hardware": str(CHIP), "mapping": str(mapping),
                                  "schedule": {"mode": "layer-by-layer"}}, tmp_path / "out"),
    }  # fmt: skip
    for name, call in calls.items():
        answers: list[Any] = []
        found = told(lambda: answers.append(call()))  # noqa: B023
        assert [ENTRY in one.what for one in found] == [True], (name, found)
        assert found[0].where in ("mapping[0]", "mapping[0]['name']", f"{mapping}:1:2"), (name, found[0].where)
        assert ENTRY in [one.what for one in answers[0].warnings], name


def test_answers_have_the_command_lines_warnings(tmp_path: Path) -> None:
    system, mapping = tmp_path / "chip.yaml", tmp_path / "mapping.yaml"
    whole = late_chip()
    for number, core in whole["cores"].items():
        (tmp_path / f"core{number}.yaml").write_text(json.dumps(core))
    system.write_text(json.dumps(whole | {"cores": {number: f"core{number}.yaml" for number in whole["cores"]}}))
    mapping.write_text(json.dumps(MAPPING))
    with pytest.warns(monet.MonetWarning) as caught:
        chip = monet.read_chip(system)
        result = step().schedule(chip, mode="layer-by-layer", mapping=mapping)
    assert [f"{tmp_path}/{name}" in str(one.message) for one, name in zip(caught, ("core0.yaml:1:", "mapping.yaml:1:"))] == [True] * 2
    theirs = command("schedule", "--hardware", system, "--workload", SMALL, "--precision", "int8", "--mode", "layer-by-layer",
                     "--mapping", mapping)  # fmt: skip
    assert result.to_json() == theirs
    assert [one["message"] for one in json.loads(theirs)["warnings"]] == [one.what for one in result.warnings]
    assert len(result.warnings) == 2
    assert pickle.loads(pickle.dumps(result)).to_json() == theirs
    result.report(tmp_path / "ours")
    assert len(json.loads((tmp_path / "ours" / "result.json").read_text())["warnings"]) == 2
    assert "Tokeniser" in (tmp_path / "ours" / "report.html").read_text()
    clean = step().schedule(monet.read_chip(CHIP), mode="layer-by-layer")
    assert clean.warnings == []
    assert "warnings" not in clean.to_dict()


def test_a_warning_is_given_once_in_each_call(chip: monet.Chip) -> None:
    twice = late_chip()
    twice["cores"][1]["memories"]["dram"]["latency"] = 3
    assert len(told(lambda: monet.read_chip(twice))) == 2  # at different places
    one = step()
    assert told(lambda: one.schedule(monet.read_chip(CHIP), mode="layer-by-layer")) == []
    for _ in range(2):
        assert len(told(lambda: one.schedule(chip, mode="layer-by-layer", mapping=MAPPING))) == 1
    assert len(told(lambda: monet.sweep(one, chip, jobs=2, mode="layer-by-layer", mapping=[MAPPING], lpf_limit=[3, 4, 5],
                                        dram_bandwidth_bits=[16, 32]).rows)) == 2  # fmt: skip
    assert told(lambda: one.schedule(chip, mode="layer-by-layer")) == []


def test_warnings_can_be_errors_and_come_before_errors(chip: monet.Chip) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", monet.MonetWarning)
        with pytest.raises(monet.MonetWarning, match="latency of 3 cycles"):
            monet.read_chip(late_chip())
        wrong = late_chip() | {"colour": 3}
        with pytest.raises(monet.InputError, match="colour"):
            monet.read_chip(wrong)
    with pytest.warns(monet.MonetWarning, match="latency of 3 cycles"), pytest.raises(monet.InputError, match="colour"):
        monet.read_chip(wrong)


def test_threads_have_their_own(chip: monet.Chip) -> None:
    found: dict[int, int] = {}
    one = step()

    def work(number: int) -> None:
        from monet.warning import collected

        with collected() as here:
            for _ in range(3):
                one.schedule(chip, mode="layer-by-layer", mapping=MAPPING if number % 2 else None)
        found[number] = len(here)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: 0, 1: 3, 2: 0, 3: 3}


def test_a_script_prints_each_once_for_a_line(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import monet\nchip = {late_chip()!r}\nfor _ in range(3):\n    monet.read_chip(chip)\nmonet.read_chip(chip)\n")
    said = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stderr
    assert said.count("MonetWarning: core 0['memories']['sram']['latency']: ") == 2
    assert f"{script}:4: MonetWarning" in said
    assert f"{script}:5: MonetWarning" in said



