// Energy by phase and component: stacked bars, one row per phase.
import type { Step } from "./data";
import { kComponents, type ByComponent } from "./figures";
import { h, shown, svg } from "./dom";
import { energy, label, percent, ticks } from "./format";
import { component_variable } from "./theme";

const kWidth = 620;
const kLeft = 148;
const kEnd = 84; // px right of the bars, for their sums
const kRow = 28;
const kMostTypes = 8; // operator types with a row of their own

export function energy_chart(step: Step, inference: Step | null): HTMLElement {
  const rows: [string, ByComponent][] = step.phases.map((phase) => [label(phase.phase), phase.energy]);
  if (rows.length === 0) rows.push(["total", step.energy]);
  if (inference !== null) rows.push(["inference alone", inference.energy]);
  const legend = h("div", { class: "legend" });
  for (const component of kComponents) {
    if (component === "leakage" && step.energy.leakage === 0) continue; // most files give none
    const swatch = h("span", { class: "swatch", style: `background: var(${component_variable(component)})` });
    const share = step.energy_pj > 0 ? step.energy[component] / step.energy_pj : 0;
    legend.append(h("span", { class: "legend-item" }, swatch, `${label(component)} `, h("b", {}, percent(share))));
  }
  const types = by_type(step);
  const parts: Node[] = [legend, bars(rows, "Energy by phase and component")];
  if (types.length > 0)
    parts.push(h("h3", {}, "By operator type"), bars(types, "Energy by operator type and component"));
  return h("div", {}, ...parts);
}

/// The operator types that take most energy, and the others together.
function by_type(step: Step): [string, ByComponent][] {
  const all = new Map<string, ByComponent>();
  for (const layer of step.layers) {
    const held = all.get(layer.op_type);
    all.set(layer.op_type, held === undefined ? { ...layer.energy } : add(held, layer.energy));
  }
  const sorted = [...all].sort((a, b) => sum(b[1]) - sum(a[1]) || (a[0] < b[0] ? -1 : 1));
  const rest = sorted.slice(kMostTypes);
  if (rest.length < 2) return sorted;
  return [...sorted.slice(0, kMostTypes), [`${rest.length} other types`, rest.map(([, parts]) => parts).reduce(add)]];
}

function add(a: ByComponent, b: ByComponent): ByComponent {
  return Object.fromEntries(kComponents.map((component) => [component, a[component] + b[component]])) as ByComponent;
}

function sum(parts: ByComponent): number {
  return kComponents.reduce((total, component) => total + parts[component], 0);
}

function bars(rows: [string, ByComponent][], title: string): SVGElement {
  const most = rows.reduce((value, [, parts]) => Math.max(value, sum(parts)), 0) || 1;
  const bottom = rows.length * kRow + 6;
  const x = (pj: number) => kLeft + (pj / most) * (kWidth - kLeft - kEnd);
  const chart = svg("svg", {
    viewBox: `0 0 ${kWidth} ${bottom + 38}`,
    class: "energy-chart",
    role: "img",
    "aria-label": title,
  });
  for (const tick of ticks(0, most, 5)) {
    chart.append(svg("line", { x1: x(tick), x2: x(tick), y1: 0, y2: bottom + 4, class: "grid" }));
    chart.append(
      svg(
        "text",
        { x: x(tick), y: bottom + 18, class: "tick", "text-anchor": "middle" },
        tick === 0 ? "0" : energy(tick),
      ),
    );
  }
  chart.append(
    svg("text", { x: (kLeft + kWidth - kEnd) / 2, y: bottom + 36, class: "tick", "text-anchor": "middle" }, "energy"),
  );
  rows.forEach(([name, parts], i) => {
    const y = 4 + i * kRow;
    chart.append(svg("text", { x: kLeft - 8, y: y + 14, class: "row-label", "text-anchor": "end" }, shown(name, 20)));
    let from = 0;
    for (const component of kComponents) {
      const part = parts[component];
      if (!(part > 0)) continue;
      const tip = svg("title", {}, `${shown(name, 60)}, ${label(component)}: ${energy(part)}`);
      const style = `fill: var(${component_variable(component)})`;
      chart.append(
        svg(
          "rect",
          { x: x(from), y, width: x(from + part) - x(from), height: kRow - 8, style, class: "energy-part" },
          tip,
        ),
      );
      from += part;
    }
    chart.append(svg("text", { x: x(from) + 6, y: y + 14, class: "row-value" }, energy(from)));
  });
  return chart;
}
