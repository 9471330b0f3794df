// Made-up results of known shape. Not a model of anything: only consistent (bars do not overlap on a core, sums add up).

const kWeightBytes = 11689512 * 4;
const kTransferBits = 65536;
const kOwners = ["parameters", "gradients", "optimizer_state", "stored_activations", "temporaries"];

/// A small generator of repeatable numbers in [0, 1) (a linear congruence modulo 2^32).
function random(seed) {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

function split_energy(total, shares) {
  const [compute, onchip, links] = shares.map((share) => total * share);
  return {
    compute_pj: compute,
    onchip_memory_pj: onchip,
    links_pj: links,
    offchip_pj: total - compute - onchip - links,
  };
}

function add(a, b) {
  return Object.fromEntries(Object.keys(a).map((key) => [key, a[key] + b[key]]));
}

function by_owner(values) {
  return Object.fromEntries(kOwners.map((owner, i) => [`${owner}_bytes`, values[i]]));
}

const kTypes = ["Conv", "BatchNormalization", "Relu", "Conv", "Add", "MaxPool", "MatMul", "LayerNormalization"];
const kPhases = {
  training: [
    ["forward", 0.33],
    ["loss", 0.01],
    ["backward", 0.56],
    ["update", 0.1],
  ],
  inference: [["forward", 1]],
};

/// One step: `layers` layers in the phases' proportions, each run as a wave of tiles over up to `cores` cores.
export function make_step(shape) {
  const step = {
    shape,
    next: random(shape.seed),
    now: 0,
    held: [kWeightBytes, 0, shape.kind === "training" ? 2 * kWeightBytes : 0, 0, 0], // bytes by owner
    layers: [],
    runs: [],
    transfers: [],
    tensors: [],
    phases: [],
    memory: { cycles: [], rows: [] },
  };
  sample(step, 0);
  for (const [phase, share] of kPhases[shape.kind]) {
    add_phase(step, phase, Math.max(1, Math.round(shape.layers * share)));
  }
  step.held[4] = 0;
  sample(step, step.now);
  return step_json(step);
}

function sample(step, cycle) {
  step.memory.cycles.push(cycle);
  step.memory.rows.push([...step.held]);
}

function add_phase(step, phase, count) {
  const from = step.now;
  const first = step.layers.length;
  for (let i = 0; i < count; ++i) add_layer(step, phase, i, count);
  const mine = step.layers.slice(first);
  const peak = highest(step.memory.rows.filter((_, i) => step.memory.cycles[i] >= from));
  step.phases.push({
    phase,
    latency_cycles: step.now - from,
    critical_path_cycles: step.now - from,
    busy_cycles: step.now - from,
    energy_pj: sum(mine, "energy_pj"),
    macs: sum(mine, "macs"),
    peak_memory_bytes: total(peak),
    memory: by_owner(peak),
    energy: mine.map((layer) => layer.energy).reduce(add),
  });
}

function add_layer(step, phase, i, count) {
  const { next, shape } = step;
  const fixed = { loss: "SoftmaxCrossEntropyLoss", update: "Adam" };
  const op_type = fixed[phase] ?? kTypes[i % kTypes.length];
  const is_heavy = op_type === "Conv" || op_type === "MatMul";
  const length = Math.round((is_heavy ? 9000 : 900) * (0.4 + next()) * (phase === "backward" ? 1.3 : 1));
  const used = is_heavy ? shape.cores : Math.max(1, Math.ceil(shape.cores * next()));
  const start = step.now;
  for (let core = 0; core < used; ++core) add_work(step, phase, core, start, length);
  change_memory(step, phase, i, count, is_heavy);
  sample(step, start + 1);
  const macs = is_heavy ? length * 200 * used : 0;
  const energy_pj = (macs || length * 20) * (0.9 + next());
  step.layers.push({
    name: shape.name_of(step.layers.length, phase),
    op_type,
    phase,
    macs,
    critical_path_cycles: step.now - start,
    span_cycles: step.now - start,
    energy_pj,
    start_cycle: start,
    end_cycle: step.now,
    cores: Array.from({ length: used }, (_, core) => core),
    offchip_bytes: is_heavy ? Math.round(length * 4) : 0,
    energy: split_energy(energy_pj, is_heavy ? [0.38, 0.3, 0.07] : [0.08, 0.27, 0.1]),
    dims: is_heavy ? { B: 4, K: 64, C: 64, OY: 28, OX: 28, FY: 3, FX: 3 } : { B: 4, C: 64, OY: 28, OX: 28 },
  });
}

/// The layer's tiles on one core, and a transfer for them.
function add_work(step, phase, core, start, length) {
  const { next, shape } = step;
  const layer = step.layers.length;
  let at = start + Math.round(next() * length * 0.15);
  for (let tile = 0; tile < shape.tiles; ++tile) {
    const stop = at + Math.max(1, Math.round((length / shape.tiles) * (0.7 + 0.3 * next())));
    step.runs.push([core, layer, at, stop]);
    at = stop + Math.round((next() * length) / shape.tiles / 6);
    step.now = Math.max(step.now, stop);
  }
  if (shape.links === 0) return;
  const link = Math.floor(next() * shape.links);
  const kind = Math.floor(next() * 3.15); // few spills
  const end = start + Math.round(length * 0.3 * next()) + 1;
  step.tensors.push(`${shape.name_of(layer, phase)}.tensor_${core}`);
  step.transfers.push([kind, [link], layer, start, end, kTransferBits, shape.cores, core, step.tensors.length - 1]);
}

/// Activations are kept for the backward pass, which frees them and makes gradients, which the update frees.
function change_memory(step, phase, i, count, is_heavy) {
  const { held } = step;
  const made = Math.round(3e5 * step.next() * (is_heavy ? 2 : 1));
  if (phase === "forward" && step.shape.kind === "training") held[3] += made;
  if (phase === "backward") {
    held[3] = Math.max(0, Math.round(held[3] * (1 - 1.6 / count)));
    held[1] += is_heavy ? Math.round((2 * kWeightBytes) / count) : 0;
  }
  if (phase === "update") held[1] = Math.round(held[1] * (1 - 1 / (count - i)));
  held[4] = made * 2;
}

function step_json(step) {
  const { phases, memory, now } = step;
  const peak = highest(memory.rows);
  const macs_of = (phase) => phases.find((entry) => entry.phase === phase)?.macs ?? 0;
  const energy = phases.map((phase) => phase.energy).reduce(add);
  const by_time = kOwners.map((owner, i) => [`${owner}_bytes`, memory.rows.map((row) => row[i])]);
  return {
    kind: step.shape.kind,
    latency_cycles: now,
    latency_seconds: now / 1e9,
    energy_pj: sum(phases, "energy_pj"),
    peak_memory_bytes: total(peak),
    area_mm2: 12.4,
    parameters: kWeightBytes / 4,
    macs: {
      forward: macs_of("forward"),
      backward_input: Math.floor(macs_of("backward") / 2),
      backward_weight: Math.ceil(macs_of("backward") / 2),
      total: sum(phases, "macs"),
    },
    memory: { ...by_owner(peak), peak_cycle: memory.cycles[memory.rows.indexOf(peak)] },
    energy,
    phases,
    cores: cores_json(step, energy, total(peak)),
    links: links_json(step, energy),
    layers: step.layers,
    ...(step.shape.kind === "training" ? { backward: backward_rows(step) } : {}),
    timeline: {
      tensors: step.tensors,
      runs: step.runs,
      transfers: step.transfers,
      memory: { cycles: memory.cycles, ...Object.fromEntries(by_time) },
    },
  };
}

/// Every backward layer as if it were a product, some with both gradients in one.
function backward_rows(step) {
  return step.layers
    .filter((layer) => layer.phase === "backward")
    .map((layer, i) => ({
      layer: layer.name,
      paired: i % 3 === 0,
      x_bytes: 1000 * i,
      w_bytes: 64,
      dy_bytes: 5000 + i,
      dx_bytes: 0,
      dw_bytes: 128,
      other_bytes: i % 2,
    }));
}

function cores_json(step, energy, peak) {
  const count = step.shape.cores;
  const common = { busy_cycles: 0, utilisation: 0, tiles: 0 };
  const cores = Array.from({ length: count }, (_, id) => {
    const energy_pj = (energy.compute_pj + energy.onchip_memory_pj) / count;
    const memory = { peak_memory_bytes: 2 ** 20, capacity_bytes: 2 ** 21 };
    return { id, name: "pe", kind: "array", ...common, energy_pj, ...memory };
  });
  for (const [core, , start, end] of step.runs) {
    cores[core].busy_cycles += end - start;
    cores[core].tiles += 1;
  }
  for (const core of cores) core.utilisation = core.busy_cycles / step.now;
  const memory = { peak_memory_bytes: peak, capacity_bytes: 2 ** 33 };
  return [...cores, { id: count, name: "dram", kind: "offchip", ...common, energy_pj: energy.offchip_pj, ...memory }];
}

function links_json(step, energy) {
  const count = step.shape.links;
  const links = Array.from({ length: count }, (_, id) => {
    const name = `${id}-${(id + 1) % (step.shape.cores + 1)}`;
    return { id, name, busy_cycles: 0, utilisation: 0, bits: 0, energy_pj: energy.links_pj / count };
  });
  for (const [, used, , start, end, bits] of step.transfers) {
    for (const link of used) {
      links[link].busy_cycles += end - start;
      links[link].bits += bits;
    }
  }
  for (const link of links) link.utilisation = Math.min(1, link.busy_cycles / step.now);
  return links;
}

function highest(rows) {
  return rows.reduce((most, row) => (total(row) > total(most) ? row : most));
}

function total(row) {
  return row.reduce((all, value) => all + value, 0);
}

function sum(list, key) {
  return list.reduce((all, item) => all + item[key], 0);
}

const kProvenance = {
  version: "0.1.0",
  git_hash: "0123456789abcdef",
  seed: 0,
  inputs: { "net.onnx": "9f2c6b1e", "chip.yaml": "a7d01c44" },
  options: { mode: "layer-by-layer", model: "monet" },
};

/// The size of GPT-2: 1500 layers; about 2500 runs and 8000 transfers.
export function typical() {
  const name_of = (index, phase) =>
    `/${phase === "forward" ? "" : phase + "/"}block.${Math.floor(index / 8) % 24}/layer_${index}`;
  const shape = { cores: 8, links: 12, tiles: 1, seed: 7, name_of };
  return {
    schema_version: 1,
    name: "resnet18 on an edge accelerator",
    ...make_step({ ...shape, kind: "training", layers: 1500 }),
    inference: make_step({ ...shape, kind: "inference", layers: 500, seed: 8 }),
    provenance: kProvenance,
  };
}

/// 100 000 bars on 64 cores.
export function large() {
  const name_of = (index) => `layer_${index}`;
  return {
    schema_version: 1,
    name: "large",
    ...make_step({ kind: "training", layers: 900, cores: 64, links: 100, tiles: 4, seed: 3, name_of }),
    provenance: kProvenance,
  };
}

export const kHostileNames = [
  '<img src=x onerror="window.__hacked=1;alert(1)">',
  "</script><script>window.__hacked=2;alert(2)</script>",
  "<!--<script>",
  "<!--MONET_SCRIPT-->",
  "$& $' $`",
  "__proto__",
  "constructor",
  "javascript:alert(3)",
  "\u202egnirts desrever",
  "\u0000\u0007 control",
  "x".repeat(20000),
  "",
  "\ud83d\udcc8 \u00fcml\u00e4ut",
  "'\"`;--",
  "{{7*7}}",
  "red; background: url(http://example.invalid/x)",
];

/// Every string that a user's file can name is hostile.
export function hostile() {
  const evil = (i) => kHostileNames[i % kHostileNames.length];
  const result = {
    schema_version: 1,
    name: kHostileNames[1],
    ...make_step({ kind: "training", layers: 40, cores: 3, links: 3, tiles: 1, seed: 5, name_of: evil }),
  };
  result.layers.forEach((layer, i) => {
    layer.op_type = evil(i + 1);
    layer.dims = { [evil(i)]: 3 };
  });
  result.layers[3].phase = evil(15);
  result.layers[4].phase = evil(0);
  result.phases[1].phase = evil(15);
  result.cores.forEach((core, i) => Object.assign(core, { name: evil(i), kind: evil(i + 1) }));
  result.links.forEach((link, i) => (link.name = evil(i + 1)));
  result.provenance = {
    version: evil(1),
    inputs: JSON.parse(`{"__proto__": "x", ${JSON.stringify(evil(0))}: "y"}`),
    options: { a: evil(1) },
  };
  result.inference = make_step({ kind: "inference", layers: 10, cores: 3, links: 3, tiles: 1, seed: 6, name_of: evil });
  return result;
}

/// The least a result may be: one core, no links, no inference, no seconds, nothing on the timeline.
export function smallest() {
  const result = {
    schema_version: 1,
    name: "smallest",
    ...make_step({ kind: "inference", layers: 1, cores: 1, links: 0, tiles: 1, seed: 1, name_of: () => "only" }),
  };
  delete result.latency_seconds;
  result.timeline = { tensors: [], runs: [], transfers: [], memory: { cycles: [] } };
  result.cores.length = 1;
  return result;
}

/// One core and no links, with a timeline.
export function single_core() {
  return {
    schema_version: 1,
    name: "one core",
    ...make_step({ kind: "training", layers: 12, cores: 1, links: 0, tiles: 2, seed: 2, name_of: (i) => `layer_${i}` }),
    provenance: kProvenance,
  };
}

function memory(name, unit, scale) {
  const at = [0, 1000, 2500, 4000];
  const bytes = kOwners.map((owner, i) => [`${owner}_bytes`, at.map((_, k) => Math.round(scale * 2 ** 20 * (i + k)))]);
  return { name, unit, at, ...Object.fromEntries(bytes) };
}

/// A step that searches have made better, one of them with hostile names.
export function optimised() {
  const figures = (name, scale) => ({
    name,
    latency_cycles: 1e6 * scale,
    energy_pj: 2e9 * scale,
    offchip_bytes: 3e6 * scale,
    peak_memory_bytes: 4e7 * scale,
    stored_activations_bytes: 5e6 * scale,
  });
  const front = [1, 0.8, 0.7].map((part, i) => ({ latency_cycles: 1e6 * part, energy_pj: 1e9 / part, peak_memory_bytes: 1e7 * (i + 1), chosen: i === 1 }));
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="300"><script>window.__hacked=4</script><rect width="900" height="300" fill="#cfe6f5"/></svg>';
  const name_of = (index, phase) => `${phase}/layer_${index}`;
  const step = make_step({ kind: "training", layers: 40, tiles: 4, cores: 4, links: 3, seed: 9, name_of });
  const result = { schema_version: 1, name: "optimised", ...step, provenance: kProvenance };
  result.optimise = {
    searches: [
      {
        schema_version: 1,
        kind: "fusion",
        objective: "latency",
        best: 8e5,
        bound: 7e5,
        gap: 1 / 7,
        seconds: 1.5,
        interrupted: false,
        front,
        trace: [1, 10, 100].map((n) => ({ evaluations: n, best: 1e6 / n, bound: n > 1 ? 9e3 : null, hypervolume: n / 100 })),
        compared: [figures("none", 1), figures("automatic", 0.9), figures("search", 0.8)],
      },
      { kind: kHostileNames[0], objective: kHostileNames[1], best: null, bound: null, gap: null, interrupted: true, start: 9e5, worse_than_start: true, memory: [memory(kHostileNames[2], "operator", 1)] },
    ],
    worse: [{ objective: "energy", before: 2e9, after: 2.2e9 }],
    compared: [figures("before", 1), figures("after", 0.8)],
    memory: [memory("before", "cycle", 2), memory("after", "cycle", 1)],
    picture: svg,
  };
  return result;
}
