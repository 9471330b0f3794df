// Parallel coordinates: an axis per parameter and objective, brushed by dragging along it or from the keyboard. Between
// two axes a line stands for all designs that pass there, fainter the fewer they are: so the number of lines depends on
// the axes, not on the designs.
import { h, shown } from "./dom";
import { position, type Axis, type Exploration } from "./explore_data";
import { PlotCanvas, type Drawing } from "./plot_canvas";
import type { Range, Selection } from "./selection";
import { kFont } from "./surface";
import { colour } from "./theme";

const kHeight = 400;
const kTop = 46;
const kBottom = 24;
const kSide = 62;
const kBins = 40; // of an axis of numbers
const kLevels = 6; // of opacity
const kGrab = 24; // px beside an axis

interface Bundle {
  first: number;
  second: number;
  designs: number;
}

export class ParallelCoordinates {
  readonly element: HTMLElement;
  private readonly plot: PlotCanvas;
  private readonly bins: Uint8Array[]; // per axis and row
  private readonly places: number[][]; // per axis and bin, 0 to 1
  private readonly everything: Bundle[][]; // between neighbours
  private focus = 0; // axis of the keyboard
  private drag: { axis: number; from: number } | null = null;
  private width = 0;

  constructor(
    private readonly found: Exploration,
    private readonly selection: Selection,
    signal: AbortSignal,
  ) {
    const { axes } = found;
    const made = axes.map(bins_of);
    this.bins = made.map((axis) => axis.bins);
    this.places = made.map((axis) => axis.places);
    this.everything = this.bundles(null);
    const label = "Designs by parameters and objectives. Left and right choose an axis, up and down move its brush, with shift they resize it, Escape clears it.";
    this.plot = new PlotCanvas(label, kHeight, (drawing) => this.paint(drawing), signal);
    const { canvas } = this.plot;
    canvas.dataset["chart"] = "parallel";
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const kind of ["focus", "blur"]) canvas.addEventListener(kind, () => this.plot.redraw());
    selection.subscribe(() => this.plot.redraw());
    canvas.style.minWidth = `${axes.length * 68}px`;
    this.element = h("div", { class: "scroll-x" }, canvas);
  }

  /// px of an axis and of a position on it; for the browser test, too.
  x(axis: number): number {
    const gaps = Math.max(this.found.axes.length - 1, 1);
    return kSide + (axis / gaps) * (this.width - 2 * kSide);
  }

  y(at: number): number {
    return kHeight - kBottom - at * (kHeight - kTop - kBottom);
  }

  private axis_at(px: number): number {
    const gaps = Math.max(this.found.axes.length - 1, 1);
    const axis = Math.round(((px - kSide) / Math.max(this.width - 2 * kSide, 1)) * gaps);
    const held = Math.min(Math.max(axis, 0), this.found.axes.length - 1);
    return Math.abs(this.x(held) - px) <= kGrab ? held : -1;
  }

  private place_at(py: number): number {
    return Math.min(Math.max((kHeight - kBottom - py) / (kHeight - kTop - kBottom), 0), 1);
  }

  private press(event: PointerEvent): void {
    const axis = this.axis_at(event.offsetX);
    if (axis < 0 || event.button !== 0) return;
    this.plot.canvas.setPointerCapture(event.pointerId);
    this.drag = { axis, from: event.offsetY };
    this.focus = axis;
  }

  private move(event: PointerEvent): void {
    this.plot.canvas.style.cursor = this.axis_at(event.offsetX) >= 0 ? "ns-resize" : "";
    if (this.drag === null || Math.abs(event.offsetY - this.drag.from) < 3) return;
    const ends = [this.place_at(this.drag.from), this.place_at(event.offsetY)].sort((a, b) => a - b) as Range;
    this.selection.set(this.found.axes[this.drag.axis]!, ends);
  }

  /// A click without a drag clears the axis.
  private release(event: PointerEvent): void {
    if (this.drag !== null && Math.abs(event.offsetY - this.drag.from) < 3)
      this.selection.set(this.found.axes[this.drag.axis]!, null);
    this.drag = null;
    this.plot.redraw();
  }

  private key(event: KeyboardEvent): void {
    const last = this.found.axes.length - 1;
    const axis = this.found.axes[this.focus];
    if (axis === undefined) return;
    const step = 1 / Math.max(this.places[this.focus]!.length - 1, 1);
    const up = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : 0;
    if (event.key === "ArrowRight") this.focus = Math.min(this.focus + 1, last);
    else if (event.key === "ArrowLeft") this.focus = Math.max(this.focus - 1, 0);
    else if (event.key === "Escape" || event.key === "Delete") this.selection.set(axis, null);
    else if (up !== 0) this.selection.set(axis, moved(this.selection.brush(axis), up, step, event.shiftKey));
    else return;
    event.preventDefault();
    this.plot.redraw();
  }

  /// How many designs pass from each bin of an axis to each of the next.
  private bundles(inside: Uint8Array | null): Bundle[][] {
    const { reason } = this.found;
    return this.bins.slice(1).map((second, a) => {
      const first = this.bins[a]!;
      const width = this.places[a + 1]!.length;
      const counts = new Uint32Array(this.places[a]!.length * width);
      for (let i = 0; i < reason.length; ++i)
        if (inside === null ? reason[i]! < 0 : inside[i] === 1) counts[first[i]! * width + second[i]!]! += 1;
      const found: Bundle[] = [];
      counts.forEach((designs, k) => designs > 0 && found.push({ first: Math.floor(k / width), second: k % width, designs }));
      return found;
    });
  }

  private paint(drawing: Drawing): void {
    this.width = drawing.width;
    const all = this.selection.is_all;
    if (!all) this.lines(drawing, this.everything, "--line", 1);
    this.lines(drawing, all ? this.everything : this.bundles(this.selection.inside), "--accent", kLevels);
    this.axes(drawing);
  }

  private lines({ context }: Drawing, gaps: Bundle[][], variable: string, levels: number): void {
    context.strokeStyle = colour(variable);
    context.lineWidth = 1;
    gaps.forEach((bundles, gap) => {
      const most = bundles.reduce((a, bundle) => Math.max(a, bundle.designs), 1);
      for (let level = 0; level < levels; ++level) {
        context.globalAlpha = levels === 1 ? 0.7 : 0.12 + (0.88 * level) / (levels - 1);
        context.beginPath();
        for (const bundle of bundles) {
          // Levels by logarithm: a single design must be seen beside thousands.
          const own = Math.floor((Math.log1p(bundle.designs) / Math.log1p(most)) * (levels - 1e-9));
          if (Math.min(own, levels - 1) !== level) continue;
          context.moveTo(this.x(gap), this.y(this.places[gap]![bundle.first]!));
          context.lineTo(this.x(gap + 1), this.y(this.places[gap + 1]![bundle.second]!));
        }
        context.stroke();
      }
    });
    context.globalAlpha = 1;
  }

  private axes({ context, theme }: Drawing): void {
    const is_focused = document.activeElement === this.plot.canvas;
    this.found.axes.forEach((axis, a) => {
      const x = this.x(a);
      context.strokeStyle = theme.muted;
      context.lineWidth = is_focused && a === this.focus ? 2.5 : 1;
      context.beginPath();
      context.moveTo(x, this.y(1));
      context.lineTo(x, this.y(0));
      context.stroke();
      context.fillStyle = theme.text;
      context.font = `${is_focused && a === this.focus ? "bold " : ""}11px ${kFont}`;
      context.textAlign = "center";
      context.textBaseline = "alphabetic";
      split_title(axis.title).forEach((line, i, lines) => context.fillText(line, x, kTop - 20 - 12 * (lines.length - 1 - i)));
      this.labels(context, axis, x, theme.text, theme.panel);
      const brush = this.selection.brush(axis);
      if (brush === null) return;
      context.fillStyle = context.strokeStyle = theme.accent;
      const [top, bottom] = [this.y(brush[1]) - 2, this.y(brush[0]) + 2];
      context.globalAlpha = 0.25;
      context.fillRect(x - 8, top, 16, bottom - top);
      context.globalAlpha = 1;
      context.strokeRect(x - 8, top, 16, bottom - top);
    });
  }

  /// Values of a parameter as far as there is room; of numbers the ends.
  private labels(context: CanvasRenderingContext2D, axis: Axis, x: number, ink: string, paper: string): void {
    context.font = `10px ${kFont}`;
    context.textBaseline = "middle";
    const count = axis.parameter >= 0 ? axis.high + 1 : axis.high > axis.low ? 2 : 1;
    const every = Math.max(1, Math.ceil(count / 16));
    for (let i = 0; i < count; i += every) {
      const value = axis.parameter >= 0 ? i : i === 0 ? axis.low : axis.high;
      const text = shown(axis.show(value), 12);
      const aside = axis.parameter >= 0 || count === 1 ? 0 : i === 0 ? 11 : -9;
      const y = this.y(position(axis, value)) + aside;
      context.lineWidth = 3;
      context.strokeStyle = paper;
      context.strokeText(text, x, y);
      context.fillStyle = ink;
      context.fillText(text, x, y);
    }
  }
}

function bins_of(axis: Axis): { bins: Uint8Array; places: number[] } {
  const count = axis.parameter >= 0 && axis.high < 255 ? axis.high + 1 : kBins;
  const bins = Uint8Array.from(axis.values, (value) => {
    const at = position(axis, value);
    return at >= 0 ? Math.min(Math.round(at * (count - 1)), count - 1) : 0;
  });
  return { bins, places: Array.from({ length: count }, (_, i) => (count > 1 ? i / (count - 1) : 0.5)) };
}

function moved(brush: Range | null, up: number, step: number, is_resized: boolean): Range {
  if (brush === null) return up > 0 ? [0, step / 2] : [1 - step / 2, 1];
  const [low, high] = brush;
  if (is_resized) return [low, Math.min(Math.max(high + up * step, low), 1)];
  const by = Math.min(Math.max(up * step, -low), 1 - high);
  return [low + by, high + by];
}

function split_title(title: string): string[] {
  const clean = shown(title, 26);
  const space = clean.indexOf(" ");
  return clean.length > 10 && space > 0 ? [clean.slice(0, space), clean.slice(space + 1)] : [clean];
}
