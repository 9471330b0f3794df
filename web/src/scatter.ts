// A scatter of designs with fronts as step lines, on a canvas. Pointing, or arrow keys along the front, shows a design.
import { h, shown } from "./dom";
import type { Axis } from "./explore_data";
import { make_scale, type Scale } from "./log_axis";
import { PlotCanvas, type Drawing } from "./plot_canvas";
import { kFont } from "./surface";
import { colour } from "./theme";
import { Tooltip } from "./tooltip";

const kHeight = 360;
const kLeft = 72;
const kRight = 16;
const kTop = 10;
const kBottom = 46;
const kReach = 12; // px from the pointer

export interface FrontLine {
  rows: number[]; // along x
  variable: string; // CSS
  is_dashed: boolean;
  is_walked: boolean; // by arrow keys
}

export interface Cloud {
  label: string;
  x: Axis;
  y: Axis;
  shade: Uint8Array | null; // per row, index into `ramp`
  ramp: string[]; // CSS variables
  inside: Uint8Array; // rows that stand out; the others are faint
  fronts: FrontLine[];
  describe: (row: number) => { title: string; lines: [string, string][] };
}

export class Scatter {
  readonly element = h("div", { class: "plot-box" });
  private readonly plot: PlotCanvas;
  private readonly tooltip = new Tooltip();
  private x: Scale | null = null;
  private y: Scale | null = null;
  private seen: number | null = null; // row

  constructor(
    private cloud: Cloud,
    signal: AbortSignal,
    private readonly on_pick: (row: number) => void = () => {},
  ) {
    this.plot = new PlotCanvas(cloud.label, kHeight, (drawing) => this.paint(drawing), signal);
    const { canvas } = this.plot;
    canvas.dataset["chart"] = "scatter";
    canvas.addEventListener("pointermove", (event) => this.see(this.nearest(event.offsetX, event.offsetY)));
    canvas.addEventListener("pointerleave", () => this.see(null));
    canvas.addEventListener("blur", () => this.see(null));
    canvas.addEventListener("click", () => this.seen !== null && this.on_pick(this.seen));
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.element.append(canvas, this.tooltip.element);
  }

  show(cloud: Cloud): void {
    this.cloud = cloud;
    this.plot.canvas.setAttribute("aria-label", cloud.label);
    if (this.seen !== null && !(this.seen < cloud.x.values.length)) this.see(null);
    this.plot.redraw();
  }

  private key(event: KeyboardEvent): void {
    const front = this.cloud.fronts.find((line) => line.is_walked)?.rows ?? [];
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (event.key === "Escape") this.see(null);
    if (event.key === "Enter" && this.seen !== null) this.on_pick(this.seen);
    if (step === 0 || front.length === 0) return;
    event.preventDefault();
    const at = this.seen === null ? -1 : front.indexOf(this.seen);
    const next = at < 0 ? (step > 0 ? 0 : front.length - 1) : Math.min(Math.max(at + step, 0), front.length - 1);
    this.see(front[next]!);
  }

  private nearest(px: number, py: number): number | null {
    const { x, y, cloud } = this;
    if (x === null || y === null) return null;
    let best: number | null = null;
    let least = kReach ** 2;
    for (let i = 0; i < cloud.inside.length; ++i) {
      if (cloud.inside[i] === 0) continue;
      const distance = (x.at(cloud.x.values[i]!) - px) ** 2 + (y.at(cloud.y.values[i]!) - py) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  private see(row: number | null): void {
    if (row !== this.seen) {
      this.seen = row;
      this.plot.redraw();
    }
    const { x, y, cloud } = this;
    if (row === null || x === null || y === null) return this.tooltip.hide();
    const { title, lines } = cloud.describe(row);
    this.tooltip.show(x.at(cloud.x.values[row]!), y.at(cloud.y.values[row]!), title, undefined, lines);
  }

  private paint(drawing: Drawing): void {
    const { width, height } = drawing;
    const { cloud } = this;
    const x = make_scale([cloud.x.low, cloud.x.high], kLeft, width - kRight, width < 500 ? 5 : 8);
    const y = make_scale([cloud.y.low, cloud.y.high], height - kBottom, kTop, 8);
    this.x = x;
    this.y = y;
    this.axes(drawing, x, y);
    const drawn = this.points(drawing, x, y);
    for (const line of cloud.fronts) this.front(drawing, line, x, y);
    if (this.seen !== null) this.mark(drawing, x.at(cloud.x.values[this.seen]!), y.at(cloud.y.values[this.seen]!));
    this.plot.canvas.dataset["points"] = String(drawn);
    this.plot.canvas.dataset["front"] = String(cloud.fronts[0]?.rows.length ?? 0);
  }

  private axes({ context, width, height, theme }: Drawing, x: Scale, y: Scale): void {
    context.font = `11px ${kFont}`;
    context.strokeStyle = theme.line;
    context.fillStyle = theme.muted;
    context.lineWidth = 1;
    context.beginPath();
    context.textAlign = "center";
    context.textBaseline = "top";
    let free = -Infinity; // px: labels do not overlap
    for (const tick of x.ticks) {
      const at = Math.round(x.at(tick)) + 0.5;
      context.moveTo(at, kTop);
      context.lineTo(at, height - kBottom);
      const label = this.cloud.x.show(tick);
      const half = context.measureText(label).width / 2;
      if (at - half < free || at + half > width) continue;
      context.fillText(label, at, height - kBottom + 6);
      free = at + half + 8;
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const tick of y.ticks) {
      const at = Math.round(y.at(tick)) + 0.5;
      context.moveTo(kLeft, at);
      context.lineTo(width - kRight, at);
      context.fillText(this.cloud.y.show(tick), kLeft - 6, at);
    }
    context.stroke();
    context.fillStyle = theme.text;
    context.textAlign = "center";
    context.textBaseline = "bottom";
    context.font = `12px ${kFont}`;
    context.fillText(shown(this.cloud.x.title, 60), (kLeft + width - kRight) / 2, height - 6);
    context.save();
    context.translate(12, (kTop + height - kBottom) / 2);
    context.rotate(-Math.PI / 2);
    context.textBaseline = "middle";
    context.fillText(shown(this.cloud.y.title, 60), 0, 0);
    context.restore();
  }

  /// Faint ones first; one fill style per shade. Returns how many stand out.
  private points({ context, theme }: Drawing, x: Scale, y: Scale): number {
    const { cloud } = this;
    const draw = (kept: (row: number) => boolean, size: number) => {
      let drawn = 0;
      for (let i = 0; i < cloud.inside.length; ++i) {
        const [px, py] = [cloud.x.values[i]!, cloud.y.values[i]!];
        if (!(px <= Infinity && py <= Infinity) || !kept(i)) continue;
        context.fillRect(x.at(px) - size / 2, y.at(py) - size / 2, size, size);
        drawn += 1;
      }
      return drawn;
    };
    context.fillStyle = theme.line;
    draw((row) => cloud.inside[row] === 0, 2);
    const { shade } = cloud;
    context.globalAlpha = 0.75;
    let drawn = 0;
    cloud.ramp.forEach((variable, k) => {
      context.fillStyle = colour(variable);
      drawn += draw((row) => cloud.inside[row] === 1 && (shade === null ? k === 0 : shade[row] === k), 3);
    });
    context.globalAlpha = 1;
    return drawn;
  }

  /// What the front dominates lies above and to the right of the steps.
  private front({ context, width }: Drawing, line: FrontLine, x: Scale, y: Scale): void {
    if (line.rows.length === 0) return;
    const { cloud } = this;
    context.strokeStyle = context.fillStyle = colour(line.variable);
    context.lineWidth = 2;
    context.setLineDash(line.is_dashed ? [5, 4] : []);
    context.beginPath();
    line.rows.forEach((row, i) => {
      const [px, py] = [x.at(cloud.x.values[row]!), y.at(cloud.y.values[row]!)];
      if (i === 0) context.moveTo(px, kTop);
      else context.lineTo(px, y.at(cloud.y.values[line.rows[i - 1]!]!));
      context.lineTo(px, py);
    });
    context.lineTo(width - kRight, y.at(cloud.y.values[line.rows[line.rows.length - 1]!]!));
    context.stroke();
    context.setLineDash([]);
    for (const row of line.rows) {
      context.beginPath();
      context.arc(x.at(cloud.x.values[row]!), y.at(cloud.y.values[row]!), 4, 0, 2 * Math.PI);
      context.fill();
    }
  }

  private mark({ context, theme }: Drawing, px: number, py: number): void {
    context.strokeStyle = theme.text;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(px, py, 7, 0, 2 * Math.PI);
    context.stroke();
  }
}
