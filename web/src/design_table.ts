// Designs as rows: their parameters and what they come to in each run, sorted by any column.
import { h, shown } from "./dom";
import type { Axis, Exploration } from "./explore_data";
import { exact } from "./format";

const kMostRows = 400;

/// The number of a design; a link where its full report was written.
export function design_name(found: Exploration, row: number): Node {
  const id = found.ids[row]!;
  if (!found.reports.has(id)) return document.createTextNode(id);
  return h("a", { href: `designs/${id}/report.html`, title: "Full report of this design" }, id);
}

export function design_parameters(found: Exploration, row: number): string {
  return found.parameters.map((parameter, p) => `${parameter.name} ${parameter.values[found.choices[p]![row]!] ?? ""}`).join(", ");
}

export class DesignTable {
  readonly element = h("div");
  private rows: number[] = [];
  private sort: { axis: Axis | null; descending: boolean } = { axis: null, descending: false };
  private readonly body = h("tbody");
  private readonly note = h("p", { class: "muted note", role: "status" });
  private readonly heads: { axis: Axis; cell: HTMLElement }[] = [];

  constructor(private readonly found: Exploration) {
    const head = h("tr", {}, h("th", { scope: "col" }, "Design"));
    for (const axis of found.axes) {
      const button = h("button", { type: "button", class: "head" }, shown(axis.title, 40), h("span", { class: "arrow" }));
      button.addEventListener("click", () => this.sort_by(axis));
      const cell = h("th", { scope: "col", class: "number" }, button);
      head.append(cell);
      this.heads.push({ axis, cell });
    }
    const table = h("table", { class: "figures designs" }, h("thead", {}, head), this.body);
    this.element.append(h("div", { class: "scroll-x scroll-y" }, table), this.note);
  }

  /// In this order until a column is chosen.
  show(rows: number[]): void {
    this.rows = rows;
    this.fill();
  }

  private sort_by(axis: Axis): void {
    this.sort = { axis, descending: this.sort.axis === axis && !this.sort.descending };
    for (const head of this.heads) {
      if (head.axis !== axis) head.cell.removeAttribute("aria-sort");
      else head.cell.setAttribute("aria-sort", this.sort.descending ? "descending" : "ascending");
    }
    this.fill();
  }

  private fill(): void {
    const { axis, descending } = this.sort;
    const rows = [...this.rows];
    if (axis !== null) rows.sort((a, b) => (descending ? -1 : 1) * (axis.values[a]! - axis.values[b]!) || a - b);
    const made = rows.slice(0, kMostRows).map((row) =>
      h(
        "tr",
        { "data-design": this.found.ids[row]! },
        h("th", { scope: "row" }, design_name(this.found, row)),
        ...this.found.axes.map((column) => {
          const value = column.values[row]!;
          const title = column.parameter >= 0 || Number.isNaN(value) ? "" : exact(value);
          return h("td", { class: "number", title }, Number.isNaN(value) ? "\u2013" : shown(column.show(value), 40));
        }),
      ),
    );
    this.body.replaceChildren(...made);
    this.note.textContent = rows.length > kMostRows ? `The first ${kMostRows} of ${rows.length} are listed.` : "";
  }
}
