// Results of steps beside each other (monet compare): totals, causes, phases, both timelines on one axis, layers, settings.
import { kLimits } from "./data";
import { h, shown, svg, type Child } from "./dom";
import { bytes, energy, exact, label, si } from "./format";
import { list, number, numbers, object, text, type Json } from "./json";
import { drawing, legend, panel, rectangle, stacked_bars, table } from "./parts";
import { limit_variable, phase_variable } from "./theme";

const kListed = 200; // layers and settings
const kRow = 12; // px, of a core in a timeline
const kWidth = 900; // px, of the longest timeline

type Values = (number | null)[];

function values(from: unknown): Values {
  return list(from).map((value) => (typeof value === "number" ? value : null));
}

function run_name(index: number): string {
  return String.fromCharCode(65 + (index % 26));
}

function show(value: number | null, unit: string): string {
  if (value === null) return "\u2013";
  if (unit === "pJ") return energy(value);
  if (unit === "bytes") return bytes(value);
  return Number.isInteger(value) ? exact(value) : si(value);
}

function ratio(value: number | null, first: number | null): string {
  return value === null || first === null || first === 0 ? "" : `\u00d7${(value / first).toPrecision(4)}`;
}

function difference(value: number | null, first: number | null): string {
  const cycles = (value ?? 0) - (first ?? 0);
  return (cycles > 0 ? "+" : "") + exact(cycles);
}

/// The values of a row, each but the first with how it compares with the first.
function cells(row: Values, unit: string, compare: (value: number | null, first: number | null) => string): string[] {
  return row.flatMap((value, i) => (i === 0 ? [show(value, unit)] : [show(value, unit), compare(value, row[0] ?? null)]));
}

function heads(names: string[], runs: number, compared: string): string[] {
  return [...names, ...Array.from({ length: runs }, (_, i) => (i === 0 ? ["A"] : [run_name(i), compared])).flat()];
}

function runs_panel(runs: Json[]): HTMLElement {
  const rows = runs.map((run, i): Child[] => [run_name(i), shown(text(run["name"]), 120), shown(text(run["label"]), 120)]);
  return panel("Results", table(["", "Name", "File"], rows));
}

function causes_panel(causes: Json[], runs: number): HTMLElement {
  const rows = causes.map((cause): Child[] => [shown(label(text(cause["name"])), 60), ...cells(values(cause["values"]), "cycles", difference)]);
  const unit = text(causes[0]?.["unit"]);
  const children: Child[] = [table(heads([`Cause (${shown(unit, 20)})`], runs, "Difference"), rows)];
  if (unit === "cycles") {
    const parts = kLimits.map((limit) => ({ key: limit, name: label(limit), variable: limit_variable(limit) }));
    const by_name = new Map(causes.map((cause) => [text(cause["name"]), values(cause["values"])]));
    const bars = Array.from({ length: runs }, (_, i) => {
      const own = kLimits.map((limit) => by_name.get(limit)?.[i] ?? 0);
      return { name: run_name(i), values: own, text: exact(own.reduce((a, b) => a + b, 0)) };
    });
    const max = Math.max(...bars.map((bar) => bar.values.reduce((a, b) => a + b, 0)));
    children.unshift(legend(parts), stacked_bars(parts, bars, { label: "Cycles of the critical path by cause", max, left: 24, width: 700, show: exact }));
  }
  return panel("What the time is spent on", ...children);
}

/// The cores of a result as rows of bars.
function timeline(lanes: Json[], name: string, scale: number): HTMLElement {
  const picture = drawing(kWidth + 40, lanes.length * kRow + 2, `Timeline of ${name}`);
  lanes.forEach((lane, row) => {
    const core = exact(number(lane["core"]));
    picture.append(svg("text", { x: 0, y: row * kRow + 10, class: "small" }, core));
    for (const bar of list(lane["bars"]).map(list)) {
      const [start, end] = [number(bar[0]), number(bar[1])];
      const box = { x: 40 + start * scale, y: row * kRow + 1, width: Math.max((end - start) * scale, 0.5), height: kRow - 2 };
      picture.append(rectangle(box, phase_variable(text(bar[2])), `${label(text(bar[2]))}, core ${core}: ${exact(start)} to ${exact(end)}`));
    }
  });
  return h("div", { class: "scroll-x" }, h("h3", {}, name), picture);
}

function timelines_panel(from: unknown): HTMLElement {
  const timelines = list(from).map((lanes) => list(lanes).map(object));
  const ends = timelines.flat().flatMap((lane) => list(lane["bars"]).map((bar) => numbers(list(bar).slice(1, 2))[0] ?? 0));
  const last = ends.reduce((a, b) => Math.max(a, b), 1);
  const phases = ["forward", "loss", "backward", "recompute", "update"];
  return panel(
    "Timelines on one axis",
    legend(phases.map((phase) => ({ name: label(phase), variable: phase_variable(phase) }))),
    ...timelines.map((lanes, i) => timeline(lanes, run_name(i), kWidth / last)),
    h("p", { class: "muted note" }, `Rows are cores; the axis ends at cycle ${exact(last)}.`),
  );
}

function layers_panel(layers: Json[], runs: number): HTMLElement {
  const rows = layers.slice(0, kListed).map((layer): Child[] => [
    shown(text(layer["name"]), 120),
    shown(label(text(layer["phase"])), 40),
    shown(label(text(layer["cause"])), 40),
    ...cells(values(layer["critical_path_cycles"]), "cycles", difference),
  ]);
  const note = layers.length > kListed ? `${layers.length - kListed} more layers differ less.` : "";
  return panel("Layers by the difference of their cycles on the critical path", table(heads(["Layer", "Phase", "Cause"], runs, "Difference"), rows), h("p", { class: "muted note" }, note));
}

function settings_panel(settings: Json[]): HTMLElement {
  if (settings.length === 0) return panel("Settings that differ", h("p", {}, "None."));
  const count = list(settings[0]!["values"]).length;
  const rows = settings.slice(0, kListed).map((one): Child[] => [
    shown(text(one["key"]), 80),
    shown(text(one["file"]), 80),
    ...list(one["values"]).map((value) => (value === null ? "\u2013" : shown(text(value), 60))),
  ]);
  return panel("Settings that differ", table(["Key", "File", ...Array.from({ length: count }, (_, i) => run_name(i))], rows));
}

export function result_comparison_page(from: Json): HTMLElement[] {
  const runs = list(from["runs"]).map(object);
  const objects = (key: string) => list(from[key]).map(object);
  const totals = objects("totals").map((total): Child[] => [label(text(total["name"])), ...cells(values(total["values"]), text(total["unit"]), ratio)]);
  const phases = objects("phases").map((phase): Child[] => [label(text(phase["phase"])), ...cells(values(phase["critical_path_cycles"]), "cycles", difference)]);
  return [
    h("header", {}, h("h1", {}, "Comparison of results")),
    h(
      "div",
      { class: "content" },
      runs_panel(runs),
      panel("Totals", table(heads([""], runs.length, "Ratio"), totals)),
      causes_panel(objects("causes"), runs.length),
      phases.length === 0 ? null : panel("Phases: cycles of the critical path", table(heads(["Phase"], runs.length, "Difference"), phases)),
      from["timelines"] === undefined ? null : timelines_panel(from["timelines"]),
      from["layers"] === undefined ? null : layers_panel(objects("layers"), runs.length),
      settings_panel(objects("settings")),
    ),
  ];
}
