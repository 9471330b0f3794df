// The whole step at a glance above the Gantt chart: how busy the cores are by phase, and the visible window to drag.
import type { Step } from "./data";
import { h } from "./dom";
import { kGutter, kRight } from "./surface";
import { on_theme_change, phase_colour, theme } from "./theme";
import type { TimeView } from "./time_view";

const kHeight = 34;

export class Overview {
  readonly canvas = h("canvas", { class: "plot overview", "aria-hidden": "true", "data-chart": "overview" });
  private queued = false;
  private busy: { width: number; phases: string[]; cover: Float32Array } | null = null;

  constructor(
    private readonly step: Step,
    private readonly view: TimeView,
    signal: AbortSignal,
  ) {
    this.canvas.style.height = `${kHeight}px`;
    view.subscribe(() => this.redraw());
    on_theme_change(() => this.draw(), signal);
    const sizes = new ResizeObserver(() => this.redraw());
    sizes.observe(this.canvas);
    signal.addEventListener("abort", () => sizes.disconnect());
    let is_down = false;
    const move = (event: PointerEvent) => {
      const plot = this.canvas.clientWidth - kGutter - kRight;
      const middle = ((event.offsetX - kGutter) / Math.max(plot, 1)) * this.view.last;
      this.view.show(middle - this.view.span / 2, middle + this.view.span / 2);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      is_down = true;
      this.canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (is_down) move(event);
    });
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => (is_down = false));
  }

  redraw(): void {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => this.draw());
  }

  /// Core-cycles by column and phase as a fraction of all cores' cycles in the column.
  private measure(columns: number): { width: number; phases: string[]; cover: Float32Array } {
    if (this.busy !== null && this.busy.width === columns) return this.busy;
    const phases = [...new Set(this.step.layers.map((layer) => layer.phase))].slice(0, 12);
    const number_of = new Map(phases.map((phase, i) => [phase, i]));
    const cover = new Float32Array(columns * phases.length);
    const cores = new Set(this.step.runs.map((run) => run.core)).size || 1;
    const scale = columns / this.view.last;
    for (const run of this.step.runs) {
      const phase = number_of.get(this.step.layers[run.layer]?.phase ?? "");
      if (phase === undefined) continue;
      const from = run.start * scale;
      const to = run.end * scale;
      for (let column = Math.floor(from); column < to && column < columns; ++column) {
        const part = Math.min(to, column + 1) - Math.max(from, column);
        if (column >= 0) cover[column * phases.length + phase]! += part / cores;
      }
    }
    this.busy = { width: columns, phases, cover };
    return this.busy;
  }

  private draw(): void {
    this.queued = false;
    const width = this.canvas.clientWidth;
    const plot = width - kGutter - kRight;
    if (plot < 10) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(kHeight * ratio);
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    context.scale(ratio, ratio);
    const colours = theme();
    context.fillStyle = colours.lane;
    context.fillRect(kGutter, 0, plot, kHeight);
    const { phases, cover } = this.measure(Math.floor(plot));
    const fills = phases.map(phase_colour);
    for (let column = 0; column < Math.floor(plot); ++column) {
      let y = kHeight;
      fills.forEach((fill, phase) => {
        const tall = cover[column * phases.length + phase]! * (kHeight - 2);
        if (tall <= 0) return;
        context.fillStyle = fill;
        context.fillRect(kGutter + column, y - tall, 1, tall);
        y -= tall;
      });
    }
    this.paint_window(context, plot, colours.panel, colours.text);
    context.fillStyle = colours.muted;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillText("busy cores", 4, kHeight / 2);
  }

  private paint_window(context: CanvasRenderingContext2D, plot: number, shade: string, edge: string): void {
    if (this.view.is_full) return;
    const left = kGutter + (this.view.start / this.view.last) * plot;
    const right = kGutter + (this.view.end / this.view.last) * plot;
    context.globalAlpha = 0.7;
    context.fillStyle = shade;
    context.fillRect(kGutter, 0, left - kGutter, kHeight);
    context.fillRect(right, 0, kGutter + plot - right, kHeight);
    context.globalAlpha = 1;
    context.strokeStyle = edge;
    context.lineWidth = 1.5;
    context.strokeRect(left, 1, Math.max(right - left, 2), kHeight - 2);
  }
}
