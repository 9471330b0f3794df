// Written by scripts/generate.sh from docs/result.schema.json: do not edit by hand.
import { maybe, number, numbers, object, text } from "./json";

export const kOwners = ["parameters", "gradients", "optimizer_state", "stored_activations", "temporaries"] as const;
export type Owner = (typeof kOwners)[number];
export type ByOwner = Record<Owner, number>;

export function read_by_owner(value: unknown): ByOwner {
  const from = object(value);
  return Object.fromEntries(kOwners.map((key) => [key, number(from[key + "_bytes"])])) as ByOwner;
}

export const kComponents = ["compute", "onchip_memory", "links", "offchip", "leakage"] as const;
export type Component = (typeof kComponents)[number];
export type ByComponent = Record<Component, number>;

export function read_by_component(value: unknown): ByComponent {
  const from = object(value);
  return Object.fromEntries(kComponents.map((key) => [key, number(from[key + "_pj"])])) as ByComponent;
}

export interface Macs {
  forward: number; // MACs of the forward phase
  backward_input: number; // MACs of the gradients of inputs
  backward_weight: number; // MACs of the gradients of weights
  total: number; // MACs of the step
  recomputed: number | null; // MACs beyond the total: elements that several slices of a fused stack compute
}

export function read_macs(value: unknown): Macs {
  const from = object(value);
  return {
    forward: number(from["forward"]),
    backward_input: number(from["backward_input"]),
    backward_weight: number(from["backward_weight"]),
    total: number(from["total"]),
    recomputed: maybe(from["recomputed"]),
  };
}

export interface StepFigures {
  kind: string; // `training` or `inference`
  latency_cycles: number; // Length of the whole step
  latency_seconds: number | null; // Latency in seconds, if the chip has a frequency
  energy_pj: number; // Energy of all components, with leakage
  energy: ByComponent; // Energy in pJ by component; adds up to `energy_pj`
  peak_memory_bytes: number; // Maximum of live bytes, with every tensor counted whole
  peak_memory_by_slices_bytes: number | null; // Maximum of live bytes, with fused tensors counted slice by slice, if tensors are fused
  memory: ByOwner; // Bytes by owner at the peak, and `peak_cycle`
  macs: Macs; // Multiply-accumulates of the forward phase and of each gradient
  parameters: number; // Number of parameters
  area_mm2: number; // Area of the chip; 0 if its files contain none
  frequency_hz: number | null; // Clock frequency, if the chip has one
}

export function read_step_figures(value: unknown): StepFigures {
  const from = object(value);
  return {
    kind: text(from["kind"]),
    latency_cycles: number(from["latency_cycles"]),
    latency_seconds: maybe(from["latency_seconds"]),
    energy_pj: number(from["energy_pj"]),
    energy: read_by_component(from["energy"]),
    peak_memory_bytes: number(from["peak_memory_bytes"]),
    peak_memory_by_slices_bytes: maybe(from["peak_memory_by_slices_bytes"]),
    memory: read_by_owner(from["memory"]),
    macs: read_macs(from["macs"]),
    parameters: number(from["parameters"]),
    area_mm2: number(from["area_mm2"]),
    frequency_hz: maybe(from["frequency_hz"]),
  };
}

export interface PhaseFigures {
  phase: string; // Name of the phase
  latency_cycles: number; // From the end of the previous phase to its end; 0 if it ends earlier. They add up to the latency
  critical_path_cycles: number; // Cycles of the latency that count for layers of the phase; they add up to the latency
  busy_cycles: number; // Cycles in which at least one tile of the phase runs; they do not add up
  energy_pj: number; // Energy of the phase; adds up over the phases
  energy: ByComponent; // Energy by component
  macs: number; // MACs of the phase
  peak_memory_bytes: number; // Peak inside the phase, `[start, end)`
  memory: ByOwner; // Bytes by owner at that peak; `peak_cycle` is no earlier than the start
}

export function read_phase_figures(value: unknown): PhaseFigures {
  const from = object(value);
  return {
    phase: text(from["phase"]),
    latency_cycles: number(from["latency_cycles"]),
    critical_path_cycles: number(from["critical_path_cycles"]),
    busy_cycles: number(from["busy_cycles"]),
    energy_pj: number(from["energy_pj"]),
    energy: read_by_component(from["energy"]),
    macs: number(from["macs"]),
    peak_memory_bytes: number(from["peak_memory_bytes"]),
    memory: read_by_owner(from["memory"]),
  };
}

export interface CoreFigures {
  id: number; // Number of the core; the off-chip core is the last
  name: string; // Name of the core
  kind: string; // Kind of the core
  busy_cycles: number; // Cycles in which it runs tiles
  utilisation: number; // `busy_cycles` as a part of the latency
  mac_utilisation: number; // MACs done, relative to those that its multipliers could do during the step
  energy_pj: number; // Compute and on-chip memory energy
  tiles: number; // Number of runs
  peak_memory_bytes: number; // Peak of its outermost memories together; the same figure for cores that share a memory
  capacity_bytes: number; // Capacity of these memories
}

export function read_core_figures(value: unknown): CoreFigures {
  const from = object(value);
  return {
    id: number(from["id"]),
    name: text(from["name"]),
    kind: text(from["kind"]),
    busy_cycles: number(from["busy_cycles"]),
    utilisation: number(from["utilisation"]),
    mac_utilisation: number(from["mac_utilisation"]),
    energy_pj: number(from["energy_pj"]),
    tiles: number(from["tiles"]),
    peak_memory_bytes: number(from["peak_memory_bytes"]),
    capacity_bytes: number(from["capacity_bytes"]),
  };
}

export interface LinkFigures {
  id: number; // Number of the link
  name: string; // Name of the link
  bandwidth_bits_per_cycle: number; // Bits that it carries in a cycle
  busy_cycles: number; // Cycles in which it carries anything
  utilisation: number; // `busy_cycles` as a part of the latency
  bandwidth_utilisation: number; // Bits carried, relative to those that it could carry
  bits: number; // Bits carried
  energy_pj: number; // Energy of its transfers; that of a port belongs to its core
}

export function read_link_figures(value: unknown): LinkFigures {
  const from = object(value);
  return {
    id: number(from["id"]),
    name: text(from["name"]),
    bandwidth_bits_per_cycle: number(from["bandwidth_bits_per_cycle"]),
    busy_cycles: number(from["busy_cycles"]),
    utilisation: number(from["utilisation"]),
    bandwidth_utilisation: number(from["bandwidth_utilisation"]),
    bits: number(from["bits"]),
    energy_pj: number(from["energy_pj"]),
  };
}

export interface LayerFigures {
  name: string; // Name of the operator
  op_type: string; // Type of the operator
  phase: string; // Phase of the operator; recomputation is a phase here
  macs: number; // MACs of the operator, whatever its variant executes
  critical_path_cycles: number; // Cycles of the latency that count for the layer; they add up to the latency
  span_cycles: number; // From the start of its first run to the end of its last one; spans overlap
  busy_cycles: number; // Cycles of its runs, summed over the cores
  utilisation: number; // Part of `busy_cycles` that all lanes of the cores would need for the operations
  energy_pj: number; // Energy of its runs and of the transfers for it
  start_cycle: number; // Start of its first run
  end_cycle: number; // End of its last run
  cores: number[]; // Numbers of the cores that run it
  offchip_bytes: number; // Bytes through the off-chip port
  energy: ByComponent; // Energy by component
  variant: string; // How outputs that scatter and pairs of gradients are computed
}

export function read_layer_figures(value: unknown): LayerFigures {
  const from = object(value);
  return {
    name: text(from["name"]),
    op_type: text(from["op_type"]),
    phase: text(from["phase"]),
    macs: number(from["macs"]),
    critical_path_cycles: number(from["critical_path_cycles"]),
    span_cycles: number(from["span_cycles"]),
    busy_cycles: number(from["busy_cycles"]),
    utilisation: number(from["utilisation"]),
    energy_pj: number(from["energy_pj"]),
    start_cycle: number(from["start_cycle"]),
    end_cycle: number(from["end_cycle"]),
    cores: numbers(from["cores"]),
    offchip_bytes: number(from["offchip_bytes"]),
    energy: read_by_component(from["energy"]),
    variant: text(from["variant"]),
  };
}

/// The cards of the key figures.
export const kCards: { key: string; label: string; unit: string; value: (step: StepFigures) => number; compare: boolean }[] = [
  { key: "latency_cycles", label: "Latency", unit: "cycles", value: (step) => step.latency_cycles, compare: true },
  { key: "energy_pj", label: "Energy", unit: "pJ", value: (step) => step.energy_pj, compare: true },
  { key: "peak_memory_bytes", label: "Peak memory", unit: "bytes", value: (step) => step.peak_memory_bytes, compare: true },
  { key: "total", label: "MACs", unit: "MACs", value: (step) => step.macs.total, compare: true },
  { key: "parameters", label: "Parameters", unit: "elements", value: (step) => step.parameters, compare: false },
  { key: "area_mm2", label: "Chip area", unit: "mm²", value: (step) => step.area_mm2, compare: false },
];

/// The numbers of the table of phases; a phase has a part of the whole step's figure.
export const kPhaseColumns = [
  { key: "latency_cycles", title: "Latency (cycles)", unit: "cycles", whole: (step) => step.latency_cycles },
  { key: "critical_path_cycles", title: "Critical path (cycles)", unit: "cycles", whole: (step) => step.latency_cycles },
  { key: "busy_cycles", title: "At work (cycles)", unit: "cycles", whole: null },
  { key: "energy_pj", title: "Energy", unit: "pJ", whole: (step) => step.energy_pj },
  { key: "macs", title: "MACs", unit: "MACs", whole: (step) => step.macs.total },
  { key: "peak_memory_bytes", title: "Peak memory", unit: "bytes", whole: null },
] as const satisfies readonly { key: keyof PhaseFigures; title: string; unit: string; whole: ((step: StepFigures) => number) | null }[];
