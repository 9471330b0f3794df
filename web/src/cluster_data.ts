// A step on a cluster as its page uses it: every absent or malformed part becomes an empty one. docs/cluster.schema.json
// describes the file.
import { list, number, numbers, object, text, type Json } from "./json";

export interface Pass {
  stage: number;
  kind: number; // forward, backward, weight gradient
  micro_batch: number;
  chunk: number;
  start: number; // ns
  end: number;
}

export interface Send {
  from: number; // stage
  to: number;
  start: number;
  end: number;
}

export interface Stage {
  end: number; // of its last pass
  finish: number; // of its update
  share: Json;
  memory: Json;
}

export interface ClusterStep {
  makespan: number; // ns
  listed_until: number; // passes and sends that begin later are not in the file
  chunks: number; // of a stage
  passes: Pass[];
  sends: Send[];
  stages: Stage[];
}

const kPassKinds = 3;

function read_passes(value: unknown): Pass[] {
  return list(value)
    .map(numbers)
    .map(([stage = 0, kind = 0, micro_batch = 0, chunk = 0, start = 0, end = 0]) => ({ stage, kind, micro_batch, chunk, start, end }))
    .filter(({ kind }) => Number.isInteger(kind) && kind >= 0 && kind < kPassKinds);
}

function read_sends(value: unknown): Send[] {
  return list(value)
    .map(numbers)
    .map(([from = 0, to = 0, , , , start = 0, end = 0]) => ({ from, to, start, end }));
}

export function read_cluster_step(from: Json): ClusterStep {
  const timeline = object(from["timeline"]);
  const times = list(timeline["stages"]).map(object);
  const passes = read_passes(timeline["passes"]);
  const stages = list(from["stages"]).map(object).map((stage, i) => ({
    end: number(times[i]?.["end_ns"]),
    finish: number(times[i]?.["finish_ns"]),
    share: object(stage["share"]),
    memory: object(stage["memory"]),
  }));
  return {
    makespan: number(timeline["makespan_ns"]),
    listed_until: number(timeline["listed_until_ns"]),
    chunks: passes.reduce((max, pass) => Math.max(max, pass.chunk + 1), 1),
    passes,
    sends: read_sends(timeline["sends"]),
    stages,
  };
}

/// Five significant digits, the unit scaled by thousands.
function scaled(value: number, units: string[]): string {
  let unit = 0;
  for (; value >= 1000 && unit + 1 < units.length; ++unit) value /= 1000;
  return `${value >= 1e5 ? value.toFixed(0) : Number(value.toPrecision(5))}\u202f${units[unit]}`;
}

export function nanoseconds(value: number): string {
  return scaled(value, ["ns", "\u00b5s", "ms", "s"]);
}

export function picojoules(value: number): string {
  return scaled(value, ["pJ", "nJ", "\u00b5J", "mJ", "J"]);
}

export interface Plan {
  strategy: string;
  time: number; // ns
  memory: number; // bytes
  energy: number | null; // pJ
}

export function read_plan(value: unknown): Plan {
  const from = object(value);
  return {
    strategy: text(object(from["strategy"])["text"]),
    time: number(from["time_ns"]),
    memory: number(from["memory_bytes"]),
    energy: typeof from["energy_pj"] === "number" ? from["energy_pj"] : null,
  };
}
