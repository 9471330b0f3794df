// The result as the viewer uses it. docs/reference/result.md describes the file; here every absent or malformed part becomes an
// empty one, so that the views need no checks of their own.
import {
  kOwners,
  read_core_figures,
  read_layer_figures,
  read_link_figures,
  read_phase_figures,
  read_step_figures,
  type CoreFigures,
  type LayerFigures,
  type LinkFigures,
  type Owner,
  type PhaseFigures,
  type StepFigures,
} from "./figures";
import { list, maybe, number, numbers, object, text, type Json } from "./json";

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

export interface Phase extends PhaseFigures {
  start_cycle: number; // phases follow one another without gap
}

/// Causes of the cycles of a layer's runs.
export const kCauses = ["work", "idle_lanes", "instructions", "stall", "loading", "streaming"] as const;
export type Cause = (typeof kCauses)[number];

export interface Layer extends LayerFigures {
  index: number;
  dims: [string, number][];
  limits: Record<Limit, number>; // its cycles of the critical path
  causes: Record<Cause, number>; // its busy cycles
}

/// Cores of one kind share a name; links and layers speak of cores by number.
export function core_label(core: CoreFigures): string {
  return `${core.id} ${core.name}`;
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

export interface Step extends StepFigures {
  peak_cycle: number;
  phases: Phase[];
  cores: CoreFigures[];
  links: LinkFigures[];
  ports: LinkFigures[]; // of the off-chip memory
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

function read_phases(value: unknown): Phase[] {
  let start_cycle = 0;
  return list(value).map((item) => {
    const phase: Phase = { ...read_phase_figures(item), start_cycle };
    start_cycle += phase.latency_cycles;
    return phase;
  });
}

/// Figures with a number and a name, which are those of their place if they are absent.
function numbered<Figures extends { id: number; name: string }>(read: (value: unknown) => Figures, kind: string) {
  return (value: unknown, index: number): Figures => {
    const id = object(value)["id"];
    const figures = read(value);
    return { ...figures, id: typeof id === "number" ? id : index, name: figures.name || `${kind} ${index}` };
  };
}

const read_core = numbered(read_core_figures, "core");
const read_link = numbered(read_link_figures, "link");

function read_layer(value: unknown, index: number): Layer {
  const dims = Object.entries(object(object(value)["dims"])).map(([key, size]): [string, number] => [key, number(size)]);
  const limits = read_cycles(object(value)["critical_path"], kLimits);
  const causes = read_cycles(object(value)["busy"], kCauses);
  return { ...read_layer_figures(value), index, dims, limits, causes };
}

/// Cycles by name; 0 where the result has none.
function read_cycles<Name extends string>(value: unknown, names: readonly Name[]): Record<Name, number> {
  const from = object(value);
  return Object.fromEntries(names.map((name) => [name, number(from[name + "_cycles"])])) as Record<Name, number>;
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

function read_bounds(value: unknown, cores: CoreFigures[]): Bounds {
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
  const timeline = object(from["timeline"]);
  const path = object(from["critical_path"]);
  const cores = list(from["cores"]).map(read_core);
  const links = list(from["links"]).map(read_link);
  return {
    ...read_step_figures(from),
    peak_cycle: number(object(from["memory"])["peak_cycle"]),
    phases: read_phases(from["phases"]),
    cores,
    links,
    ports: list(from["ports"]).map(read_link),
    bounds: read_bounds(from["bounds"], cores),
    limits: read_cycles(path, kLimits),
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
