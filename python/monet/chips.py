"""Chips and cores."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from monet import _monet, arguments, pictures
from monet.calls import FileOrDict, Inputs
from monet.dicts import DictText, plain
from monet.warning import warned


class Chip:
    """Cores, memories, links and the off-chip memory. Created by `read_chip()`."""

    def __init__(self, handle: _monet.Chip, source: FileOrDict | None) -> None:
        self._handle = arguments.instance("handle", handle, _monet.Chip, "read_chip()")
        self._source = source

    @property
    def name(self) -> str:
        return self._handle.name

    @property
    def area_mm2(self) -> float:
        """Area of the arrays and memories of the compute cores; 0 if the files have no areas."""
        return self._handle.area_mm2

    @property
    def frequency_hz(self) -> float:
        """Clock frequency; 0 if the file has none."""
        return self._handle.frequency_hz

    @property
    def cores(self) -> list[dict[str, Any]]:
        """Dicts with name, kind, lanes and memories; each memory is (name, bits of an instance,
        instances)."""
        return self._handle.cores

    def to_dict(self) -> dict[str, Any]:
        """The system file with its core files included, as `read_chip()` accepts it."""
        if self._source is None:
            raise TypeError("a design of a space has no file: see Space.hardware_files()")
        return _whole(self._source)

    def with_(self, changes: Mapping[str, Any] | None = None, *, dram_bandwidth_bits: int | None = None, **keys: Any) -> Chip:
        """A copy of the chip with some figures changed. `changes`: places in `to_dict()` and their
        values, such as {"cores.0.memories.l2.size": 8 * 2**20}; numbers are indices of lists.
        Further keywords are keys of the system file (frequency_hz=...). `dram_bandwidth_bits`: bits
        per cycle of every port of the off-chip memory, and of links to it. Raises KeyError for a
        place that does not exist."""
        chip = self.to_dict()
        for place, value in {**arguments.mapping("changes", changes), **keys}.items():
            _set(chip, place, value)
        if dram_bandwidth_bits is not None:
            bits = arguments.whole("dram_bandwidth_bits", dram_bandwidth_bits, 1, 2**40)
            _set_dram_bandwidth(chip, bits)
        return read_chip(chip)

    def _add_to(self, inputs: Inputs) -> str:
        """Adds the chip to `inputs`. Returns its name for the command line."""
        if not isinstance(self._source, Mapping):
            if self._source is None:
                raise TypeError(f"{self.name}: a design of a space has no file")
            return os.fspath(self._source)
        system, cores = _texts(self._source)
        inputs.add(system, *cores)
        return system.name

    def __reduce__(self) -> tuple[Any, ...]:
        return read_chip, (self._source,)

    def __repr__(self) -> str:
        compute = sum(core["kind"] != "offchip" for core in self.cores)
        return f"Chip({self.name!r}: {compute} compute cores)"

    def _repr_html_(self) -> str:
        return pictures.chip_html(self)


# Returns the costs of a memory from its core's name, its name and its entry in the file: keys such
# as r_cost, w_cost (pJ per access) and area (mm2) that replace the file's. None keeps the file's.
MemoryCosts = Callable[[str, str, Mapping[str, Any]], Mapping[str, float] | None]
# Returns the costs of a core's operational_array: unit_energy (pJ per operation), unit_area (mm2).
ArrayCosts = Callable[[str, Mapping[str, Any]], Mapping[str, float] | None]


def read_chip(
    chip: FileOrDict, *, memory_costs: MemoryCosts | None = None, array_costs: ArrayCosts | None = None
) -> Chip:
    """Reads a system or core file (docs/reference/hardware.md), or a system as a dict, whose
    `cores` may be dicts or names of core files. `memory_costs` and `array_costs`: functions that
    return the costs of memories and arrays, in place of the files' figures or models. They are
    called once for each, during this call. Raises InputError with every problem, at its line or
    key."""
    if memory_costs is not None or array_costs is not None:
        arguments.function("memory_costs", memory_costs)
        arguments.function("array_costs", array_costs)
        chip = _priced(_whole(chip), memory_costs, array_costs)
    if not isinstance(chip, Mapping):
        path = arguments.path("chip", chip)
        with warned():
            return Chip(_monet.read_chip(path), path)
    inputs = Inputs()
    system, cores = _texts(chip)
    inputs.add(system, *cores)
    return Chip(inputs.reading(lambda: _monet.read_chip_texts(system.name, inputs.texts)), plain(chip))


def _whole(chip: FileOrDict) -> dict[str, Any]:
    """A system as a dict that includes its core files."""
    path = "dict" if isinstance(chip, Mapping) else arguments.path("chip", chip)
    if isinstance(chip, Mapping):
        _texts(chip)  # raises for values that no file could hold
    system: dict[str, Any] = plain(chip) if isinstance(chip, Mapping) else _monet.read_yaml(path)
    for holder, key, _ in _core_places(system):
        if isinstance(holder[key], str):
            holder[key] = _monet.read_yaml(_monet.find_core_file(path, holder[key]))
    return system


def _core_places(system: dict[Any, Any]) -> list[tuple[dict[Any, Any], Any, str]]:
    """The places of a system's cores: the dict, the key in it, and the name in errors of a core
    that is a dict."""
    cores = system.get("cores")
    places = [(cores, number, f"core {number}") for number in cores] if isinstance(cores, dict) else []
    return [*places, (system, "offchip_core", "off-chip core")] if "offchip_core" in system else places


def _priced(chip: dict[str, Any], memory_costs: MemoryCosts | None, array_costs: ArrayCosts | None) -> dict[str, Any]:
    for core in [holder[key] for holder, key, _ in _core_places(chip)] or [chip]:
        if not isinstance(core, dict) or not isinstance(core.get("memories"), dict):
            continue  # the reader reports the problem
        name = str(core.get("name", ""))
        for memory, says in core["memories"].items():
            costs = memory_costs(name, memory, says) if memory_costs is not None else None
            if costs is not None and isinstance(says, dict):
                says.pop("auto_cost_extraction", None)
                says.update(arguments.figures(f"memory_costs({name!r}, {memory!r})", costs))
        array = core.get("operational_array")
        costs = array_costs(name, array) if array_costs is not None and array is not None else None
        if costs is not None and isinstance(array, dict):
            array.pop("auto_cost_extraction", None)
            array.update(arguments.figures(f"array_costs({name!r})", costs))
    return chip


def _texts(chip: Mapping[str, Any]) -> tuple[DictText, list[DictText]]:
    """The text of a system, and the texts of cores that are dicts."""
    cores = []
    system = dict(chip)
    if isinstance(system.get("cores"), Mapping):
        system["cores"] = dict(system["cores"])
    for holder, key, name in _core_places(system):
        if isinstance(holder[key], Mapping):
            text = DictText(holder[key], name)
            cores.append(text)
            holder[key] = text.name
    return DictText(system, "dict"), cores


def _part(value: Any, key: str) -> Any:
    """The key of a dict, or the index of a list, that a part of a place names; None if it does not
    exist."""
    if isinstance(value, list):
        return int(key) if key.isdigit() and int(key) < len(value) else None
    if not isinstance(value, dict):
        return None
    return next((one for one in value if str(one) == key), None)


def _set(chip: dict[str, Any], place: str, value: Any) -> None:
    parts = place.split(".")
    at: Any = chip
    for depth, part in enumerate(parts[:-1]):
        key = _part(at, part)
        if key is None:
            raise KeyError(f"{place}: the chip has no {'.'.join(parts[: depth + 1])}")
        at = at[key]
    key = _part(at, parts[-1])
    if key is None and not isinstance(at, dict):
        raise KeyError(f"{place}: the chip has no such place")
    at[parts[-1] if key is None else key] = value


def _set_dram_bandwidth(chip: dict[str, Any], bits: int) -> None:
    core, offchip = chip.get("offchip_core"), str(len(chip.get("cores") or ()))  # the last core
    if core is None:
        offchip = str(chip.get("offchip_core_id"))
        number = _part(chip.get("cores"), offchip)
        core = None if number is None else chip["cores"][number]
    if core is None:
        raise KeyError("dram_bandwidth_bits: the chip has no off-chip core")
    for memory in core["memories"].values():
        for port in memory["ports"]:
            port["bandwidth_max"] = bits
            port["bandwidth_min"] = min(port.get("bandwidth_min", bits), bits)
    links = chip.get("core_connectivity") or []
    for i, link in enumerate(links):
        if offchip in _cores_of_link(link):
            links[i] = {**(link if isinstance(link, dict) else {"cores": link}), "bandwidth": bits}


def _cores_of_link(link: Any) -> list[str]:
    """The cores of a link, which is {"cores": [0, 1], ...}, [0, 1] or "0, 1"."""
    cores = link["cores"] if isinstance(link, dict) else link
    return re.findall("[0-9]+", cores) if isinstance(cores, str) else [str(core) for core in cores]
