// All layers: sorts by any column, filters by text and phase, and makes only the rows that are in sight.
import { kCauses, kLimits, type Layer, type Step } from "./data";
import { h, shown } from "./dom";
import { bytes, energy, exact, label, percent, si } from "./format";
import { on_theme_change, phase_variable } from "./theme";
import type { TimeView } from "./time_view";

const kRow = 28; // px, as in report.css
const kSpare = 12; // rows made above and below the visible ones
const kPrinted = 200; // rows made for paper

interface Column {
  key: string;
  title: string;
  is_number: boolean;
  value: (layer: Layer) => number | string;
  show: (layer: Layer) => string;
}

const kColumns: Column[] = [
  { key: "index", title: "#", is_number: true, value: (l) => l.index, show: (l) => String(l.index) },
  { key: "name", title: "Layer", is_number: false, value: (l) => l.name, show: (l) => shown(l.name) },
  { key: "op_type", title: "Type", is_number: false, value: (l) => l.op_type, show: (l) => shown(l.op_type, 60) },
  { key: "phase", title: "Phase", is_number: false, value: (l) => l.phase, show: (l) => shown(label(l.phase), 40) },
  {
    key: "start_cycle",
    title: "Start (cycle)",
    is_number: true,
    value: (l) => l.start_cycle,
    show: (l) => exact(l.start_cycle),
  },
  {
    key: "critical_path_cycles",
    title: "Critical path (cycles)",
    is_number: true,
    value: (l) => l.critical_path_cycles,
    show: (l) => exact(l.critical_path_cycles),
  },
  {
    key: "span_cycles",
    title: "Span (cycles)",
    is_number: true,
    value: (l) => l.span_cycles,
    show: (l) => exact(l.span_cycles),
  },
  {
    key: "waits_for",
    title: "Waits most for",
    is_number: false,
    value: (l) => waits_for(l),
    show: (l) => waits_for(l),
  },
  {
    key: "utilisation",
    title: "Utilisation",
    is_number: true,
    value: (l) => l.utilisation,
    show: (l) => (l.busy_cycles === 0 ? "\u2013" : percent(l.utilisation)),
  },
  {
    key: "macs",
    title: "MACs",
    is_number: true,
    value: (l) => l.macs,
    show: (l) => (l.macs === 0 ? "\u2013" : si(l.macs)),
  },
  { key: "energy_pj", title: "Energy", is_number: true, value: (l) => l.energy_pj, show: (l) => energy(l.energy_pj) },
  {
    key: "offchip_bytes",
    title: "Off-chip",
    is_number: true,
    value: (l) => l.offchip_bytes,
    show: (l) => (l.offchip_bytes === 0 ? "\u2013" : bytes(l.offchip_bytes)),
  },
  { key: "cores", title: "Cores", is_number: true, value: (l) => l.cores.length, show: (l) => core_list(l.cores) },
];

/// The names with cycles and their shares, the largest first.
function shares<Name extends string>(cycles: Record<Name, number>, names: readonly Name[]): string[] {
  const sum = names.reduce((total, name) => total + cycles[name], 0);
  const present = names.filter((name) => cycles[name] > 0).sort((a, b) => cycles[b] - cycles[a]);
  return present.map((name) => `${label(name)} ${percent(cycles[name] / sum)}`);
}

/// What most of the layer's cycles on the critical path wait for.
function waits_for(layer: Layer): string {
  return shares(layer.limits, kLimits)[0] ?? "\u2013";
}

/// What the table is sorted by at first, the most first: the layers that cost the time.
const kFirstColumn = kColumns.find((column) => column.key === "critical_path_cycles")!;

/// Columns with a bar for the share of the largest.
type Barred = "critical_path_cycles" | "energy_pj";

/// 0, 1, 2, 5 -> "0-2, 5".
function core_list(cores: number[]): string {
  const sorted = [...new Set(cores)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === sorted[j]! + 1) ++j;
    parts.push(i === j ? String(sorted[i]) : `${sorted[i]}\u2013${sorted[j]}`);
    i = j + 1;
  }
  return parts.join(", ");
}

export class LayerTable {
  readonly element: HTMLElement;
  filter_text = "";
  private readonly hidden_phases = new Set<string>();
  private sort: { column: Column; descending: boolean } = { column: kFirstColumn, descending: true };
  private rows: Layer[] = [];
  private readonly most: Record<Barred, number>;
  private readonly body = h("tbody");
  private readonly scroll = h("div", { class: "layers-scroll" });
  private readonly heads = new Map<string, HTMLElement>();
  private readonly summary = h("span", { class: "muted", id: "layer-count", role: "status" });
  private readonly detail = h("div", { class: "layer-detail", id: "layer-detail" });
  private is_printing = false;
  private seen: number | null = null;

  constructor(
    private readonly step: Step,
    private readonly view: TimeView,
    filter_text: string,
    signal: AbortSignal,
  ) {
    this.filter_text = filter_text;
    const largest = (key: Barred) => step.layers.reduce((m, l) => Math.max(m, l[key]), 0) || 1;
    this.most = { critical_path_cycles: largest("critical_path_cycles"), energy_pj: largest("energy_pj") };
    const table = h(
      "table",
      { class: "layers", id: "layers", "aria-rowcount": step.layers.length + 1 },
      this.make_head(),
      this.body,
    );
    this.scroll.append(table);
    this.scroll.addEventListener("scroll", () => this.render());
    this.body.addEventListener("click", (event) => this.pick(event, false));
    this.body.addEventListener("dblclick", (event) => this.pick(event, true));
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    this.element = h("div", {}, this.make_controls(), this.detail, this.scroll);
    view.subscribe(() => this.follow());
    on_theme_change(() => {
      this.is_printing = document.documentElement.hasAttribute("data-print");
      this.render();
    }, signal);
    const sizes = new ResizeObserver(() => this.render());
    sizes.observe(this.scroll);
    signal.addEventListener("abort", () => sizes.disconnect());
    this.update();
    this.show_detail();
  }

  private make_head(): HTMLElement {
    const row = h("tr");
    for (const column of kColumns) {
      const button = h(
        "button",
        { type: "button", "data-sort": column.key },
        column.title,
        h("span", { class: "arrow" }),
      );
      button.addEventListener("click", () => {
        const again = this.sort.column === column;
        this.sort = {
          column,
          descending: again
            ? !this.sort.descending
            : column.is_number && column.key !== "index" && column.key !== "start_cycle",
        };
        this.update();
      });
      const head = h("th", { scope: "col", class: `${column.is_number ? "number" : ""} col-${column.key}` }, button);
      this.heads.set(column.key, head);
      row.append(head);
    }
    return h("thead", {}, row);
  }

  private make_controls(): HTMLElement {
    const input = h("input", {
      type: "search",
      id: "layer-filter",
      placeholder: "Filter by name or type",
      "aria-label": "Filter layers by name or type",
    });
    input.value = this.filter_text;
    input.addEventListener("input", () => {
      this.filter_text = input.value;
      this.update();
    });
    const controls = h("div", { class: "controls" }, input);
    for (const phase of [...new Set(this.step.layers.map((layer) => layer.phase))].slice(0, 12)) {
      const box = h("input", { type: "checkbox", checked: true, "data-phase": phase });
      box.addEventListener("change", () => {
        if (box.checked) this.hidden_phases.delete(phase);
        else this.hidden_phases.add(phase);
        this.update();
      });
      const swatch = h("span", { class: "swatch", style: `background: var(${phase_variable(phase)})` });
      controls.append(h("label", { class: "check" }, box, swatch, shown(label(phase), 40) || "no phase"));
    }
    controls.append(this.summary);
    return controls;
  }

  private update(): void {
    const words = this.filter_text
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    this.rows = this.step.layers.filter((layer) => {
      if (this.hidden_phases.has(layer.phase)) return false;
      const text = `${layer.name} ${layer.op_type} ${layer.phase}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const { column, descending } = this.sort;
    const sign = descending ? -1 : 1;
    this.rows.sort((a, b) => {
      const x = column.value(a);
      const y = column.value(b);
      const order =
        typeof x === "number" && typeof y === "number" ? x - y : String(x) < String(y) ? -1 : x === y ? 0 : 1;
      return order === 0 ? a.index - b.index : sign * order;
    });
    for (const [key, head] of this.heads) {
      const direction = key !== column.key ? "none" : descending ? "descending" : "ascending";
      head.setAttribute("aria-sort", direction);
    }
    const total = (of: (layer: Layer) => number) => this.rows.reduce((sum, layer) => sum + of(layer), 0);
    const share = (part: number, whole: number) => (whole > 0 ? ` (${percent(part / whole)})` : "");
    const cycles = total((layer) => layer.critical_path_cycles);
    const used = total((layer) => layer.energy_pj);
    const parts = [
      `${exact(this.rows.length)} of ${exact(this.step.layers.length)} layers`,
      `${exact(cycles)} cycles of the critical path${share(cycles, this.step.latency_cycles)}`,
      `${energy(used)}${share(used, this.step.energy_pj)}`,
      `${si(total((layer) => layer.macs))} MACs`,
    ];
    this.summary.textContent = parts.join(" \u00b7 ");
    this.scroll.scrollTop = 0;
    this.render();
  }

  private render(): void {
    const first = this.is_printing ? 0 : Math.max(0, Math.floor(this.scroll.scrollTop / kRow) - kSpare);
    const count = this.is_printing ? kPrinted : Math.ceil((this.scroll.clientHeight || 400) / kRow) + 2 * kSpare;
    const last = Math.min(this.rows.length, first + count);
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["layer"] : undefined;
    const made: HTMLElement[] = [];
    const space = (rows: number) =>
      h(
        "tr",
        { class: "space", "aria-hidden": "true" },
        h("td", { colspan: kColumns.length, style: `height: ${rows * kRow}px` }),
      );
    if (first > 0) made.push(space(first));
    for (let i = first; i < last; ++i) made.push(this.make_row(this.rows[i]!, i));
    if (last < this.rows.length && !this.is_printing) made.push(space(this.rows.length - last));
    if (this.rows.length === 0)
      made.push(h("tr", {}, h("td", { colspan: kColumns.length, class: "muted" }, "No layer matches.")));
    this.body.replaceChildren(...made);
    if (focused !== undefined) this.row_element(Number(focused))?.focus({ preventScroll: true });
  }

  private make_row(layer: Layer, position: number): HTMLElement {
    const is_selected = this.view.selected === layer.index;
    const reachable = is_selected || (this.view.selected === null && position === 0);
    const row = h("tr", {
      "data-layer": layer.index,
      tabindex: reachable ? 0 : -1,
      "aria-selected": String(is_selected),
      "aria-rowindex": position + 2,
    });
    for (const column of kColumns) {
      const cell = h("td", { class: `${column.is_number ? "number" : ""} col-${column.key}` }, column.show(layer));
      if (column.key === "phase")
        cell.prepend(h("span", { class: "swatch", style: `background: var(${phase_variable(layer.phase)})` }));
      if (column.key === "name") cell.title = shown(layer.name, 400);
      if (column.key === "critical_path_cycles" || column.key === "energy_pj") {
        const share = (layer[column.key] / this.most[column.key]) * 100;
        cell.classList.add("share");
        cell.append(
          h("span", {
            class: "share-bar",
            style: `background: var(${phase_variable(layer.phase)}); width: ${share.toFixed(2)}%`,
          }),
        );
      }
      row.append(cell);
    }
    return row;
  }

  private row_element(layer: number): HTMLElement | null {
    return this.body.querySelector<HTMLElement>(`tr[data-layer="${layer}"]`);
  }

  private pick(event: Event, zoom: boolean): void {
    const row = event.target instanceof Element ? event.target.closest<HTMLElement>("tr[data-layer]") : null;
    if (row === null) return;
    this.choose(Number(row.dataset["layer"]), zoom);
    this.row_element(Number(row.dataset["layer"]))?.focus({ preventScroll: true });
  }

  /// Selects the layer and brings it into the charts' view; `zoom` fills the charts with it.
  private choose(index: number, zoom: boolean): void {
    const layer = this.step.layers[index];
    if (layer === undefined) return;
    this.view.select(index);
    const length = Math.max(layer.end_cycle - layer.start_cycle, 1);
    if (zoom) this.view.show(layer.start_cycle - length * 0.1, layer.end_cycle + length * 0.1);
    else if (layer.end_cycle <= this.view.start || layer.start_cycle >= this.view.end) {
      const middle = (layer.start_cycle + layer.end_cycle) / 2;
      this.view.show(middle - this.view.span / 2, middle + this.view.span / 2);
    }
  }

  private key(event: KeyboardEvent): void {
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 };
    const at = this.rows.findIndex((layer) => layer.index === this.view.selected);
    const by = moves[event.key];
    if (event.key === "Enter" && at >= 0 && !(event.target instanceof HTMLButtonElement)) {
      this.choose(this.rows[at]!.index, true);
    } else if (event.key === "Escape") {
      this.view.select(null);
    } else if (by !== undefined && this.rows.length > 0) {
      const next = Math.max(0, Math.min(this.rows.length - 1, at + by));
      this.choose(this.rows[next]!.index, false);
      this.row_element(this.rows[next]!.index)?.focus({ preventScroll: true });
    } else {
      return;
    }
    event.preventDefault();
  }

  /// Scrolls to a layer that has just been selected, here or in a chart.
  private follow(): void {
    if (this.view.selected === this.seen) return;
    this.seen = this.view.selected;
    const at = this.rows.findIndex((layer) => layer.index === this.seen);
    if (at >= 0) {
      const head = this.scroll.querySelector("thead")?.clientHeight ?? 0;
      const top = at * kRow;
      const room = this.scroll.clientHeight - head - kRow;
      if (top < this.scroll.scrollTop || top > this.scroll.scrollTop + room) this.scroll.scrollTop = top - room / 2;
    }
    this.render();
    this.show_detail();
  }

  private show_detail(): void {
    const layer = this.view.selected === null ? undefined : this.step.layers[this.view.selected];
    if (layer === undefined) {
      this.detail.replaceChildren(
        h(
          "span",
          { class: "muted" },
          "Select a bar or a row to see a layer; Enter or a double click zooms the charts to it.",
        ),
      );
      return;
    }
    const parts = [
      `${shown(layer.op_type, 60)}, ${shown(label(layer.phase), 40)}`,
      layer.dims.length === 0 ? "" : layer.dims.map(([name, size]) => `${shown(name, 20)}=${exact(size)}`).join(" "),
      [`${exact(layer.critical_path_cycles)} cycles of the critical path`, ...shares(layer.limits, kLimits)].join(", "),
      [`${exact(layer.busy_cycles)} busy cycles`, ...shares(layer.causes, kCauses)].join(", "),
      `runs from ${exact(layer.start_cycle)} to ${exact(layer.end_cycle)}`,
      `${exact(layer.macs)} MACs`,
      `${energy(layer.energy_pj)}: compute ${energy(layer.energy.compute)}, on-chip ${energy(layer.energy.onchip_memory)}, links ${energy(layer.energy.links)}, off-chip ${energy(layer.energy.offchip)}`,
    ];
    this.detail.replaceChildren(
      h("b", {}, shown(layer.name)),
      " ",
      parts.filter((part) => part !== "").join(" \u00b7 "),
    );
  }
}
