// An exploration as the viewer uses it: explore.json as columns. docs/reference/exploration-result.md describes the file; absent or
// malformed parts become empty ones.
import { list, number, object, text, type Json } from "./json";
import { bytes, energy, seconds, si } from "./format";

export const kObjectives = ["latency", "energy", "memory", "area", "power", "error"] as const;
export type Objective = (typeof kObjectives)[number];

export interface Parameter {
  name: string;
  values: string[];
}

/// A column of numbers, NaN where a design has none, and how they are read.
export interface Axis {
  title: string;
  run: string; // empty: of the design itself
  objective: Objective | null;
  parameter: number; // index; -1: none. Then `values` are indices of its values.
  values: Float64Array;
  low: number;
  high: number;
  is_log: boolean;
  show: (value: number) => string;
}

export interface Front {
  name: string;
  run: string;
  objectives: Objective[];
  hypervolume: number | null;
  rows: number[];
}

export interface Best {
  run: string;
  objective: Objective;
  row: number;
}

export interface Effect {
  run: string;
  objective: string;
  shares: number[]; // per parameter
  together: number;
}

export interface Exploration {
  name: string;
  strategy: string;
  seed: number;
  runs: string[];
  counts: [string, number][];
  interrupted: boolean;
  left_out: number; // rows that the file does not hold
  parameters: Parameter[];
  ids: string[];
  choices: Int32Array[]; // per parameter
  reason: Int32Array; // -1: feasible
  reasons: { reason: string; designs: number; example: string }[];
  axes: Axis[]; // parameters first
  fronts: Front[];
  best: Best[];
  effects: Effect[];
  reports: Set<string>; // ids of designs with a full report
}

const kMostRows = 200_000;

function parameter_text(value: unknown): string {
  return typeof value === "number" ? String(value) : text(value);
}

function read_parameters(value: unknown): Parameter[] {
  return list(value).map((item) => {
    const from = object(item);
    return { name: text(from["name"]), values: list(from["values"]).map(parameter_text) };
  });
}

/// Ids are numbers of up to 64 bits: where doubles cannot hold them, they follow from the choices.
function ids_of(rows: unknown[][], parameters: Parameter[], choices: Int32Array[]): string[] {
  return rows.map((row, i) => {
    const id = row[0];
    if (typeof id === "number" && Number.isSafeInteger(id)) return String(id);
    let exact = 0n;
    parameters.forEach((parameter, p) => {
      exact = exact * BigInt(parameter.values.length) + BigInt(Math.max(choices[p]![i]!, 0));
    });
    return String(exact);
  });
}

function range_of(values: Float64Array): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}

const kShow: Record<Objective, (value: number) => string> = {
  latency: (value) => si(value),
  energy,
  memory: bytes,
  area: (value) => `${si(value)} mm\u00b2`,
  power: (value) => si(value, "W"),
  error: (value) => `${(100 * value).toFixed(1)}\u202f%`,
};

export function objective_axis(run: string, objective: Objective, values: Float64Array, in_seconds: boolean): Axis {
  const [low, high] = range_of(values);
  const unit = objective === "latency" && !in_seconds ? " (cycles)" : "";
  return {
    title: (run === "" ? objective : `${run} ${objective}`) + unit,
    run,
    objective,
    parameter: -1,
    values,
    low,
    high,
    is_log: low > 0,
    show: objective === "latency" && in_seconds ? seconds : kShow[objective],
  };
}

function parameter_axis(parameter: Parameter, index: number, choices: Int32Array): Axis {
  return {
    title: parameter.name,
    run: "",
    objective: null,
    parameter: index,
    values: Float64Array.from(choices),
    low: 0,
    high: parameter.values.length - 1,
    is_log: false,
    show: (value) => parameter.values[Math.round(value)] ?? "",
  };
}

/// The parameters, then what each run comes to, then area and power where the files give them, and the error of a short
/// training where there is one: `columns` are the names of what is in a row.
function read_axes(rows: unknown[][], columns: string[], parameters: Parameter[], choices: Int32Array[], runs: string[]): Axis[] {
  const column = (index: number) =>
    Float64Array.from(rows, (row) => (typeof row[index] === "number" ? (row[index] as number) : NaN));
  const base = parameters.length + 1; // reason, area, power, frequency, then three per run
  const feasible = rows.filter((row) => row[base] === null);
  const in_seconds = feasible.length > 0 && feasible.every((row) => number(row[base + 3]) > 0);
  const axes = parameters.map((parameter, i) => parameter_axis(parameter, i, choices[i]!));
  runs.forEach((run, r) => {
    const latency = column(base + 4 + 3 * r);
    if (in_seconds) latency.forEach((cycles, i) => (latency[i] = cycles / number(rows[i]![base + 3])));
    axes.push(objective_axis(run, "latency", latency, in_seconds));
    axes.push(objective_axis(run, "energy", column(base + 5 + 3 * r), false));
    axes.push(objective_axis(run, "memory", column(base + 6 + 3 * r), false));
  });
  for (const [objective, index] of [["area", base + 1], ["power", base + 2]] as const) {
    const values = column(index);
    rows.forEach((row, i) => row[base] !== null && (values[i] = NaN));
    if (range_of(values)[1] > 0) axes.push(objective_axis("", objective, values, false));
  }
  const error = columns.indexOf("error", base + 4 + 3 * runs.length);
  if (error >= 0) axes.push(objective_axis("", "error", column(error), false));
  return axes;
}

function objective(value: unknown): Objective | null {
  return kObjectives.find((name) => name === value) ?? null;
}

function read_fronts(value: unknown, row_of: (design: unknown) => number): Front[] {
  return Object.entries(object(value)).map(([name, item]) => {
    const from = object(item);
    return {
      name,
      run: text(from["run"]),
      objectives: list(from["objectives"]).map(objective).filter((found): found is Objective => found !== null),
      hypervolume: typeof from["hypervolume"] === "number" ? from["hypervolume"] : null,
      rows: list(from["designs"]).map(row_of).filter((row) => row >= 0),
    };
  });
}

function read_best(value: unknown, row_of: (design: unknown) => number): Best[] {
  return Object.entries(object(value)).flatMap(([run, of_run]) =>
    Object.entries(object(of_run)).flatMap(([name, design]) => {
      const found = objective(name);
      const row = row_of(design);
      return found === null || row < 0 ? [] : [{ run, objective: found, row }];
    }),
  );
}

function read_effects(value: unknown, parameters: Parameter[]): Effect[] {
  return Object.entries(object(value)).flatMap(([run, of_run]) =>
    Object.entries(object(of_run)).map(([name, item]) => {
      const from = object(item);
      const effects = list(from["parameters"]).map(object);
      const share = (parameter: Parameter) => number(effects.find((effect) => effect["name"] === parameter.name)?.["share"]);
      return { run, objective: name, shares: parameters.map(share), together: number(from["together"]) };
    }),
  );
}

/// Designs are found by their parameters' values, which are exact whatever the size of ids.
function finder(parameters: Parameter[], choices: Int32Array[], rows: number): (design: unknown) => number {
  const key = (chosen: number[]) => chosen.join(",");
  const found = new Map<string, number>();
  for (let i = 0; i < rows; ++i) found.set(key(choices.map((column) => column[i]!)), i);
  return (design) => {
    const values = object(object(design)["parameters"]);
    const chosen = parameters.map((parameter) => parameter.values.indexOf(parameter_text(values[parameter.name])));
    return found.get(key(chosen)) ?? -1;
  };
}

function read_reasons(value: unknown): Exploration["reasons"] {
  return list(value).map((item) => {
    const from = object(item);
    const example = object(from["example"]);
    return {
      reason: text(from["reason"]),
      designs: number(from["designs"]),
      example: `design ${text(example["id"])}: ${text(example["reason"])}`,
    };
  });
}

export function read_exploration(from: Json): Exploration {
  const parameters = read_parameters(object(from["space"])["parameters"]);
  const runs = list(from["runs"]).map(text);
  const rows = list(from["rows"]).slice(0, kMostRows).map(list);
  const places = parameters.map((parameter) => new Map(parameter.values.map((value, i) => [value, i])));
  const choices = parameters.map((_, p) =>
    Int32Array.from(rows, (row) => places[p]!.get(parameter_text(row[p + 1])) ?? -1),
  );
  const row_of = finder(parameters, choices, rows.length);
  const at = parameters.length + 1;
  const count = (key: string, title: string): [string, number] => [title, number(from[key])];
  return {
    name: text(from["name"]),
    strategy: text(from["strategy"]),
    seed: number(from["seed"]),
    runs,
    counts: [
      count("designs", "designs"),
      count("evaluated", "evaluated"),
      count("infeasible", "infeasible"),
      count("skipped_by_bound", "skipped by bounds"),
      count("excluded", "excluded by constraints"),
    ],
    interrupted: from["interrupted"] === true,
    left_out: number(from["rows_left_out"]),
    parameters,
    ids: ids_of(rows, parameters, choices),
    choices,
    reason: Int32Array.from(rows, (row) => (row[at] === null ? -1 : number(row[at]))),
    reasons: read_reasons(from["reasons"]),
    axes: read_axes(rows, list(from["columns"]).map(text), parameters, choices, runs),
    fronts: read_fronts(from["fronts"], row_of),
    best: read_best(from["best"], row_of),
    effects: read_effects(from["sensitivity"], parameters),
    reports: new Set(list(from["reports"]).map(text)),
  };
}

/// Where a value is on its axis, 0 to 1.
export function position(axis: Axis, value: number): number {
  if (!(axis.high > axis.low)) return 0.5;
  return axis.is_log
    ? Math.log(value / axis.low) / Math.log(axis.high / axis.low)
    : (value - axis.low) / (axis.high - axis.low);
}

/// The axis of an objective of a run; area, power and error are of the design.
export function axis_of(axes: Axis[], run: string, objective: Objective): Axis | null {
  return axes.find((axis) => axis.objective === objective && (axis.run === run || axis.run === "")) ?? null;
}

/// Rows that no other dominates, equal ones included, along the first. `kept` leaves rows out.
export function front_of(x: Float64Array, y: Float64Array, kept: (row: number) => boolean): number[] {
  const rows: number[] = [];
  for (let i = 0; i < x.length; ++i) if (x[i]! <= Infinity && y[i]! <= Infinity && kept(i)) rows.push(i);
  rows.sort((a, b) => x[a]! - x[b]! || y[a]! - y[b]! || a - b);
  const front: number[] = [];
  for (const row of rows) {
    const last = front[front.length - 1];
    if (last === undefined || y[row]! < y[last]! || (x[row] === x[last] && y[row] === y[last])) front.push(row);
  }
  return front;
}
