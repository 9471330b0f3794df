// The result as the viewer uses it. docs/reference/result.md describes the file; here every absent or malformed part becomes an
// empty one, so that the views need no checks of their own.

export const kOwners = ["parameters", "gradients", "optimizer_state", "stored_activations", "temporaries"] as const;
export type Owner = (typeof kOwners)[number];

export const kComponents = ["compute", "onchip_memory", "links", "offchip", "leakage"] as const;
export type Component = (typeof kComponents)[number];

export const kTransferKinds = ["fetch", "stream", "write-back", "spill"] as const;

/// What bounds a piece of the critical path, as numbered there.
export const kLimits = ["compute", "link", "offchip", "capacity", "order"] as const;
export type Limit = (typeof kLimits)[number];

/// What passes the off-chip port for the gradients of a product Y = X W, the first always first in pictures.
export const kMoved = ["dy", "x", "w", "dx", "dw", "other"] as const;
export type Moved = (typeof kMoved)[number];

export interface GradientRow {
  layer: string;
  paired: boolean; // one operator computes both gradients
  bytes: Record<Moved, number>;
}

export type ByOwner = Record<Owner, number>;
export type ByComponent = Record<Component, number>;

export interface Phase {
  phase: string;
  start_cycle: number; // phases follow one another without gap
  latency_cycles: number;
  critical_path_cycles: number; // of the step's latency
  busy_cycles: number;
  energy_pj: number;
  macs: number;
  peak_memory_bytes: number;
  memory: ByOwner;
  energy: ByComponent;
}

export interface Core {
  id: number;
  name: string;
  kind: string;
  busy_cycles: number;
  utilisation: number;
  energy_pj: number;
  tiles: number;
  peak_memory_bytes: number;
  capacity_bytes: number;
}

/// Cores of one kind share a name; links and layers speak of cores by number.
export function core_label(core: Core): string {
  return `${core.id} ${core.name}`;
}

export interface Link {
  id: number;
  name: string;
  busy_cycles: number;
  utilisation: number;
  bits: number;
  energy_pj: number;
}

export interface Layer {
  index: number;
  name: string;
  op_type: string;
  phase: string;
  macs: number;
  critical_path_cycles: number; // of the step's latency
  span_cycles: number; // from its first start to its last end
  energy_pj: number;
  start_cycle: number;
  end_cycle: number;
  cores: number[];
  offchip_bytes: number;
  energy: ByComponent;
  dims: [string, number][];
}

export interface Run {
  core: number;
  layer: number;
  start: number;
  end: number;
}

export interface Transfer {
  kind: number;
  links: number[];
  layer: number;
  start: number;
  end: number;
  bits: number;
  from: number;
  to: number;
  tensor: number;
  also: number[]; // further receivers
}

/// A piece of the critical path. What does not apply is null.
export interface Segment {
  start: number;
  end: number;
  limit: number; // index into kLimits
  layer: number | null;
  core: number | null;
  link: number | null;
  tensor: number | null;
  counted: number | null; // the layer that its cycles count for
}

/// What no schedule can beat, in cycles; empty where the result does not say.
export type Bounds = [string, number][];

/// What the cores' memories hold: the largest tensors, and the rest.
export interface OnChip {
  cycles: number[];
  tensors: { tensor: number; bytes: number[] }[];
  rest: number[];
}

export interface MemorySteps {
  cycles: number[];
  bytes: Record<Owner, number[]>;
}

export interface Step {
  kind: string;
  latency_cycles: number;
  latency_seconds: number | null;
  energy_pj: number;
  peak_memory_bytes: number;
  peak_cycle: number;
  area_mm2: number;
  parameters: number;
  macs: { forward: number; backward_input: number; backward_weight: number; total: number };
  memory: ByOwner;
  energy: ByComponent;
  phases: Phase[];
  cores: Core[];
  links: Link[];
  ports: Link[]; // of the off-chip memory
  bounds: Bounds;
  limits: Record<Limit, number>; // cycles of the critical path
  segments: Segment[];
  layers: Layer[];
  gradients: GradientRow[];
  tensors: string[];
  runs: Run[];
  transfers: Transfer[];
  steps: MemorySteps;
  onchip: OnChip;
}

export interface Result {
  name: string;
  chip: string;
  step: Step;
  optimise: unknown; // see search_data.ts
  inference: Step | null;
  provenance: [string, [string, string][] | string][];
}

export type Json = Record<string, unknown>;

export function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

export function numbers(value: unknown): number[] {
  return list(value).map(number);
}

export function text(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

function by_owner(value: unknown): ByOwner {
  const from = object(value);
  return Object.fromEntries(kOwners.map((owner) => [owner, number(from[owner + "_bytes"])])) as ByOwner;
}

function by_component(value: unknown): ByComponent {
  const from = object(value);
  return Object.fromEntries(kComponents.map((part) => [part, number(from[part + "_pj"])])) as ByComponent;
}

function read_phases(value: unknown): Phase[] {
  let start_cycle = 0;
  return list(value).map((item) => {
    const from = object(item);
    const phase: Phase = {
      phase: text(from["phase"]),
      start_cycle,
      latency_cycles: number(from["latency_cycles"]),
      critical_path_cycles: number(from["critical_path_cycles"]),
      busy_cycles: number(from["busy_cycles"]),
      energy_pj: number(from["energy_pj"]),
      macs: number(from["macs"]),
      peak_memory_bytes: number(from["peak_memory_bytes"]),
      memory: by_owner(from["memory"]),
      energy: by_component(from["energy"]),
    };
    start_cycle += phase.latency_cycles;
    return phase;
  });
}

function read_core(value: unknown, index: number): Core {
  const from = object(value);
  return {
    id: typeof from["id"] === "number" ? from["id"] : index,
    name: text(from["name"]) || `core ${index}`,
    kind: text(from["kind"]),
    busy_cycles: number(from["busy_cycles"]),
    utilisation: number(from["utilisation"]),
    energy_pj: number(from["energy_pj"]),
    tiles: number(from["tiles"]),
    peak_memory_bytes: number(from["peak_memory_bytes"]),
    capacity_bytes: number(from["capacity_bytes"]),
  };
}

function read_link(value: unknown, index: number): Link {
  const from = object(value);
  return {
    id: typeof from["id"] === "number" ? from["id"] : index,
    name: text(from["name"]) || `link ${index}`,
    busy_cycles: number(from["busy_cycles"]),
    utilisation: number(from["utilisation"]),
    bits: number(from["bits"]),
    energy_pj: number(from["energy_pj"]),
  };
}

function read_layer(value: unknown, index: number): Layer {
  const from = object(value);
  return {
    index,
    name: text(from["name"]),
    op_type: text(from["op_type"]),
    phase: text(from["phase"]),
    macs: number(from["macs"]),
    critical_path_cycles: number(from["critical_path_cycles"]),
    span_cycles: number(from["span_cycles"]),
    energy_pj: number(from["energy_pj"]),
    start_cycle: number(from["start_cycle"]),
    end_cycle: number(from["end_cycle"]),
    cores: numbers(from["cores"]),
    offchip_bytes: number(from["offchip_bytes"]),
    energy: by_component(from["energy"]),
    dims: Object.entries(object(from["dims"])).map(([key, size]) => [key, number(size)]),
  };
}

function read_gradients(value: unknown): GradientRow {
  const from = object(value);
  const bytes = Object.fromEntries(kMoved.map((key) => [key, number(from[key + "_bytes"])]));
  return { layer: text(from["layer"]), paired: from["paired"] === true, bytes: bytes as GradientRow["bytes"] };
}

function read_run(value: unknown): Run {
  const row = list(value);
  return { core: number(row[0]), layer: number(row[1]), start: number(row[2]), end: number(row[3]) };
}

function read_transfer(value: unknown): Transfer {
  const row = list(value);
  return {
    kind: number(row[0]),
    links: numbers(row[1]),
    layer: number(row[2]),
    start: number(row[3]),
    end: number(row[4]),
    bits: number(row[5]),
    from: number(row[6]),
    to: number(row[7]),
    tensor: number(row[8]),
    also: numbers(row[9]),
  };
}

function maybe(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function read_segment(value: unknown): Segment {
  const row = list(value);
  return {
    start: number(row[0]),
    end: number(row[1]),
    limit: number(row[2]),
    layer: maybe(row[3]),
    core: maybe(row[4]),
    link: maybe(row[5]),
    tensor: maybe(row[6]),
    counted: maybe(row[7]),
  };
}

function read_bounds(value: unknown, cores: Core[]): Bounds {
  const from = object(value);
  const core = (id: unknown) => cores.find((at) => at.id === id);
  const name = (id: unknown) => (core(id) === undefined ? "" : ` (core ${core_label(core(id)!)})`);
  const rows: Bounds = [
    ["longest chain of tiles", number(from["critical_path_cycles"])],
    [`busiest core${name(from["core"])}`, number(from["busiest_core_cycles"])],
    [`links of one memory${name(from["links_of_core"])}`, number(from["busiest_links_cycles"])],
    ["off-chip port, each byte once", number(from["offchip_port_cycles"])],
  ];
  return rows.filter(([, cycles]) => cycles > 0);
}

function read_onchip(value: unknown): OnChip {
  const from = object(value);
  const cycles = numbers(from["cycles"]);
  const filled = (bytes: unknown) => {
    const values = numbers(bytes);
    return cycles.map((_, i) => values[i] ?? 0);
  };
  const tensors = list(from["tensors"]).map((item) => ({
    tensor: number(object(item)["tensor"]),
    bytes: filled(object(item)["bytes"]),
  }));
  return { cycles, tensors, rest: filled(from["rest_bytes"]) };
}

function read_steps(value: unknown): MemorySteps {
  const from = object(value);
  const cycles = numbers(from["cycles"]);
  const bytes = Object.fromEntries(
    kOwners.map((owner) => {
      const values = numbers(from[owner + "_bytes"]);
      return [owner, cycles.map((_, i) => values[i] ?? 0)];
    }),
  ) as Record<Owner, number[]>;
  return { cycles, bytes };
}

function read_step(value: unknown): Step {
  const from = object(value);
  const macs = object(from["macs"]);
  const timeline = object(from["timeline"]);
  const path = object(from["critical_path"]);
  const cores = list(from["cores"]).map(read_core);
  const links = list(from["links"]).map(read_link);
  return {
    kind: text(from["kind"]),
    latency_cycles: number(from["latency_cycles"]),
    latency_seconds: typeof from["latency_seconds"] === "number" ? from["latency_seconds"] : null,
    energy_pj: number(from["energy_pj"]),
    peak_memory_bytes: number(from["peak_memory_bytes"]),
    peak_cycle: number(object(from["memory"])["peak_cycle"]),
    area_mm2: number(from["area_mm2"]),
    parameters: number(from["parameters"]),
    macs: {
      forward: number(macs["forward"]),
      backward_input: number(macs["backward_input"]),
      backward_weight: number(macs["backward_weight"]),
      total: number(macs["total"]),
    },
    memory: by_owner(from["memory"]),
    energy: by_component(from["energy"]),
    phases: read_phases(from["phases"]),
    cores,
    links,
    ports: list(from["ports"]).map(read_link),
    bounds: read_bounds(from["bounds"], cores),
    limits: Object.fromEntries(kLimits.map((limit) => [limit, number(path[limit + "_cycles"])])) as Record<Limit, number>,
    segments: list(path["segments"]).map(read_segment),
    layers: list(from["layers"]).map(read_layer),
    gradients: list(from["backward"]).map(read_gradients),
    tensors: list(timeline["tensors"]).map(text),
    runs: list(timeline["runs"]).map(read_run),
    transfers: list(timeline["transfers"]).map(read_transfer),
    steps: read_steps(timeline["memory"]),
    onchip: read_onchip(timeline["onchip"]),
  };
}

function chip_name(from: Json): string {
  if (typeof from["chip"] === "string") return from["chip"];
  const name = object(from["chip"])["name"];
  if (typeof name === "string") return name;
  const option = object(object(from["provenance"])["options"])["hardware"];
  return typeof option === "string" ? option : "";
}

export function read_provenance(value: unknown): Result["provenance"] {
  return Object.entries(object(value)).map(([key, item]): [string, [string, string][] | string] =>
    typeof item === "object" && item !== null
      ? [key, Object.entries(item).map(([name, inner]): [string, string] => [name, text(inner)])]
      : [key, text(item)],
  );
}

export function read_result(value: unknown): Result {
  const from = object(value);
  return {
    name: text(from["name"]),
    chip: chip_name(from),
    step: read_step(from),
    optimise: from["optimise"],
    inference: from["inference"] === undefined || from["inference"] === null ? null : read_step(from["inference"]),
    provenance: read_provenance(from["provenance"]),
  };
}

/// The last cycle anything happens: the stated latency, or more where the timeline runs past it.
export function last_cycle(step: Step): number {
  let last = step.latency_cycles;
  for (const run of step.runs) if (run.end > last) last = run.end;
  for (const transfer of step.transfers) if (transfer.end > last) last = transfer.end;
  for (const cycle of step.steps.cycles) if (cycle > last) last = cycle;
  return Math.max(last, 1);
}
