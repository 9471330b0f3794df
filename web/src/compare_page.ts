// Two runs of explorations over each other: their fronts in one scatter, hypervolumes, which dominate which.
import { list, number, object, text, type Json } from "./json";
import { h, shown } from "./dom";
import { front_of, kObjectives, objective_axis, type Axis, type Objective } from "./explore_data";
import { table } from "./parts";
import { Scatter } from "./scatter";

const kKeys: Record<Objective, string> = { latency: "latency_cycles", energy: "energy_pj", memory: "peak_memory_bytes", area: "area_mm2", power: "peak_power_w", error: "error" };
const kSides = ["a", "b"] as const;

function value_of(design: Json, objective: Objective, in_seconds: boolean): number {
  const value = design[objective === "latency" && in_seconds ? "latency_seconds" : kKeys[objective]];
  return typeof value === "number" ? value : NaN;
}

function design_lines(design: Json, axes: Axis[], row: number): [string, string][] {
  const parameters = Object.entries(object(design["parameters"])).map(([name, value]): [string, string] => [name, text(value)]);
  const known = axes.filter((axis) => !Number.isNaN(axis.values[row]!));
  return [...parameters, ...known.map((axis): [string, string] => [axis.title, axis.show(axis.values[row]!)])];
}

function front_picture(name: string, front: Json, labels: string[], signal: AbortSignal): HTMLElement {
  const objectives = kObjectives.filter((objective) => list(front["objectives"]).includes(objective));
  const designs = kSides.map((side) => list(object(front[side])["designs"]).map(object));
  const all = designs.flat();
  const in_seconds = front["latency_in"] === "seconds";
  const axes = kObjectives.map((objective) => objective_axis("", objective, Float64Array.from(all, (design) => value_of(design, objective, in_seconds)), in_seconds));
  const of = (objective: Objective | undefined) => axes[kObjectives.indexOf(objective ?? "area")]!;
  const [x, y] = [of(objectives[0]), of(objectives[1])];
  const count = designs[0]!.length;
  const side_of = (row: number) => (row < count ? 0 : 1);
  const fronts = kSides.map((_, side) => ({
    rows: front_of(x.values, y.values, (row) => side_of(row) === side),
    variable: `--side-${side}`,
    is_dashed: side === 1,
    is_walked: side === 0,
  }));
  const scatter = new Scatter(
    {
      label: `${name}: both fronts; left and right walk along the first`,
      x,
      y,
      shade: Uint8Array.from(all, (_, row) => side_of(row)),
      ramp: ["--side-0", "--side-1"],
      inside: new Uint8Array(all.length).fill(1),
      fronts,
      describe: (row) => ({ title: `${labels[side_of(row)]}: design ${text(all[row]!["id"])}`, lines: design_lines(all[row]!, axes, row) }),
    },
    signal,
  );
  return h("figure", { class: "chart", "data-front": name }, h("h3", {}, shown(name, 80)), scatter.element);
}

function share(value: unknown): string {
  return typeof value === "number" ? value.toFixed(4) : "\u2013";
}

function times(value: unknown): string {
  return typeof value === "number" ? `${value.toFixed(3)}\u00d7` : "\u2013";
}

function front_table(fronts: [string, Json][]): HTMLElement {
  const head = ["Front of", "Designs of A", "of B", "of both", "Hypervolume of A", "of B", "A's that B dominates", "B's that A dominates"];
  const rows = fronts.map(([name, front]) => {
    const [a, b] = kSides.map((side) => object(front[side]));
    const sizes = [a, b].map((side) => String(list(side!["designs"]).length));
    return [shown(name, 80), ...sizes, String(number(front["shared"])), share(a!["hypervolume"]), share(b!["hypervolume"]), String(number(a!["dominated"])), String(number(b!["dominated"]))];
  });
  return table(head, rows);
}

function best_table(best: unknown): HTMLElement {
  const rows = list(best).map(object).map((row) => {
    const objective = kObjectives.find((name) => name === row["objective"]) ?? "latency";
    const sides = kSides.map((side) => object(row[side]));
    const in_seconds = sides.every((design) => typeof design["latency_seconds"] === "number");
    const shown_values = sides.map((design) => {
      const axis = objective_axis("", objective, new Float64Array(0), in_seconds);
      return axis.show(value_of(design, objective, in_seconds));
    });
    return [objective, ...shown_values, times(row["b_over_a"]), times(row["best_of_a_in_b"]), times(row["best_of_b_in_a"])];
  });
  return table(["Least", "A", "B", "B over A", "A's design in B", "B's design in A"], rows);
}

function pair_parts(pair: Json, signal: AbortSignal): HTMLElement[] {
  const labels = kSides.map((side) => text(object(pair[side])["label"]));
  const fronts = Object.entries(object(pair["fronts"])).map(([name, front]): [string, Json] => [name, object(front)]);
  const legend = kSides.map((side, i) =>
    h("span", { class: "legend-item" }, h("span", { class: "swatch", style: `background: var(--side-${i})` }), `${side.toUpperCase()}: ${shown(labels[i]!, 120)}`),
  );
  const pictures = fronts.map(([name, front]) => front_picture(name, front, labels, signal));
  return [
    h("section", { class: "panel fronts" }, h("h2", {}, "Fronts"), h("div", { class: "legend" }, ...legend), h("div", { class: "two" }, ...pictures), front_table(fronts)),
    h("section", { class: "panel best" }, h("h2", {}, "Best designs"), best_table(pair["best"]), h("p", { class: "muted note" }, "A's design in B: the best design of A as B has it, over B's best.")),
  ];
}

export function compare_page(from: Json, signal: AbortSignal): HTMLElement[] {
  return [
    h("header", {}, h("h1", {}, shown(text(from["name"])) || "Comparison")),
    h("div", { class: "content" }, ...list(from["pairs"]).flatMap((pair) => pair_parts(object(pair), signal))),
  ];
}
