// The Gantt chart: a row for the critical path, per core, busy link and off-chip port; a bar per piece of the path, tile
// run or transfer, coloured by phase.
import type { Layer, Step } from "./data";
import { h, shown } from "./dom";
import { bytes, energy, exact, label as word, si } from "./format";
import { bar_at, first_after, make_rows, type Row, type RowKind, type Rows } from "./gantt_rows";
import { core_label, kLimits, kTransferKinds } from "./data";
import { kAxis, kFont, kGutter, Surface, type Frame } from "./surface";
import { phase_colour } from "./theme";
import { Tooltip } from "./tooltip";
import type { TimeView } from "./time_view";

const kBand = 20; // px, the phases above the rows
const kGroup: Record<RowKind, string> = { path: "BOUND BY", core: "CORES", link: "LINKS", port: "OFF-CHIP PORTS" };
const kGap = 16; // between cores and links, with the group's name
const kTallest = 760; // px for all rows together, while a row keeps 4 px

export class Gantt {
  readonly element: HTMLElement;
  private readonly surface: Surface;
  private readonly tooltip = new Tooltip();
  private readonly rows: Rows;
  private readonly phases: string[];
  private readonly phase_of_layer: Uint8Array;
  private readonly top: number[] = [];
  private readonly tall: number[] = [];
  private readonly rows_height: number;
  private cover = new Float32Array(0);
  private bars = 0;
  private rectangles = 0;

  constructor(
    private readonly step: Step,
    private readonly view: TimeView,
    private readonly on_pick: (layer: number) => void,
    signal: AbortSignal,
  ) {
    this.rows = make_rows(step);
    this.phases = [...new Set(step.layers.map((layer) => layer.phase))].slice(0, 250);
    this.phases.push("");
    const number_of = new Map(this.phases.map((phase, i) => [phase, i]));
    this.phase_of_layer = Uint8Array.from(step.layers, (layer) => number_of.get(layer.phase) ?? this.phases.length - 1);
    this.rows_height = this.place_rows();
    this.surface = new Surface(
      view,
      () => kBand + this.rows_height + kAxis,
      (frame) => this.paint(frame),
      "Gantt chart: what every core and link does over time. Arrow keys pan, + and - zoom, 0 shows all.",
      signal,
    );
    this.surface.canvas.dataset["chart"] = "gantt";
    this.surface.gestures(
      (x, y) => this.click(x, y),
      (x, y) => this.hover(x, y),
    );
    this.element = h("div", { class: "plot-box" }, this.surface.canvas, this.tooltip.element);
  }

  get hidden_links(): number {
    return this.rows.hidden_links;
  }

  /// Where the row-th row's bar-th bar is drawn, in px of the canvas; for tests.
  locate(row: number, bar: number): { x: number; y: number; layer: number } | null {
    const at = this.rows.rows[row];
    if (at === undefined || bar >= at.count) return null;
    const middle = (Math.max(at.start[bar]!, this.view.start) + Math.min(at.end[bar]!, this.view.end)) / 2;
    const x = kGutter + (middle - this.view.start) / this.surface.cycles_per_pixel();
    return { x, y: this.top[row]! + this.tall[row]! / 2, layer: at.layer[bar]! };
  }

  /// Where the rows are, and what part of the step each is busy; for tests.
  row_boxes(): { kind: string; label: string; top: number; height: number; bars: number; busy: number }[] {
    return this.rows.rows.map((row, i) => {
      const box = { kind: row.kind, label: row.label, top: this.top[i]!, height: this.tall[i]!, bars: row.count };
      let until = 0;
      let busy = 0; // overlapping bars once
      for (let bar = 0; bar < row.count; ++bar) {
        busy += Math.max(0, row.end[bar]! - Math.max(row.start[bar]!, until));
        until = Math.max(until, row.end[bar]!);
      }
      return { ...box, busy: busy / this.view.last };
    });
  }

  private place_rows(): number {
    const { rows } = this.rows;
    const cores = rows.filter((row) => row.kind === "core").length;
    const links = rows.length - cores;
    const wanted = cores * 26 + links * 16;
    const shrink = Math.min(1, kTallest / Math.max(wanted, 1));
    let y = 6;
    rows.forEach((row, i) => {
      if (i === 0 || row.kind !== rows[i - 1]!.kind) y += kGap;
      const tall = Math.max(4, Math.round((row.kind === "core" ? 26 : 16) * shrink));
      this.top.push(kBand + y);
      this.tall.push(tall > 6 ? tall - 2 : tall - 1);
      y += tall;
    });
    return Math.max(y + 8, 60);
  }

  private paint(frame: Frame): void {
    const { context, left, right } = frame;
    const bottom = kBand + this.rows_height;
    this.bars = 0;
    this.rectangles = 0;
    this.paint_labels(frame);
    this.surface.time_axis(frame, kBand, bottom);
    context.save();
    context.beginPath();
    context.rect(left, 0, right - left, bottom);
    context.clip();
    this.paint_phases(frame);
    const colours = this.phases.map(phase_colour);
    this.rows.rows.forEach((row, i) => this.paint_row(frame, row, this.top[i]!, this.tall[i]!, colours));
    context.restore();
    if (this.rows.rows.length === 0 || this.step.runs.length === 0) {
      context.fillStyle = frame.theme.muted;
      context.font = `13px ${kFont}`;
      context.textAlign = "center";
      context.fillText("The result has no timeline", (left + right) / 2, kBand + this.rows_height / 2);
    }
    this.surface.overlay(frame, kBand, bottom);
    const data = this.surface.canvas.dataset;
    data["bars"] = String(this.bars);
    data["rectangles"] = String(this.rectangles);
    data["start"] = String(this.view.start);
    data["end"] = String(this.view.end);
  }

  private paint_labels(frame: Frame): void {
    const { context, theme } = frame;
    context.textBaseline = "middle";
    let label_end = -Infinity; // labels of very thin rows are thinned out
    this.rows.rows.forEach((row, i) => {
      const y = this.top[i]!;
      const height = this.tall[i]!;
      context.fillStyle = theme.lane;
      context.fillRect(frame.left, y, frame.right - frame.left, height);
      if (i === 0 || row.kind !== this.rows.rows[i - 1]!.kind) {
        context.fillStyle = theme.muted;
        context.font = `600 10px ${kFont}`;
        context.textAlign = "left";
        context.fillText(kGroup[row.kind], 4, y - 9);
      }
      const middle = y + height / 2;
      if (middle - 5 < label_end) return;
      label_end = middle + 5;
      context.font = `${row.kind === "core" && height > 14 ? 12 : 10}px ${kFont}`;
      context.textAlign = "right";
      context.fillStyle = theme.muted;
      context.fillText(row.detail, frame.left - 8, middle);
      context.textAlign = "left";
      context.fillStyle = theme.text;
      context.fillText(fit(context, shown(row.label, 60), frame.left - 50), 4, middle);
    });
  }

  private paint_phases(frame: Frame): void {
    const { context, theme } = frame;
    context.font = `600 11px ${kFont}`;
    context.textBaseline = "middle";
    for (const phase of this.step.phases) {
      const x = frame.x(phase.start_cycle);
      const end = frame.x(phase.start_cycle + phase.latency_cycles);
      if (end < frame.left || x > frame.right) continue;
      context.fillStyle = phase_colour(phase.phase);
      context.fillRect(x, 2, Math.max(end - x - 1, 1), kBand - 5);
      context.globalAlpha = 0.05;
      context.fillRect(x, kBand, end - x, this.rows_height);
      context.globalAlpha = 1;
      const shown_left = Math.max(x, frame.left) + 7;
      const name = shown(word(phase.phase), 40);
      if (Math.min(end, frame.right) - shown_left > context.measureText(name).width + 8) {
        context.fillStyle = theme.panel;
        context.textAlign = "left";
        context.fillText(name, shown_left, kBand / 2);
      }
    }
  }

  /// Bars narrower than a pixel are summed by pixel column and phase; a column takes the colour of the phase that
  /// fills most of it, and is the fainter the less of it is filled.
  private paint_row(frame: Frame, row: Row, y: number, height: number, colours: string[]): void {
    const { context, left, right } = frame;
    const columns = Math.ceil(right - left) + 1;
    const phases = this.phases.length;
    const cover = this.cleared_cover(columns * phases);
    const selected = this.view.selected;
    const faded = selected === null ? 1 : 0.28;
    const chosen: [number, number][] = [];
    let merged = false;
    for (let i = first_after(row, this.view.start); i < row.count && row.start[i]! < this.view.end; ++i) {
      if (row.end[i]! <= this.view.start) continue;
      this.bars += 1;
      const x = Math.max(frame.x(row.start[i]!), left - 2);
      const wide = Math.min(frame.x(row.end[i]!), right + 2) - x;
      const layer = row.layer[i]!;
      const phase = this.phase_of_layer[layer] ?? phases - 1;
      if (layer === selected) chosen.push([x, wide]);
      if (wide < 1) {
        const column = Math.max(0, Math.min(columns - 1, Math.floor(x + wide / 2 - left)));
        cover[column * phases + phase]! += Math.max(wide, 0.05);
        merged = true;
        continue;
      }
      context.globalAlpha = layer === selected ? 1 : faded;
      context.fillStyle = colours[phase]!;
      context.fillRect(x, y, wide > 3 ? wide - 0.75 : wide, height);
      this.rectangles += 1;
      const has_text = wide > 46 && height > 12 && (selected === null || layer === selected);
      if (has_text) this.bar_text(frame, x, wide, y, height, layer);
    }
    if (merged) this.paint_columns(frame, y, height, colours, columns, faded);
    context.globalAlpha = 1;
    for (const [x, wide] of chosen) this.outline(frame, x, Math.max(wide, 2), y, height, colours, selected!);
  }

  private cleared_cover(size: number): Float32Array {
    if (this.cover.length < size) this.cover = new Float32Array(size);
    return this.cover.fill(0);
  }

  private paint_columns(
    frame: Frame,
    y: number,
    height: number,
    colours: string[],
    columns: number,
    faded: number,
  ): void {
    const { context } = frame;
    const phases = this.phases.length;
    for (let column = 0; column < columns; ++column) {
      let most = -1;
      let filled = 0;
      for (let phase = 0; phase < phases; ++phase) {
        const part = this.cover[column * phases + phase]!;
        filled += part;
        if (part > 0 && (most < 0 || part > this.cover[column * phases + most]!)) most = phase;
      }
      if (most < 0) continue;
      context.globalAlpha = faded * (0.3 + 0.7 * Math.min(filled, 1));
      context.fillStyle = colours[most]!;
      context.fillRect(frame.left + column, y, 1, height);
      this.rectangles += 1;
    }
  }

  private bar_text(frame: Frame, x: number, wide: number, y: number, height: number, layer: number): void {
    const name = this.step.layers[layer]?.name;
    if (name === undefined) return;
    const from = Math.max(x, frame.left) + 4;
    const { context } = frame;
    context.font = `11px ${kFont}`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = frame.theme.panel;
    const room = Math.min(x + wide, frame.right) - from - 4;
    context.fillText(fit_end(context, shown(name, 300), room), from, y + height / 2 + 0.5);
  }

  private outline(
    frame: Frame,
    x: number,
    wide: number,
    y: number,
    height: number,
    colours: string[],
    layer: number,
  ): void {
    const { context } = frame;
    if (wide <= 4) {
      context.fillStyle = colours[this.phase_of_layer[layer] ?? 0] ?? frame.theme.text;
      context.fillRect(x, y, wide, height);
    }
    context.strokeStyle = frame.theme.text;
    context.lineWidth = 1.5;
    context.strokeRect(x, y - 0.5, wide, height + 1);
  }

  private hit(x: number, y: number): { row: Row; bar: number } | null {
    if (x < kGutter) return null;
    const i = this.rows.rows.findIndex((_, row) => y >= this.top[row]! && y < this.top[row]! + this.tall[row]! + 1);
    const row = this.rows.rows[i];
    if (row === undefined) return null;
    const bar = bar_at(row, this.surface.cycle_at(x), 2 * this.surface.cycles_per_pixel());
    return bar === null ? null : { row, bar };
  }

  private click(x: number, y: number): void {
    const found = this.hit(x, y);
    const layer = found === null ? -1 : found.row.layer[found.bar]!;
    if (layer >= 0) this.on_pick(layer);
    else if (x < kGutter || y > kBand) this.view.select(null);
    else this.show_phase_at(this.surface.cycle_at(x));
  }

  private show_phase_at(cycle: number): void {
    const phase = this.step.phases.find((p) => cycle >= p.start_cycle && cycle < p.start_cycle + p.latency_cycles);
    if (phase !== undefined) this.view.show(phase.start_cycle, phase.start_cycle + phase.latency_cycles);
  }

  private hover(x: number, y: number): void {
    const found = this.hit(x, y);
    this.surface.canvas.style.cursor = found === null ? "crosshair" : "pointer";
    if (found === null) {
      this.tooltip.hide();
      return;
    }
    const { row, bar } = found;
    const layer = this.step.layers[row.layer[bar]!];
    const cycles = row.end[bar]! - row.start[bar]!;
    const when = `${exact(row.start[bar]!)} to ${exact(row.end[bar]!)}`;
    const lines: [string, string][] = [["cycles", `${exact(cycles)} (${when})`]];
    if (row.kind === "core") lines.unshift(["core", row.label]);
    else if (row.kind === "path") lines.unshift(...this.path_lines(row, bar));
    else lines.unshift(...this.transfer_lines(row, bar));
    if (layer !== undefined) lines.push(...layer_lines(layer));
    this.tooltip.show(x, y, layer?.name ?? (row.kind === "path" ? "critical path" : "unknown layer"), layer, lines);
  }

  private core_name(id: number): string {
    const found = this.step.cores.find((at) => at.id === id);
    return found === undefined ? `core ${id}` : core_label(found);
  }

  private path_lines(row: Row, bar: number): [string, string][] {
    const segment = this.step.segments[row.item[bar]!]!;
    const lines: [string, string][] = [["bound by", word(kLimits[segment.limit] ?? "unknown")]];
    const waiting = segment.counted === segment.layer ? undefined : this.step.layers[segment.counted ?? -1];
    if (waiting !== undefined) lines.push(["counts for", waiting.name]);
    if (segment.core !== null) lines.push(["core", this.core_name(segment.core)]);
    const link = this.step.links.find((at) => at.id === segment.link);
    if (link !== undefined) lines.push(["link", link.name]);
    if (segment.tensor !== null) lines.push(["tensor", this.step.tensors[segment.tensor] ?? `tensor ${segment.tensor}`]);
    return lines;
  }

  private transfer_lines(row: Row, bar: number): [string, string][] {
    const transfer = this.step.transfers[row.item[bar]!]!;
    const receivers = [transfer.to, ...transfer.also].map((id) => this.core_name(id)).join(", ");
    return [
      [row.kind, row.label],
      ["transfer", `${kTransferKinds[transfer.kind] ?? "transfer"}, ${bytes(transfer.bits / 8)}`],
      ["route", `${this.core_name(transfer.from)} \u2192 ${receivers}`],
      ["tensor", this.step.tensors[transfer.tensor] ?? `tensor ${transfer.tensor}`],
    ];
  }
}

function layer_lines(layer: Layer): [string, string][] {
  return [
    ["layer on the critical path", `${exact(layer.critical_path_cycles)} cycles`],
    ["layer energy", energy(layer.energy_pj)],
    ["layer MACs", si(layer.macs)],
  ];
}

/// As much of `text` as fits into `width` px.
function fit(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "\u2026").width <= width) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? "" : text.slice(0, low) + "\u2026";
}

/// As `fit`, keeping the end: of a path, the part that tells layers apart.
function fit_end(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (context.measureText("\u2026" + text.slice(middle)).width <= width) high = middle;
    else low = middle + 1;
  }
  return text.length - low < 2 ? "" : "\u2026" + text.slice(low);
}
