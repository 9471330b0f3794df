// What searches found, as the viewer uses it: the `optimise` part of a result. Absent or malformed parts become empty.
import { kOwners, type Owner } from "./figures";
import { list, number, numbers, object, text, type Json } from "./json";

/// A row of named numbers, in the file's order.
export interface Row {
  name: string;
  chosen: boolean;
  values: [string, number][];
}

/// Live bytes by owner that hold from each moment to the next.
export interface Memory {
  name: string;
  unit: string; // of `at`
  at: number[];
  bytes: Record<Owner, number[]>;
}

/// Of so many candidates, those that a rule of the search kept.
export interface Kept {
  rule: string;
  candidates: number;
  kept: number;
}

/// Operators that run together, and why there are no more of them.
export interface Group {
  operators: string[];
  reason: string;
}

/// What a phase comes to, and came to without fusion.
export interface PhaseSaving {
  phase: string;
  values: { key: string; now: number; before: number }[];
}

export interface Search {
  kind: string;
  objective: string;
  best: number | null;
  bound: number | null;
  gap: number | null;
  interrupted: boolean;
  start: number | null;
  worse: boolean; // than the start
  front: Row[];
  compared: Row[];
  trace: Row[];
  memory: Memory[];
  kept: Kept[];
  groups: Group[];
  phases: PhaseSaving[];
}

/// An objective of the searches by which the step after them is worse.
export interface Worse {
  objective: string;
  before: number;
  after: number;
}

export interface Searches {
  searches: Search[];
  worse: Worse[];
  compared: Row[];
  memory: Memory[];
  picture: string; // an SVG document; empty: none
}

const kMostPoints = 2000;

function finite(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function rows(value: unknown): Row[] {
  return list(value)
    .slice(0, kMostPoints)
    .map((item) => {
      const from = object(item);
      const values = Object.entries(from).filter(([, at]) => finite(at) !== null) as [string, number][];
      return { name: text(from["name"]), chosen: from["chosen"] === true, values };
    });
}

function memories(value: unknown): Memory[] {
  return list(value).map((item) => {
    const from = object(item);
    const at = numbers(from["at"]);
    const bytes = Object.fromEntries(
      kOwners.map((owner) => {
        const held = numbers(from[owner + "_bytes"]);
        return [owner, at.map((_, i) => number(held[i]))];
      }),
    ) as Record<Owner, number[]>;
    return { name: text(from["name"]), unit: text(from["unit"]), at, bytes };
  });
}

function read_search(item: unknown): Search {
  const from: Json = object(item);
  return {
    kind: text(from["kind"]),
    objective: text(from["objective"]),
    best: finite(from["best"]),
    bound: finite(from["bound"]),
    gap: finite(from["gap"]),
    interrupted: from["interrupted"] === true,
    start: finite(from["start"]),
    worse: from["worse_than_start"] === true,
    front: rows(from["front"]),
    compared: rows(from["compared"]),
    trace: rows(from["trace"]),
    memory: memories(from["memory"]),
    kept: list(from["kept"]).map((entry) => {
      const rate = object(entry);
      return { rule: text(rate["rule"]), candidates: number(rate["candidates"]), kept: number(rate["kept"]) };
    }),
    phases: list(from["phases"]).map((entry) => {
      const phase = object(entry);
      const values = ["latency_cycles", "energy_pj", "offchip_bytes"]
        .filter((key) => finite(phase["unfused_" + key]) !== null)
        .map((key) => ({ key, now: number(phase[key]), before: number(phase["unfused_" + key]) }));
      return { phase: text(phase["phase"]), values };
    }),
    groups: list(from["groups"])
      .map((entry) => ({ operators: list(object(entry)["operators"]).map(text), reason: text(object(entry)["reason"]) }))
      .filter((group) => group.reason !== ""),
  };
}

/// Null where the result has none.
export function read_searches(value: unknown): Searches | null {
  if (typeof value !== "object" || value === null) return null;
  const from = object(value);
  const picture = from["picture"];
  return {
    searches: list(from["searches"]).map(read_search),
    worse: list(from["worse"]).map((item) => {
      const row = object(item);
      return { objective: text(row["objective"]), before: number(row["before"]), after: number(row["after"]) };
    }),
    compared: rows(from["compared"]),
    memory: memories(from["memory"]),
    picture: typeof picture === "string" && picture.startsWith("<svg ") ? picture : "",
  };
}
