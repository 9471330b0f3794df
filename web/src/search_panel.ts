// What searches found: best, bound and gap, steps side by side, fronts with the chosen point, how the searches went,
// memory before and after, and the groups on the graph.
import { kOwners } from "./figures";
import { h, shown, svg } from "./dom";
import { byte_ticks, bytes, energy, exact, label, percent, si, ticks } from "./format";
import type { Group, Kept, Memory, PhaseSaving, Row, Search, Searches } from "./search_data";
import { owner_variable } from "./theme";

const kWidth = 520;
const kHeight = 230;
const kLeft = 74;
const kRight = 14;
const kTop = 12;
const kBottom = 42;
const kMostRows = 50;
const kMostFronts = 3; // pictures of one front: its first objective against others

/// The first line of the page of an answer that is worse than what the searches began with; else null.
export function worse_panel(found: Searches): HTMLElement | null {
  const of = (now: number, before: number): string => (before > 0 ? ` (${percent(now / before)} of it)` : "");
  const lines = found.worse.map(
    ({ objective, before, after }) =>
      `Worse than before the searches: ${shown(objective, 40)} ${value_text(objective, after)} after ${value_text(objective, before)}${of(after, before)}.`,
  );
  for (const search of found.searches) {
    if (!search.worse || found.worse.some((row) => row.objective === search.objective)) continue;
    const values =
      search.best === null || search.start === null
        ? "no result was found"
        : `${shown(search.objective, 40)} ${value_text(search.objective, search.best)} after ${value_text(search.objective, search.start)}${of(search.best, search.start)}`;
    lines.push(`Worse than the start of the search (${shown(search.kind, 40)}): ${values}.`);
  }
  if (lines.length === 0) return null;
  return h("section", { class: "panel", id: "worse", role: "status" }, ...lines.map((line) => h("p", {}, line)));
}

export function search_panel(found: Searches): HTMLElement {
  const parts: (Node | null)[] = [outcome_table(found.searches)];
  if (found.compared.length > 0) parts.push(h("h3", {}, "Before and after"), rows_table(found.compared));
  parts.push(memory_charts(found.memory));
  for (const search of found.searches) parts.push(...search_parts(search));
  if (found.picture !== "") parts.push(h("h3", {}, "Groups on the graph"), picture(found.picture));
  return h("section", { class: "panel", id: "searches" }, h("h2", {}, "Optimisation"), ...parts);
}

function outcome_table(searches: Search[]): HTMLElement | null {
  if (searches.length === 0) return null;
  const rows = searches.map((search) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, shown(search.kind, 40)),
      h("td", {}, shown(search.objective, 40)),
      h("td", { class: "number" }, search.best === null ? "none" : value_text(search.objective, search.best)),
      h("td", { class: "number" }, search.bound === null ? "none" : value_text(search.objective, search.bound)),
      h("td", { class: "number" }, search.gap === null ? "unknown" : percent(search.gap)),
      h("td", {}, search.interrupted ? "cut short" : ""),
    ),
  );
  const head = ["Search", "Objective", "Best", "Lower bound", "Gap", ""].map((name, i) =>
    h("th", { scope: "col", class: i >= 2 && i < 5 ? "number" : "" }, name),
  );
  const table = h("table", { class: "figures outcomes" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
  return h("div", { class: "scroll-x" }, table);
}

function search_parts(search: Search): HTMLElement[] {
  const name = shown(search.kind, 40);
  const charts: Node[] = [];
  const axes = search.front[0]?.values.map(([key]) => key).slice(0, kMostFronts) ?? [];
  for (const other of axes.slice(1)) charts.push(front_chart(search.front, axes[0]!, other));
  for (const keys of [["best", "bound"], ["hypervolume"]]) {
    const held = keys.filter((key) => search.trace.some((row) => value_of(row, key) !== null));
    if (held.length > 0 && search.trace.length > 1) charts.push(trace_chart(search, held));
  }
  const parts: (HTMLElement | null)[] = [
    search.compared.length > 0 ? rows_table(search.compared) : null,
    charts.length > 0 ? h("div", { class: "two" }, ...charts) : null,
    memory_charts(search.memory),
    phases_table(search.phases),
    kept_table(search.kept),
    groups_table(search.groups),
  ];
  const made = parts.filter((part): part is HTMLElement => part !== null);
  return made.length > 0 ? [h("h3", {}, `Search: ${name}`), ...made] : [];
}

/// What fusion saves in each phase.
function phases_table(phases: PhaseSaving[]): HTMLElement | null {
  const keys = phases[0]?.values.map((value) => value.key) ?? [];
  if (keys.length === 0) return null;
  const rows = phases.map((phase) => [
    shown(phase.phase, 40),
    ...phase.values.map(({ key, now, before }) => unit_text(key, now) + (before > 0 ? ` (${percent(now / before)} of ${unit_text(key, before)} unfused)` : "")),
  ]);
  return plain_table(["Phase", ...keys.map(heading)], rows, 1);
}

function kept_table(kept: Kept[]): HTMLElement | null {
  if (kept.length === 0) return null;
  const share = (rate: Kept) => percent(rate.kept / Math.max(1, rate.candidates));
  const rows = kept.map((rate) => [shown(rate.rule, 80), si(rate.candidates), si(rate.kept), share(rate)]);
  return plain_table(["Rule of the search", "Candidates", "Kept", "Share"], rows, 1);
}

function groups_table(groups: Group[]): HTMLElement | null {
  if (groups.length === 0) return null;
  const names = (group: Group) => {
    const ends = [group.operators[0] ?? "", group.operators[group.operators.length - 1] ?? ""].map((name) => shown(name, 60));
    return group.operators.length > 1 ? ends.join(" to ") : ends[0]!;
  };
  const rows = groups
    .slice(0, kMostRows)
    .map((group) => [names(group), String(group.operators.length), shown(group.reason, 160)]);
  return plain_table(["Group", "Operators", "Why it ends there"], rows, 3);
}

/// Columns from `numbers` on are numbers.
function plain_table(head: string[], rows: string[][], numbers: number): HTMLElement {
  const cell = (name: string, i: number) => (i === 0 ? h("th", { scope: "row" }, name) : h("td", { class: i >= numbers ? "number" : "" }, name));
  const heads = head.map((name, i) => h("th", { scope: "col", class: i > 0 && i >= numbers ? "number" : "" }, name));
  const body = rows.map((row) => h("tr", {}, ...row.map(cell)));
  return h("div", { class: "scroll-x" }, h("table", { class: "figures" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...body)));
}

function unit_text(key: string, value: number): string {
  if (key.endsWith("_pj")) return energy(value);
  if (key.endsWith("_bytes")) return bytes(value);
  if (key === "gap" || key === "overhead") return percent(value);
  return si(value);
}

/// Of an objective: its name says its unit.
function value_text(objective: string, value: number): string {
  if (objective === "energy") return energy(value);
  if (objective === "memory") return bytes(value);
  if (objective === "dram") return si(value, "bit");
  return si(value);
}

function heading(key: string): string {
  return shown(label(key.replace(/_(pj|bytes|cycles)$/, "")), 40);
}

function value_of(row: Row, key: string): number | null {
  return row.values.find(([name]) => name === key)?.[1] ?? null;
}

/// Each column's values with what they are of the first row's.
function rows_table(rows: Row[]): HTMLElement {
  const keys = rows[0]!.values.map(([key]) => key).slice(0, 8);
  const body = rows.slice(0, kMostRows).map((row) =>
    h(
      "tr",
      { class: row.chosen ? "largest" : "" },
      h("th", { scope: "row" }, shown(row.name, 60)),
      ...keys.map((key) => {
        const value = value_of(row, key);
        const first = value_of(rows[0]!, key);
        const share = value !== null && first !== null && first > 0 && row !== rows[0] ? ` (${percent(value / first)})` : "";
        return h("td", { class: "number", title: value === null ? "" : exact(value) }, value === null ? "" : unit_text(key, value) + share);
      }),
    ),
  );
  const head = ["", ...keys.map(heading)].map((name, i) => h("th", { scope: "col", class: i > 0 ? "number" : "" }, name));
  return h(
    "div",
    { class: "scroll-x" },
    h("table", { class: "figures" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)),
  );
}

interface Frame {
  chart: SVGElement;
  x: (value: number) => number;
  y: (value: number) => number;
}

/// An empty plot with its axes; the ranges are [from, to].
function frame(title: string, x_range: [number, number], y_range: [number, number], keys: [string, string], y_ticks: number[]): Frame {
  const scale = ([from, to]: [number, number], low: number, high: number) => {
    const span = to > from ? to - from : 1;
    return (value: number) => low + ((value - from) / span) * (high - low);
  };
  const x = scale(x_range, kLeft, kWidth - kRight);
  const y = scale(y_range, kHeight - kBottom, kTop);
  const chart = svg("svg", { viewBox: `0 0 ${kWidth} ${kHeight}`, class: "energy-chart", role: "img", "aria-label": title });
  chart.append(svg("title", {}, title));
  for (const tick of y_ticks) {
    chart.append(svg("line", { x1: kLeft, x2: kWidth - kRight, y1: y(tick), y2: y(tick), class: "grid" }));
    chart.append(svg("text", { x: kLeft - 6, y: y(tick) + 4, class: "tick", "text-anchor": "end" }, unit_text(keys[1], tick)));
  }
  const bottom = kHeight - kBottom;
  for (const tick of ticks(x_range[0], x_range[1], 4))
    chart.append(svg("text", { x: x(tick), y: bottom + 16, class: "tick", "text-anchor": "middle" }, unit_text(keys[0], tick)));
  chart.append(svg("line", { x1: kLeft, x2: kWidth - kRight, y1: bottom, y2: bottom, class: "grid" }));
  chart.append(svg("text", { x: (kLeft + kWidth) / 2, y: kHeight - 8, class: "tick", "text-anchor": "middle" }, heading(keys[0])));
  return { chart, x, y };
}

function range_of(values: number[]): [number, number] {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!(low <= high)) return [0, 1];
  const margin = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  return [Math.max(low - margin, low >= 0 ? 0 : -Infinity), high + margin];
}

function front_chart(front: Row[], x_key: string, y_key: string): HTMLElement {
  const points = front.flatMap((row) => {
    const x = value_of(row, x_key);
    const y = value_of(row, y_key);
    return x === null || y === null ? [] : [{ x, y, chosen: row.chosen }];
  });
  const y_range = range_of(points.map((point) => point.y));
  const title = `${heading(y_key)} against ${heading(x_key)}`;
  const plot = frame(title, range_of(points.map((point) => point.x)), y_range, [x_key, y_key], ticks(...y_range, 4));
  for (const point of [...points].sort((a, b) => Number(a.chosen) - Number(b.chosen))) {
    const at = { cx: plot.x(point.x).toFixed(1), cy: plot.y(point.y).toFixed(1), r: point.chosen ? 6 : 3.5 };
    const tip = `${unit_text(x_key, point.x)}, ${unit_text(y_key, point.y)}${point.chosen ? ", chosen" : ""}`;
    plot.chart.append(svg("circle", { ...at, class: point.chosen ? "point chosen" : "point" }, svg("title", {}, tip)));
  }
  return h("figure", { class: "chart front" }, h("figcaption", {}, title), plot.chart);
}

const kLines = ["--accent", "--limit-offchip"];

function trace_chart(search: Search, keys: string[]): HTMLElement {
  const at = search.trace.map((row, i) => value_of(row, "evaluations") ?? i);
  const values = keys.map((key) => search.trace.map((row) => value_of(row, key)));
  const y_range = range_of(values.flat().filter((value): value is number => value !== null));
  const title = `${keys.map(label).join(" and ")} over evaluations`;
  const plot = frame(title, [at[0] ?? 0, at[at.length - 1] ?? 1], y_range, ["evaluations", ""], ticks(...y_range, 4));
  const legend = h("div", { class: "legend" });
  values.forEach((line, k) => {
    let path = "";
    line.forEach((value, i) => {
      if (value === null) return;
      const to = `${plot.x(at[i]!).toFixed(1)} ${plot.y(value).toFixed(1)}`;
      path += path === "" ? `M${to}` : `H${plot.x(at[i]!).toFixed(1)}V${plot.y(value).toFixed(1)}`;
    });
    plot.chart.append(svg("path", { d: path, class: "line", style: `stroke: var(${kLines[k % 2]})` }));
    const swatch = h("span", { class: "swatch", style: `background: var(${kLines[k % 2]})` });
    legend.append(h("span", { class: "legend-item" }, swatch, label(keys[k]!)));
  });
  return h("figure", { class: "chart trace" }, h("figcaption", {}, title), legend, plot.chart);
}

/// All on one scale, so that they compare.
function memory_charts(memories: Memory[]): HTMLElement | null {
  const drawn = memories.filter((memory) => memory.at.length > 0).slice(0, 6);
  if (drawn.length === 0) return null;
  const totals = drawn.flatMap((memory) => memory.at.map((_, i) => kOwners.reduce((sum, owner) => sum + memory.bytes[owner][i]!, 0)));
  const most = totals.reduce((a, b) => Math.max(a, b), 1);
  const last = drawn.reduce((a, memory) => Math.max(a, end_of(memory)), 1);
  const legend = h("div", { class: "legend" });
  for (const owner of [...kOwners].reverse()) {
    const swatch = h("span", { class: "swatch", style: `background: var(${owner_variable(owner)})` });
    legend.append(h("span", { class: "legend-item" }, swatch, label(owner)));
  }
  return h("div", { class: "memories" }, legend, h("div", { class: "two" }, ...drawn.map((memory) => memory_chart(memory, last, most))));
}

/// Of its last moment: an operator lasts until the next one, a step of time ends there.
function end_of(memory: Memory): number {
  return memory.at[memory.at.length - 1]! + (memory.unit === "cycle" ? 0 : 1);
}

function memory_chart(memory: Memory, last: number, most: number): HTMLElement {
  const sums = memory.at.map((_, i) => kOwners.reduce((sum, owner) => sum + memory.bytes[owner][i]!, 0));
  const peak = sums.reduce((a, b) => Math.max(a, b), 0);
  const title = `Memory ${shown(memory.name, 60)}: at most ${bytes(peak)}`;
  const key = memory.unit === "cycle" ? "time (cycles)" : shown(memory.unit, 40);
  const plot = frame(title, [0, last], [0, most], [key, "_bytes"], byte_ticks(most, 4));
  const below = memory.at.map(() => 0);
  for (const owner of kOwners) {
    const top = below.map((base, i) => base + memory.bytes[owner][i]!);
    plot.chart.append(svg("path", { d: band(memory.at, end_of(memory), below, top, plot), style: `fill: var(${owner_variable(owner)})` }));
    top.forEach((value, i) => (below[i] = value));
  }
  return h("figure", { class: "chart memory" }, h("figcaption", {}, title), plot.chart);
}

/// The area between two step functions.
function band(at: number[], last: number, below: number[], top: number[], plot: Frame): string {
  const x = (i: number) => plot.x(i < at.length ? at[i]! : last).toFixed(1);
  let path = `M${x(0)} ${plot.y(below[0]!).toFixed(1)}`;
  for (let i = 0; i < at.length; ++i) path += `V${plot.y(top[i]!).toFixed(1)}H${x(i + 1)}`;
  for (let i = at.length - 1; i >= 0; --i) path += `V${plot.y(below[i]!).toFixed(1)}H${x(i)}`;
  return path + "Z";
}

/// As an image, so that nothing in the file can become part of the page.
function picture(source: string): HTMLElement {
  const image = h("img", { class: "picture", alt: "Groups on the graph", src: `data:image/svg+xml,${encodeURIComponent(source)}` });
  return h("div", { class: "picture-box" }, image);
}
