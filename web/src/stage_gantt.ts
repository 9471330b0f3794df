// Pictures of a cluster's stages over time, one row for each stage.
import { nanoseconds, type ClusterStep, type Pass } from "./cluster_data";
import { number } from "./json";
import { svg } from "./dom";
import { drawing, rectangle } from "./parts";

const kLeft = 70; // px
const kWidth = 1000;
const kRow = 22;
const kTop = 4;
const kTicks = 5;
const kMaxBars = 20000; // of a picture, approximately
const kMaxLines = 2000; // more sends are not drawn

/// Kinds of bars: three of passes, as the file numbers them, then gradients and update.
export const kBars = [
  { name: "forward", variable: "--blue" },
  { name: "backward", variable: "--orange" },
  { name: "weight gradient", variable: "--green" },
  { name: "gradients", variable: "--yellow" },
  { name: "update", variable: "--ink" },
];
const kGradients = 3;
const kUpdate = 4;

export interface StageView {
  stages: number[];
  from: number; // ns
  to: number;
  has_sends: boolean;
}

interface Bar {
  start: number;
  end: number;
  kind: number; // of kBars
  opacity: number; // by chunk
  name: string;
  label: string; // shown inside the bar if it is wide enough
}

export class StageGantt {
  readonly element: SVGElement;
  private readonly scale: number; // px per ns
  private readonly narrowest: number; // px of a bar of its own
  private readonly rows: Map<number, number>; // by stage

  constructor(
    private readonly step: ClusterStep,
    private readonly view: StageView,
  ) {
    const count = view.stages.length;
    this.scale = kWidth / Math.max(1, view.to - view.from);
    this.narrowest = Math.max(0.4, (kWidth * count) / kMaxBars);
    this.rows = new Map(view.stages.map((stage, row) => [stage, row]));
    const height = kTop + kRow * count + 18;
    this.element = drawing(kLeft + kWidth + 60, height, "stages over time");
    this.add_axis(height);
    const bars: Bar[][] = view.stages.map(() => []);
    for (const pass of step.passes) bars[this.rows.get(pass.stage) ?? -1]?.push(this.pass_bar(pass));
    view.stages.forEach((stage, row) => {
      this.element.append(svg("text", { x: 0, y: this.top(row) + 14 }, `stage ${stage}`));
      this.add_row([...bars[row]!, ...this.tail(stage)], this.top(row));
    });
    if (view.has_sends) this.add_sends();
  }

  private top(row: number): number {
    return kTop + kRow * row;
  }

  private x(time: number): number {
    return kLeft + Math.min(Math.max((time - this.view.from) * this.scale, 0), kWidth);
  }

  private add_axis(height: number): void {
    const { from, to } = this.view;
    for (let i = 0; i <= kTicks; ++i) {
      const time = from + ((to - from) * i) / kTicks;
      const x = this.x(time);
      this.element.append(svg("line", { x1: x, x2: x, y1: 0, y2: height - 14 }));
      this.element.append(svg("text", { x: x + 3, y: height - 3 }, nanoseconds(Math.round(time))));
    }
  }

  private pass_bar(pass: Pass): Bar {
    const { chunks } = this.step;
    const name = "FBW".charAt(pass.kind) + pass.micro_batch + (chunks > 1 ? `.${pass.chunk}` : "");
    const opacity = 1 - (0.5 * pass.chunk) / chunks;
    return { start: pass.start, end: pass.end, kind: pass.kind, opacity, name, label: String(pass.micro_batch) };
  }

  /// Gradients and update, behind the passes of a stage.
  private tail(index: number): Bar[] {
    const stage = this.step.stages[index];
    if (stage === undefined) return [];
    const update = stage.finish - number(stage.share["update_ns"]);
    const gradients = Math.min(update, stage.end + number(stage.share["gradients_ns"]));
    return [
      { start: stage.end, end: gradients, kind: kGradients, opacity: 1, name: "gradients", label: "" },
      { start: update, end: stage.finish, kind: kUpdate, opacity: 1, name: "update", label: "" },
    ].filter((bar) => bar.end > bar.start);
  }

  /// Draws bars in their order; neighbours that are too narrow to be seen become one group.
  private add_row(bars: Bar[], y: number): void {
    let group: Bar[] = [];
    const flush = () => {
      this.add_group(group, y);
      group = [];
    };
    for (const bar of bars) {
      if (bar.end <= this.view.from || bar.start >= this.view.to) continue;
      const is_wide = (bar.end - bar.start) * this.scale >= this.narrowest;
      if (is_wide) flush();
      group.push(bar);
      if (is_wide || (bar.end - group[0]!.start) * this.scale >= this.narrowest) flush();
    }
    flush();
  }

  /// The bars of a group in their shares of time.
  private add_group(group: Bar[], y: number): void {
    const [first] = group;
    const last = group[group.length - 1];
    if (first === undefined || last === undefined) return;
    if (first === last) return this.add_bar(first, y);
    const name = `${group.length} passes, ${first.name} to ${last.name}`;
    let start = first.start;
    kBars.forEach((_, kind) => {
      const time = group.reduce((sum, bar) => sum + (bar.kind === kind ? bar.end - bar.start : 0), 0);
      if (time > 0) this.add_bar({ start, end: start + time, kind, opacity: 1, name, label: "" }, y);
      start += time;
    });
  }

  private add_bar(bar: Bar, y: number): void {
    const x = this.x(bar.start);
    const width = this.x(bar.end) - x;
    const title = `${bar.name}: ${nanoseconds(Math.round(bar.end - bar.start))} from ${nanoseconds(Math.round(bar.start))}`;
    this.element.append(rectangle({ x, y, width, height: kRow - 4 }, kBars[bar.kind]!.variable, title, bar.opacity));
    if (bar.label !== "" && width > 6 + 7 * bar.label.length)
      this.element.append(svg("text", { class: "inside", x: (x + 3).toFixed(1), y: y + 13 }, bar.label));
  }

  private add_sends(): void {
    const { from, to } = this.view;
    const lines: SVGElement[] = [];
    for (const send of this.step.sends) {
      const [above, below] = [this.rows.get(send.from), this.rows.get(send.to)];
      if (above === undefined || below === undefined || send.start < from || send.end > to) continue;
      const ends = { x1: this.x(send.start).toFixed(1), y1: this.top(above) + 9, x2: this.x(send.end).toFixed(1), y2: this.top(below) + 9 };
      lines.push(svg("line", { ...ends, class: "send" }));
    }
    if (lines.length <= kMaxLines) this.element.append(...lines);
  }
}
