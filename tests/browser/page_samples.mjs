// Made-up results of a step on a cluster, of a search for a strategy, of a study and of a comparison. Only consistent: sums add up.
import { kHostileNames } from "./samples.mjs";

const kProvenance = { version: "0.1.0", git_hash: "0123456789abcdef", seed: 0, inputs: { "e.yaml": "9f2c6b1e" }, options: {} };
const kPass = 4000; // ns
const kGradients = 3000;
const kUpdate = 2000;

/// All forward passes of a stage, then all backward ones; a stage begins one pass after the stage before.
function timeline(stages, micro_batches, listed_until) {
  const result = { makespan_ns: 0, listed_until_ns: 0, stages: [], passes: [], sends: [] };
  for (let stage = 0; stage < stages; ++stage) {
    let at = stage * kPass;
    for (const kind of [0, 1])
      for (let i = 0; i < micro_batches; ++i, at += kPass) {
        if (at >= listed_until) continue;
        result.passes.push([stage, kind, i, 0, at, at + kPass]);
        if (kind === 0 && stage + 1 < stages) result.sends.push([stage, stage + 1, 0, i, 0, at + kPass - 1000, at + kPass]);
      }
    result.stages.push({ begin_ns: stage * kPass, end_ns: at, finish_ns: at + kGradients + kUpdate });
    result.makespan_ns = at + kGradients + kUpdate;
  }
  result.listed_until_ns = Math.min(listed_until, result.makespan_ns);
  return result;
}

function stage_of(time, micro_batches) {
  const busy = 2 * micro_batches * kPass;
  const none = { recompute_ns: 0, host_ns: 0, collectives_ns: 0, offload_ns: 0, sends_ns: 0 };
  const share = { compute_ns: busy, ...none, gradients_ns: kGradients, update_ns: kUpdate, bubble_ns: time - busy - kGradients - kUpdate };
  const memory = { parameters_bytes: 100, gradients_bytes: 50, optimizer_state_bytes: 200, stored_activations_bytes: 1000, temporaries_bytes: 30, workspace_bytes: 20, total_bytes: 1400, host_bytes: 0 };
  return { share, memory };
}

export function cluster(stages = 4, micro_batches = 30, { name = "by hand", listed_until = Infinity, limit_bytes = 2000 } = {}) {
  const times = timeline(stages, micro_batches, listed_until);
  const time_ns = times.makespan_ns;
  const block = { name, count: 4, forward_ns: 2000, backward_input_ns: 1500, kernels: 12, parameters: 50000, stored_activations_bytes: 512 };
  return {
    schema_version: 1,
    kind: "cluster",
    name,
    cluster: { name, device: name, devices: stages },
    strategy: { text: `pipeline ${stages}` },
    time_ns,
    samples_per_second: 1234.5678,
    tokens_per_second: 176130.2,
    mfu: 0.25,
    mfu_with_masked: 0.27,
    hfu: 0.3,
    energy_pj: null,
    memory: { largest_bytes: 1400, limit_bytes, fits: limit_bytes >= 1400, host_bytes: 0 },
    stages: Array.from({ length: stages }, () => stage_of(time_ns, micro_batches)),
    blocks: [block],
    timeline: times,
    provenance: kProvenance,
  };
}

export function cluster_cut() {
  return cluster(200, 250, { listed_until: 100 * kPass, limit_bytes: 1000 });
}

export function cluster_hostile() {
  return cluster(2, 3, { name: kHostileNames[0] });
}

export function plan(name = "plan") {
  const one = (time_ns, memory_bytes) => ({ strategy: { text: name }, time_ns, memory_bytes, energy_pj: null });
  return {
    schema_version: 1,
    kind: "parallelism",
    name,
    gap: 0,
    devices: 8,
    cluster: name,
    strategies: { all: 12345, modelled: 10, modelled_too_large: 1, beaten_by_bound: 2, too_large_by_bound: 3, impossible: 4, left: 0 },
    memory_limit_bytes: 2 ** 36,
    best_strategy: { ...one(2e9, 2 ** 35), tokens_per_second: 7000 },
    front: [one(2e9, 2 ** 35), one(3e9, 2 ** 34)],
    runners_up: [one(2.5e9, 2 ** 35)],
    provenance: kProvenance,
  };
}

export function plan_hostile() {
  return plan(kHostileNames[1]);
}

export function study(name = "study") {
  const assumption = { ambiguity: "a", says: name, value: 20.5 };
  const figure = (unit, paper, ours) => ({ id: "x", text: name, unit, paper, ours, difference: null, lowest: -2.2, highest: ours, assumptions: [assumption] });
  const technique = { latency_cycles: 10, reduction_percent: 12.25, dram_bytes: 15, tensor_bytes: { dy: 5, w: 4, x: 3, dx: 2, dw: 1 } };
  return {
    schema_version: 1,
    kind: "backward-study",
    name,
    figures: [figure("percent", 23.8, 15.54), figure("factor", null, 1.7)],
    networks: [{ machine: "small", name, techniques: { sequential: technique, interleave: technique }, partition: { reduction_percent: 13 } }],
    ambiguities: [{ letter: "a", what: name, ours: name, others: [name, "another"] }],
    infeasible: [{ machine: "large", why: name }],
    statements: [true, false, null].map((holds) => ({ text: name, holds })),
    provenance: kProvenance,
  };
}

export function study_hostile() {
  return study(kHostileNames[0]);
}

export function results_compared(name = "layer") {
  const limits = ["compute", "link", "offchip", "capacity", "order"];
  const layers = Array.from({ length: 250 }, (_, i) => ({
    name: `${name} ${i}`,
    phase: i % 2 === 0 ? "forward" : "update",
    cause: limits[i % 5],
    critical_path_cycles: i === 7 ? [null, 40] : [100, 100 + i],
    energy_pj: [1, 2],
    offchip_bytes: [0, 64],
  }));
  const sum = (run) => layers.reduce((total, layer) => total + (layer.critical_path_cycles[run] ?? 0), 0);
  const latency = [sum(0), sum(1)];
  const lane = (core, end) => ({ core, bars: [[0, end / 2, "forward"], [end / 2, end, "update"]] });
  return {
    schema_version: 1,
    kind: "comparison",
    name: "a and b",
    runs: [{ label: "out/a", name, kind: "training" }, { label: "out/b", name, kind: "training" }],
    totals: [{ name: "latency", unit: "cycles", values: latency }, { name: "energy", unit: "pJ", values: [1e9, null] }, { name: "memory", unit: "bytes", values: [1024, 2048] }],
    causes: limits.map((limit, i) => ({ name: limit, unit: "cycles", values: i === 0 ? latency : [0, 0] })),
    phases: [{ phase: "forward", critical_path_cycles: latency, energy_pj: [1, 2], peak_memory_bytes: [1, 2] }],
    layers,
    settings: [{ file: "chip.yaml", key: name, values: ["1", null] }],
    timelines: latency.map((end) => [lane(0, end), lane(1, end / 2)]),
    provenance: kProvenance,
  };
}

export function results_compared_hostile() {
  return results_compared(kHostileNames[1]);
}
