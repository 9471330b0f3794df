// What the gradients of products move off-chip, by tensor: dY, X, W, dX and dW.
import { kMoved, type GradientRow, type Moved, type Step } from "./data";
import { h, shown } from "./dom";
import { bytes, exact, percent } from "./format";
import { moved_variable } from "./theme";

const kMostLayers = 12; // with a row of their own

const kNames: Record<Moved, string> = { dy: "dY", x: "X", w: "W", dx: "dX", dw: "dW", other: "to make room" };

/// Null where nothing is differentiated, or nothing of it passes the off-chip port.
export function gradient_panel(step: Step): HTMLElement | null {
  const all = step.gradients.reduce((total, row) => total + sum(row), 0);
  if (all === 0) return null;
  const legend = h("div", { class: "legend" });
  for (const moved of kMoved) {
    const part = step.gradients.reduce((total, row) => total + row.bytes[moved], 0);
    if (part === 0) continue;
    const swatch = h("span", { class: "swatch", style: `background: var(${moved_variable(moved)})` });
    const title = `${exact(part)} bytes`;
    legend.append(
      h("span", { class: "legend-item", title }, swatch, `${kNames[moved]} `, h("b", {}, percent(part / all))),
    );
  }
  const paired = step.gradients.filter((row) => row.paired).length;
  const note =
    `${bytes(all)} from and to the off-chip memory for the gradients of ${step.gradients.length} products, ` +
    `${paired} of them with both in one operator.`;
  return h(
    "section",
    { class: "panel", id: "gradients" },
    h("h2", {}, "Gradients of products, off-chip"),
    h("p", { class: "muted note" }, note),
    legend,
    rows(step.gradients),
  );
}

function sum(row: GradientRow): number {
  return kMoved.reduce((total, moved) => total + row.bytes[moved], 0);
}

/// The products that move most, and the others together.
function rows(gradients: GradientRow[]): HTMLElement {
  const sorted = [...gradients].sort((a, b) => sum(b) - sum(a));
  const rest = sorted.slice(kMostLayers);
  const listed = rest.length < 2 ? sorted : sorted.slice(0, kMostLayers);
  const most = sum(sorted[0]!) || 1;
  const made = listed.map((row) => one(`${shown(row.layer, 60)}${row.paired ? " (paired)" : ""}`, row, most));
  if (listed.length < sorted.length) {
    const total = Object.fromEntries(
      kMoved.map((moved) => [moved, rest.reduce((all, row) => all + row.bytes[moved], 0)]),
    ) as GradientRow["bytes"];
    made.push(one(`${rest.length} other products`, { layer: "", paired: false, bytes: total }, most));
  }
  return h("div", { class: "scroll-x" }, h("table", { class: "figures" }, h("tbody", {}, ...made)));
}

function one(name: string, row: GradientRow, most: number): HTMLElement {
  const scale = Math.max(most, sum(row));
  const bar = h("div", { class: "stack gradient-bar" });
  for (const moved of kMoved.filter((key) => row.bytes[key] > 0)) {
    const width = ((row.bytes[moved] / scale) * 100).toFixed(2);
    const title = `${kNames[moved]}: ${bytes(row.bytes[moved])}`;
    bar.append(h("span", { style: `width: ${width}%; background: var(${moved_variable(moved)})`, title }));
  }
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name),
    h("td", { class: "number", title: `${exact(sum(row))} bytes` }, bytes(sum(row))),
    h("td", {}, bar),
  );
}
