// Memory over time, stacked by owner or by tensor, on the Gantt chart's time axis.
import type { Step } from "./data";
import { kOwners } from "./figures";
import { h, shown } from "./dom";
import { byte_ticks, bytes, exact, label } from "./format";
import { kAxis, kFont, Surface, type Frame } from "./surface";
import { colour, owner_variable } from "./theme";
import type { TimeView } from "./time_view";

const kTop = 22; // px, for the peak's label
const kPlot = 190;

/// One layer of the stack.
interface Series {
  name: string;
  variable: string; // of report.css
  bytes: number[]; // per cycle of the stack
  at_peak: number;
}

/// What is shown: bytes that hold from each cycle to the next.
export interface MemoryStack {
  chart: string; // for tests
  title: string;
  unit: string; // beside the axis
  cycles: number[];
  series: Series[]; // bottom up
  peak_cycle: number;
  peak_bytes: number;
}

/// Every live tensor once, wherever its copies are.
export function live_memory(step: Step): MemoryStack {
  return {
    chart: "memory",
    title: "Memory over time by owner",
    unit: "live memory",
    cycles: step.steps.cycles,
    series: kOwners.map((owner) => ({
      name: label(owner),
      variable: owner_variable(owner),
      bytes: step.steps.bytes[owner],
      at_peak: step.memory[owner],
    })),
    peak_cycle: step.peak_cycle,
    peak_bytes: step.peak_memory_bytes,
  };
}

const kTensorColours = 12;

/// What the cores' memories hold, copies included; null where the result does not say.
export function onchip_memory(step: Step): MemoryStack | null {
  const { cycles, rest } = step.onchip;
  if (cycles.length === 0) return null;
  const tensors = step.onchip.tensors.slice(0, kTensorColours);
  const total = rest.map((bytes, i) => tensors.reduce((sum, tensor) => sum + tensor.bytes[i]!, bytes));
  const peak = total.reduce((best, value, i) => (value > total[best]! ? i : best), 0);
  const series = tensors.map(({ tensor, bytes }, i) => ({
    name: shown(step.tensors[tensor] ?? `tensor ${tensor}`, 40),
    variable: `--tensor-${i}`,
    bytes,
    at_peak: bytes[peak]!,
  }));
  const others = { name: "the rest", variable: "--phase-other", bytes: rest, at_peak: rest[peak]! };
  return {
    chart: "onchip",
    title: "Memory on the chip over time by tensor",
    unit: "on the chip",
    cycles,
    series: [others, ...series],
    peak_cycle: cycles[peak]!,
    peak_bytes: total[peak]!,
  };
}

export class MemoryChart {
  readonly element: HTMLElement;
  private readonly surface: Surface;
  private readonly values: HTMLElement[] = []; // per series
  private readonly sum = h("b");
  private readonly cycle = h("span", { class: "muted" });
  private readonly total: number[];
  private readonly highest: number;

  constructor(
    private readonly stack: MemoryStack,
    private readonly latency: number,
    private readonly view: TimeView,
    private readonly compare: { name: string; bytes: number } | null,
    signal: AbortSignal,
  ) {
    this.total = stack.cycles.map((_, i) => stack.series.reduce((sum, series) => sum + series.bytes[i]!, 0));
    this.highest = this.total.reduce((most, value) => Math.max(most, value), stack.peak_bytes);
    this.surface = new Surface(
      view,
      () => kTop + kPlot + kAxis,
      (frame) => this.paint(frame),
      stack.title,
      signal,
    );
    this.surface.canvas.dataset["chart"] = stack.chart;
    this.surface.gestures(
      () => undefined,
      () => undefined,
    );
    view.subscribe(() => this.show_values());
    this.element = h("div", { class: "plot-box" }, this.make_legend(), this.surface.canvas);
    this.show_values();
  }

  private make_legend(): HTMLElement {
    const legend = h("div", { class: "legend" });
    for (const series of this.stack.series) {
      const value = h("b");
      this.values.push(value);
      const swatch = h("span", { class: "swatch", style: `background: var(${series.variable})` });
      legend.prepend(h("span", { class: "legend-item" }, swatch, series.name + " ", value));
    }
    legend.append(
      h("span", { class: "legend-item" }, "total ", this.sum),
      h("span", { class: "legend-item" }, this.cycle),
    );
    return legend;
  }

  /// The values at the cursor, or at the peak while there is none.
  private show_values(): void {
    const { cycles, series } = this.stack;
    const cursor = this.view.cursor;
    const at_peak = cursor === null || cycles.length === 0;
    const i = at_peak ? -1 : step_at(cycles, cursor);
    let total = 0;
    series.forEach((held, which) => {
      const value = at_peak ? held.at_peak : i < 0 ? 0 : held.bytes[i]!;
      total += value;
      this.values[which]!.textContent = bytes(value);
    });
    this.sum.textContent = bytes(total);
    this.cycle.textContent = at_peak
      ? `at the peak, cycle ${exact(this.stack.peak_cycle)}`
      : `at cycle ${exact(Math.round(cursor))}`;
  }

  private paint(frame: Frame): void {
    const { context, left, right } = frame;
    const bottom = kTop + kPlot;
    const most = Math.max(this.highest, 1) * 1.04;
    const y = (value: number) => bottom - (value / most) * kPlot;
    this.surface.time_axis(frame, kTop, bottom);
    this.paint_axis(frame, most, y);
    context.save();
    context.beginPath();
    context.rect(left, 0, right - left, bottom + 1);
    context.clip();
    const columns = this.highest_by_column(frame);
    this.paint_stack(frame, columns, y);
    this.paint_markers(frame, y, bottom);
    context.restore();
    if (this.total.length === 0) {
      context.fillStyle = frame.theme.muted;
      context.font = `13px ${kFont}`;
      context.textAlign = "center";
      context.fillText("The result has no memory contents over time", (left + right) / 2, kTop + kPlot / 2);
    }
    this.surface.overlay(frame, kTop, bottom);
    this.surface.canvas.dataset["steps"] = String(this.total.length);
  }

  private paint_axis(frame: Frame, most: number, y: (value: number) => number): void {
    const { context, theme } = frame;
    context.font = `11px ${kFont}`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const tick of byte_ticks(most, 6)) {
      context.fillStyle = theme.line;
      context.fillRect(frame.left - 4, Math.round(y(tick)), frame.right - frame.left + 4, 1);
      context.fillStyle = theme.muted;
      context.fillText(bytes(tick), frame.left - 10, y(tick));
    }
    context.textAlign = "left";
    context.fillText(this.stack.unit, 4, kTop / 2);
  }

  /// For every pixel column the step that holds most within it (-1: none), so that short peaks stay visible.
  private highest_by_column(frame: Frame): Int32Array {
    const { cycles } = this.stack;
    const columns = new Int32Array(Math.ceil(frame.right - frame.left) + 1).fill(-1);
    for (let i = Math.max(step_at(cycles, this.view.start), 0); i < cycles.length; ++i) {
      if (cycles[i]! > this.view.end) break;
      const until = i + 1 < cycles.length ? cycles[i + 1]! : Math.max(this.latency, cycles[i]!);
      const from = Math.max(Math.floor(frame.x(cycles[i]!) - frame.left), 0);
      const to = Math.min(Math.max(Math.ceil(frame.x(until) - frame.left), from + 1), columns.length);
      for (let column = from; column < to; ++column) {
        const held = columns[column]!;
        if (held < 0 || this.total[i]! > this.total[held]!) columns[column] = i;
      }
    }
    return columns;
  }

  private paint_stack(frame: Frame, columns: Int32Array, y: (value: number) => number): void {
    const { context } = frame;
    const base = new Float64Array(columns.length);
    for (const series of this.stack.series) {
      const held = series.bytes;
      context.fillStyle = colour(series.variable);
      context.beginPath();
      for (let from = 0; from < columns.length; ) {
        const step = columns[from]!;
        let to = from + 1;
        while (to < columns.length && columns[to] === step) ++to;
        const value = step < 0 ? 0 : held[step]!;
        if (value > 0) {
          const top = y(base[from]! + value);
          context.rect(frame.left + from, top, to - from, y(base[from]!) - top);
          for (let column = from; column < to; ++column) base[column]! += value;
        }
        from = to;
      }
      context.fill();
    }
  }

  private paint_markers(frame: Frame, y: (value: number) => number, bottom: number): void {
    const { context, theme } = frame;
    context.lineWidth = 1;
    context.setLineDash([4, 3]);
    context.font = `600 12px ${kFont}`;
    context.textBaseline = "bottom";
    if (this.compare !== null && this.compare.bytes <= this.highest) {
      const at = Math.round(y(this.compare.bytes)) + 0.5;
      context.strokeStyle = theme.text;
      line(context, frame.left, at, frame.right, at);
      context.textAlign = "right";
      haloed(frame, `${this.compare.name} peaks at ${bytes(this.compare.bytes)}`, frame.right - 8, at - 4);
    }
    const x = frame.x(this.stack.peak_cycle);
    if (this.stack.cycles.length > 0 && x >= frame.left && x <= frame.right) {
      const top = y(this.stack.peak_bytes);
      context.strokeStyle = theme.text;
      line(context, x, top - 4, x, bottom);
      const text = `peak ${bytes(this.stack.peak_bytes)}`;
      const is_late = x > (frame.left + frame.right) / 2;
      context.textAlign = is_late ? "right" : "left";
      haloed(frame, text, is_late ? x - 6 : x + 6, Math.max(top - 2, 14));
    }
    context.setLineDash([]);
  }
}

function line(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

/// Text that stays legible over any colour.
function haloed(frame: Frame, text: string, x: number, y: number): void {
  const { context } = frame;
  context.save();
  context.setLineDash([]);
  context.strokeStyle = frame.theme.panel;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeText(text, x, y);
  context.fillStyle = frame.theme.text;
  context.fillText(text, x, y);
  context.restore();
}

/// The last step at or before `cycle`; -1 before the first.
function step_at(cycles: number[], cycle: number): number {
  let low = 0;
  let high = cycles.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cycles[middle]! <= cycle) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
