// The page of a search for a parallel strategy: what was found, as time against memory.
import { nanoseconds, picojoules, read_plan, type Plan } from "./cluster_data";
import { rate } from "./cluster_page";
import { list, number, object, text, type Json } from "./json";
import { h, shown, svg, type Child } from "./dom";
import { exact, table_bytes as bytes } from "./format";
import { drawing, legend, panel, table } from "./parts";

const kLeft = 20; // px
const kWidth = 900;
const kHeight = 320;

/// In the order in which they are drawn, one over the other.
const kMarks = {
  runner_up: { name: "next best", variable: "--idle", radius: 4 },
  front: { name: "no other is better in all", variable: "--blue", radius: 5 },
  best: { name: "best", variable: "--vermilion", radius: 6 },
};
type Mark = keyof typeof kMarks;

const kCounts: [string, string][] = [
  ["all", "all"],
  ["modelled", "modelled"],
  ["modelled_too_large", "modelled, and too large"],
  ["beaten_by_bound", "no better by their bounds"],
  ["too_large_by_bound", "too large by their bounds"],
  ["impossible", "cannot divide the network"],
  ["left", "not evaluated: the search was ended"],
];

function summary(from: Json, best: Plan): HTMLElement {
  const tokens = object(from["best_strategy"])["tokens_per_second"];
  const gap = from["gap"];
  const rows: Child[][] = [
    ["devices", `${exact(number(from["devices"]))} of ${shown(text(from["cluster"]), 80)}`],
    ["best strategy", h("a", { href: "best/report.html" }, shown(best.strategy))],
    ["time of a step", nanoseconds(best.time)],
  ];
  if (typeof tokens === "number") rows.push(["tokens a second", rate(tokens)]);
  rows.push(["memory of a device, at most", bytes(best.memory)]);
  if (best.energy !== null) rows.push(["energy", picojoules(best.energy)]);
  rows.push(["gap to the bound", typeof gap === "number" ? `${(100 * gap).toFixed(2)}\u202f%` : "unknown"]);
  return table([], rows, "narrow full");
}

/// Times to the right and bytes upward, both from 0.
function scatter(points: [Mark, Plan][], limit: unknown): SVGElement {
  const end = (of: (plan: Plan) => number, min: number) => 1.02 * points.reduce((max, [, plan]) => Math.max(max, of(plan)), min);
  const time = end((plan) => plan.time, 1);
  const memory = end((plan) => plan.memory, Math.max(1, number(limit)));
  const y = (held: number) => kHeight - ((kHeight - 24) * held) / memory;
  const picture = drawing(kLeft + kWidth + 20, kHeight + 22, "time against memory");
  picture.append(
    svg("line", { x1: kLeft, y1: kHeight, x2: kLeft + kWidth, y2: kHeight }),
    svg("line", { x1: kLeft, y1: 0, x2: kLeft, y2: kHeight }),
    svg("text", { x: kLeft + kWidth, y: kHeight + 16, "text-anchor": "end" }, `time of a step, to ${nanoseconds(time)}`),
    svg("text", { x: kLeft + 6, y: 12 }, `memory of a device, to ${bytes(memory)}`),
  );
  for (const [mark, plan] of points) {
    const { variable, radius } = kMarks[mark];
    const title = svg("title", {}, `${shown(plan.strategy)}: ${nanoseconds(plan.time)}, ${bytes(plan.memory)}`);
    const [cx, cy] = [kLeft + (kWidth * plan.time) / time, y(plan.memory)];
    picture.append(svg("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: radius, style: `fill: var(${variable}); fill-opacity: 0.75` }, title));
  }
  if (typeof limit === "number") {
    const ends = { x1: kLeft, x2: kLeft + kWidth, y1: y(limit).toFixed(1), y2: y(limit).toFixed(1) };
    picture.append(svg("line", { ...ends, class: "limit" }, svg("title", {}, `a device has ${bytes(limit)}`)));
  }
  return picture;
}

function plans(title: string, listed: Plan[]): HTMLElement[] {
  if (listed.length === 0) return [];
  const rows = listed.map((plan) => [shown(plan.strategy), nanoseconds(plan.time), bytes(plan.memory), plan.energy === null ? "-" : picojoules(plan.energy)]);
  return [panel(title, table(["", "time", "memory", "energy"], rows, "full"))];
}

export function parallelism_page(from: Json): HTMLElement[] {
  const best = read_plan(from["best_strategy"]);
  const front = list(from["front"]).map(read_plan);
  const runners_up = list(from["runners_up"]).map(read_plan);
  const counts = object(from["strategies"]);
  const marked = (mark: Mark, listed: Plan[]) => listed.map((plan): [Mark, Plan] => [mark, plan]);
  const points = [...marked("runner_up", runners_up), ...marked("front", front), ...marked("best", [best])];
  const became = kCounts.map(([key, name]) => [name, exact(number(counts[key]))]);
  return [
    h("header", {}, h("h1", {}, shown(text(from["name"])) || "Search"), h("p", { class: "muted" }, "How a training step is best divided over a cluster")),
    h("section", { class: "panel" }, summary(from, best)),
    panel("Time and memory", legend(Object.values(kMarks).reverse()), h("div", { class: "scroll-x" }, scatter(points, from["memory_limit_bytes"]))),
    panel("What became of the strategies", table([], became, "narrow full")),
    ...plans("No other is better in all of these", front),
    ...plans("Next best of those modelled", runners_up),
  ];
}
