// Tables, legends and bars that several pages are made of.
import { object, text } from "./json";
import { h, shown, svg, type Child } from "./dom";

/// A part of a whole in a bar, and its colour, a variable of report.css.
export interface Part {
  key: string; // in the data
  name: string;
  variable: string;
}

/// A table with a name in the first column. Text in the other cells stands to the right; elements stand as they are.
export function table(head: string[], rows: Child[][], kind = ""): HTMLElement {
  const heads = head.map((name, i) => h("th", { scope: "col", class: i > 0 ? "number" : "" }, name));
  const cell = (content: Child) => h("td", { class: typeof content === "string" ? "number" : "" }, content);
  const body = rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name ?? ""), ...cells.map(cell)));
  const top = head.length > 0 ? h("thead", {}, h("tr", {}, ...heads)) : null;
  return h("div", { class: "scroll-x" }, h("table", { class: `figures ${kind}` }, top, h("tbody", {}, ...body)));
}

export function legend(parts: { name: string; variable: string }[]): HTMLElement {
  const items = parts.map(({ name, variable }) =>
    h("span", { class: "legend-item" }, h("span", { class: "swatch", style: `background: var(${variable})` }), name),
  );
  return h("div", { class: "legend" }, ...items);
}

export function panel(title: string, ...children: Child[]): HTMLElement {
  return h("section", { class: "panel" }, h("h2", {}, title), ...children);
}

/// What was ignored or assumed of the input, with its place; null if there is nothing.
export function warning_panel(warnings: unknown[]): HTMLElement | null {
  if (warnings.length === 0) return null;
  const items = warnings.map(object).map((warning) => {
    const words = [text(warning["where"]), text(warning["message"])].filter((part) => part !== "").join(": ");
    const hint = text(warning["hint"]);
    return h("li", {}, shown(hint === "" ? words : `${words} (${hint})`, 500));
  });
  return h("section", { class: "panel", id: "warnings", role: "status" }, h("h2", {}, "Warnings"), h("ul", {}, ...items));
}

export function rectangle(box: { x: number; y: number; width: number; height: number }, variable: string, title: string, opacity = 1): SVGElement {
  const { x, y, width, height } = box;
  const style = `fill: var(${variable})` + (opacity < 1 ? `; opacity: ${opacity.toFixed(2)}` : "");
  return svg("rect", { x: x.toFixed(2), y, width: Math.max(width, 0).toFixed(2), height, style }, svg("title", {}, title));
}

export function drawing(width: number, height: number, label: string): SVGElement {
  return svg("svg", { width, height, class: "drawing", role: "img", "aria-label": label });
}

export interface Bar {
  name: string;
  values: number[]; // one for each part
  text: string; // behind the bar
}

const kRow = 20; // px

/// One bar for each row, of parts that lie end to end; a bar of `max` fills the width. `mark` is a line across all.
export function stacked_bars(
  parts: Part[],
  rows: Bar[],
  options: { label: string; max: number; left: number; width: number; show: (value: number) => string; mark?: { value: number; title: string } },
): HTMLElement {
  const { left, width, show, mark } = options;
  const scale = width / Math.max(options.max, 1);
  const height = rows.length * kRow + 4;
  const picture = drawing(left + width + 110, height, options.label);
  rows.forEach((row, i) => {
    const y = 2 + i * kRow;
    let x = left;
    picture.append(svg("text", { x: 0, y: y + 13 }, row.name));
    parts.forEach((part, k) => {
      const value = row.values[k] ?? 0;
      const box = { x, y, width: value * scale, height: kRow - 4 };
      if (value > 0) picture.append(rectangle(box, part.variable, `${part.name} ${show(value)}`));
      x += value * scale;
    });
    picture.append(svg("text", { x: (x + 6).toFixed(1), y: y + 13 }, row.text));
  });
  if (mark !== undefined) {
    const x = (left + mark.value * scale).toFixed(1);
    picture.append(svg("line", { x1: x, x2: x, y1: 0, y2: height, class: "limit" }, svg("title", {}, mark.title)));
  }
  return h("div", { class: "scroll-x" }, picture);
}
