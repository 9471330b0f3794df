// What bounds the latency: the critical path by what each piece of it waits for, and the bounds of any schedule.
import { kLimits, type Step } from "./data";
import { h, shown } from "./dom";
import { exact, label, percent, si } from "./format";
import { limit_variable } from "./theme";

/// Null where the result says neither.
export function bound_panel(step: Step): HTMLElement | null {
  const sum = kLimits.reduce((total, limit) => total + step.limits[limit], 0);
  if (sum === 0 && step.bounds.length === 0) return null;
  const parts: HTMLElement[] = [];
  if (sum > 0) parts.push(...path(step, sum));
  if (step.bounds.length > 0) parts.push(h("h3", {}, "No schedule of these tiles is shorter than"), bounds(step));
  return h("section", { class: "panel", id: "bounds" }, h("h2", {}, "What bounds the latency"), ...parts);
}

function path(step: Step, sum: number): HTMLElement[] {
  const legend = h("div", { class: "legend" });
  const bar = h("div", { class: "stack" });
  for (const limit of kLimits.filter((name) => step.limits[name] > 0)) {
    const cycles = step.limits[limit];
    const style = `background: var(${limit_variable(limit)})`;
    const title = `${exact(cycles)} cycles of the critical path`;
    const swatch = h("span", { class: "swatch", style });
    const share = h("b", {}, percent(cycles / sum));
    legend.append(h("span", { class: "legend-item", title }, swatch, `${label(limit)} `, share));
    bar.append(h("span", { style: `width: ${((cycles / sum) * 100).toFixed(2)}%; ${style}`, title }));
  }
  return [legend, bar];
}

function bounds(step: Step): HTMLElement {
  const most = step.bounds.reduce((best, [, cycles]) => Math.max(best, cycles), 0);
  const rows = step.bounds.map(([name, cycles]) =>
    h(
      "tr",
      { class: cycles === most ? "largest" : "" },
      h("th", { scope: "row" }, shown(name, 80)),
      h("td", { class: "number", title: `${exact(cycles)} cycles` }, `${si(cycles)} cycles`),
      h(
        "td",
        { class: "number" },
        step.latency_cycles > 0 ? `${percent(cycles / step.latency_cycles)} of the latency` : "",
      ),
    ),
  );
  return h("div", { class: "scroll-x" }, h("table", { class: "figures" }, h("tbody", {}, ...rows)));
}
