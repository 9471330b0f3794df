#!/usr/bin/python3
"""Figures of the reference scheduler for tests/reference/stream/*_test.cpp.

  make_stream_fixtures.py full RUN_DIR OUT.json        one run complete: costs, tiles, link events, energies, peaks
  make_stream_fixtures.py digest OUT.json RUN_DIR...   counts, digests, latency and energies of runs

RUN_DIR holds what a run of Stream (upstream 303f9dc) was dumped to: result.json, schedule.json, comm_events.json and
cost_lut.json. Needed by authors only, with dumps that are not part of this repository.
"""
import json
import os
import re
import struct
import sys

TERMS = ["total_cn_onchip_energy", "total_cn_offchip_link_energy", "total_cn_offchip_memory_energy",
         "total_eviction_to_offchip_link_energy", "total_eviction_to_offchip_memory_energy",
         "total_sink_layer_output_offchip_link_energy", "total_sink_layer_output_offchip_memory_energy",
         "total_core_to_core_link_energy", "total_core_to_core_memory_energy"]


def load(folder, name):
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def exact(row, key):
    """Newer dumps print times untruncated beside the reference's integers."""
    return row.get(key + "_exact", row[key])


def tensor(name):
    layer, sub, operand = re.fullmatch(r"Tensor\((\d+), (\d+), (\w)\)", name).groups()
    return int(layer), int(sub), operand


def link(name):
    """"0>1" or "dram", as our chips call them."""
    cores = re.findall(r"Core\((\d+)\)", name)
    return ">".join(cores) if len(cores) == 2 else "dram"


def full(folder, out):
    result, schedule, events = (load(folder, f) for f in ("result", "schedule", "comm_events"))
    lut = {(row["id"], row["core"]): row for row in load(folder, "cost_lut")}
    layers = {}
    costs = {}
    for row in sorted(schedule, key=lambda row: (row["id"], row["sub_id"])):
        layers.setdefault(row["id"], []).append([row["core"], exact(row, "start"), exact(row, "end")])
        known = lut[row["id"], row["core"]]
        costs[row["id"], row["core"]] = {
            "id": row["id"], "node": row["name"], "core": row["core"], "dims": known["dims"],
            "runtime_cycles": known["latency_total2"], "onchip_energy_pj": row["onchip_energy"],
            "offchip_energy_pj": row["offchip_energy"], "offchip_bandwidth": {}}
    for event in events:
        if event["type"] != "block":
            continue
        layer, _, operand = tensor(event["tensor"])
        for (owner, _), row in costs.items():
            if owner == layer:
                row["offchip_bandwidth"][{"O": "O", "I": "I1", "W": "I2"}[operand]] = event["activity"]
    rows = [[link(e["link"]), e["type"], exact(e, "start"), exact(e, "end"), *tensor(e["tensor"]), e["bits"],
             e["sender"], e["receiver"], e["activity"], e["energy"]] for e in events]
    peaks = [[re.sub("@.*", "", name), [int(core) for core in re.findall(r"\d+", name.split("@")[1])],
              peak["peak_bits"], peak["cap_bits"]] for name, peak in result["mem_peak"].items()]
    with open(out, "w", encoding="utf-8") as file:
        file.write('{"latency": %s,\n"energy": %s,\n' % (result["scme"]["latency"],
                                                       json.dumps([result["scme"][t] for t in TERMS])))
        file.write('"peaks": %s,\n"costs": [\n' % json.dumps(peaks))
        file.write(",\n".join(json.dumps(row) for row in costs.values()))
        file.write('],\n"tiles": {\n')
        file.write(",\n".join('"%d": %s' % (k, json.dumps(v, separators=(",", ":"))) for k, v in layers.items()))
        file.write('},\n"events": [\n')
        file.write(",\n".join(json.dumps(row, separators=(",", ":")) for row in sorted(rows)))
        file.write("]}\n")


class Digest:
    """FNV-1a, 64 bits, over 64-bit little-endian words; doubles by their bits."""

    def __init__(self):
        self.state = 0xcbf29ce484222325

    def add(self, value):
        for byte in struct.pack("<d" if isinstance(value, float) else "<q", value):
            self.state = (self.state ^ byte) * 0x100000001b3 % 2**64


def digest(folder):
    result, schedule, events = (load(folder, f) for f in ("result", "schedule", "comm_events"))
    tiles = Digest()
    for row in sorted(schedule, key=lambda row: (row["id"], row["sub_id"])):
        for value in (row["id"], row["sub_id"], row["core"], float(exact(row, "start")), float(exact(row, "end"))):
            tiles.add(value)
    links = Digest()
    rows = []
    for e in events:
        layer, sub, operand = tensor(e["tensor"])
        rows.append((float(exact(e, "start")), float(exact(e, "end")), int(e["type"] == "block"), layer, sub,
                     "OIW".index(operand), e["bits"], e["sender"], e["receiver"], int(e["activity"])))
    for row in sorted(rows):
        for value in row:
            links.add(value)
    peaks = Digest()
    for peak in result["mem_peak"].values():
        peaks.add(peak["peak_bits"])
    scme = result["scme"]
    return {"tiles": len(schedule), "events": len(rows), "tile_digest": "%016x" % tiles.state,
            "event_digest": "%016x" % links.state, "peak_digest": "%016x" % peaks.state, "latency": scme["latency"],
            "energy": [scme[t] for t in TERMS]}


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "full":
        full(arguments[1], arguments[2])
    elif len(arguments) > 2 and arguments[0] == "digest":
        runs = {os.path.basename(folder.rstrip("/")): digest(folder) for folder in arguments[2:]}
        with open(arguments[1], "w", encoding="utf-8") as file:
            file.write("{\n" + ",\n".join('"%s": %s' % (k, json.dumps(v)) for k, v in runs.items()) + "\n}\n")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
