// A canvas over time: sized to its box and the screen's pixels, redrawn at most once a frame, with the time axis and
// the gestures that all charts over time share.
import { axis_cycles, ticks } from "./format";
import { h } from "./dom";
import { on_theme_change, theme, type Theme } from "./theme";
import type { TimeView } from "./time_view";

export const kGutter = 136; // px left of the plot, for row labels
export const kRight = 14;
export const kAxis = 34;
export const kFont = "system-ui, sans-serif";

export interface Frame {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  left: number;
  right: number;
  theme: Theme;
  x(cycle: number): number;
}

export class Surface {
  readonly canvas: HTMLCanvasElement;
  private queued = false;
  private width = 0;

  constructor(
    private readonly view: TimeView,
    private readonly height: () => number,
    private readonly paint: (frame: Frame) => void,
    label: string,
    signal: AbortSignal,
  ) {
    this.canvas = h("canvas", { class: "plot", tabindex: 0, role: "img", "aria-label": label });
    view.subscribe(() => this.redraw());
    on_theme_change(() => this.draw(), signal);
    const sizes = new ResizeObserver(() => this.redraw());
    sizes.observe(this.canvas);
    signal.addEventListener("abort", () => sizes.disconnect());
  }

  redraw(): void {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => this.draw());
  }

  cycle_at(x: number): number {
    const plot = Math.max(this.width - kGutter - kRight, 1);
    return this.view.start + ((x - kGutter) / plot) * this.view.span;
  }

  cycles_per_pixel(): number {
    return this.view.span / Math.max(this.width - kGutter - kRight, 1);
  }

  private draw(): void {
    this.queued = false;
    const height = this.height();
    this.canvas.style.height = `${height}px`;
    this.width = this.canvas.clientWidth;
    if (this.width < kGutter + kRight + 10) return;
    const ratio = window.devicePixelRatio || 1;
    const pixels = [Math.round(this.width * ratio), Math.round(height * ratio)] as const;
    if (this.canvas.width !== pixels[0]) this.canvas.width = pixels[0];
    if (this.canvas.height !== pixels[1]) this.canvas.height = pixels[1];
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, height);
    const right = this.width - kRight;
    const scale = (right - kGutter) / this.view.span;
    const x = (cycle: number) => kGutter + (cycle - this.view.start) * scale;
    this.paint({ context, width: this.width, height, left: kGutter, right, theme: theme(), x });
  }

  /// Wheel zooms about the pointer, shift and wheel pans; drag zooms to what it covers, shift and drag pans; arrows,
  /// + - 0 do the same from the keyboard. At full range a wheel that would zoom out scrolls the page instead.
  gestures(on_click: (x: number, y: number) => void, on_hover: (x: number, y: number) => void): void {
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("dblclick", () => this.view.reset());
    this.canvas.addEventListener("pointerleave", () => {
      this.view.set_cursor(null);
      on_hover(-1, -1);
    });
    let from: { x: number; start: number; end: number; pan: boolean } | null = null;
    let moved = false;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 1) return;
      from = {
        x: event.offsetX,
        start: this.view.start,
        end: this.view.end,
        pan: event.shiftKey || event.button === 1,
      };
      moved = false;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (from !== null && Math.abs(event.offsetX - from.x) > 3) moved = true;
      if (from !== null && moved && from.pan) {
        const by = (from.x - event.offsetX) * this.cycles_per_pixel();
        this.view.show(from.start + by, from.end + by);
      }
      this.drag = from !== null && moved && !from.pan ? [from.x, event.offsetX] : null;
      const inside = event.offsetX >= kGutter;
      this.view.set_cursor(inside ? this.cycle_at(event.offsetX) : null);
      on_hover(event.offsetX, event.offsetY);
      this.redraw();
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (from !== null && moved && this.drag !== null) {
        const [a, b] = this.drag.map((px) => this.cycle_at(px)) as [number, number];
        this.drag = null;
        this.view.show(Math.max(Math.min(a, b), this.view.start), Math.min(Math.max(a, b), this.view.end));
      } else if (from !== null && !moved) {
        on_click(event.offsetX, event.offsetY);
      }
      from = null;
    });
    this.canvas.addEventListener("pointercancel", () => {
      from = null;
      this.drag = null;
    });
  }

  private drag: [number, number] | null = null;

  private wheel(event: WheelEvent): void {
    const pan = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (this.view.is_full && (pan || event.deltaY > 0)) return;
    event.preventDefault();
    if (pan) {
      this.view.pan((event.deltaX || event.deltaY) * this.cycles_per_pixel());
    } else {
      this.view.zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY)) * 0.0022), this.cycle_at(event.offsetX));
    }
  }

  private key(event: KeyboardEvent): void {
    const middle = (this.view.start + this.view.end) / 2;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.view.pan(-this.view.span / 8),
      ArrowRight: () => this.view.pan(this.view.span / 8),
      "+": () => this.view.zoom(0.6, middle),
      "=": () => this.view.zoom(0.6, middle),
      "-": () => this.view.zoom(1 / 0.6, middle),
      "0": () => this.view.reset(),
      Escape: () => this.view.select(null),
    };
    const action = actions[event.key];
    if (action === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    action();
  }

  /// Grid lines and labels of the time axis, whose line is at `y`.
  time_axis(frame: Frame, top: number, y: number): void {
    const { context } = frame;
    const values = ticks(this.view.start, this.view.end, Math.max(2, Math.floor((frame.right - frame.left) / 110)));
    const step = values.length > 1 ? values[1]! - values[0]! : this.view.span;
    context.font = `11px ${kFont}`;
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const value of values) {
      const x = Math.round(frame.x(value)) + 0.5;
      context.fillStyle = frame.theme.line;
      context.fillRect(x - 0.5, top, 1, y - top + 4);
      context.fillStyle = frame.theme.muted;
      context.fillText(axis_cycles(value, step), Math.min(x, frame.right - 12), y + 6);
    }
    context.fillStyle = frame.theme.muted;
    context.fillRect(frame.left, y, frame.right - frame.left, 1);
    context.textAlign = "right";
    context.fillText("time (cycles)", frame.left - 10, y + 6);
  }

  /// The crosshair and the drag's rectangle.
  overlay(frame: Frame, top: number, bottom: number): void {
    const { context } = frame;
    if (this.drag !== null) {
      const [a, b] = this.drag;
      const left = Math.max(Math.min(a, b), frame.left);
      context.globalAlpha = 0.18;
      context.fillStyle = frame.theme.accent;
      context.fillRect(left, top, Math.min(Math.max(a, b), frame.right) - left, bottom - top);
      context.globalAlpha = 1;
    }
    if (this.view.cursor === null) return;
    const x = frame.x(this.view.cursor);
    if (x < frame.left || x > frame.right) return;
    context.fillStyle = frame.theme.text;
    context.globalAlpha = 0.45;
    context.fillRect(Math.round(x), top, 1, bottom - top);
    context.globalAlpha = 1;
  }
}
