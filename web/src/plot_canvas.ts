// A canvas that is as large as its box, drawn at most once a frame and whenever the colours change.
import { h } from "./dom";
import { on_theme_change, theme, type Theme } from "./theme";

export interface Drawing {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  theme: Theme;
}

export class PlotCanvas {
  readonly canvas: HTMLCanvasElement;
  private queued = false;

  constructor(
    label: string,
    private readonly height: number,
    private readonly paint: (drawing: Drawing) => void,
    signal: AbortSignal,
  ) {
    this.canvas = h("canvas", { class: "plot", tabindex: 0, role: "img", "aria-label": label });
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

  private draw(): void {
    this.queued = false;
    this.canvas.style.height = `${this.height}px`;
    const width = this.canvas.clientWidth;
    const ratio = window.devicePixelRatio || 1;
    const pixels = [Math.round(width * ratio), Math.round(this.height * ratio)] as const;
    if (width < 40) return;
    if (this.canvas.width !== pixels[0]) this.canvas.width = pixels[0];
    if (this.canvas.height !== pixels[1]) this.canvas.height = pixels[1];
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, this.height);
    this.paint({ context, width, height: this.height, theme: theme() });
  }
}
