// Which designs of an exploration are looked at: those inside every brush.
import { position, type Axis, type Exploration } from "./explore_data";

export type Range = [number, number]; // positions on an axis, 0 to 1

const kSlack = 1e-9;

export class Selection {
  readonly inside: Uint8Array; // of feasible designs
  count = 0;
  readonly feasible: number;
  /// Infeasible designs by reason, of those whose parameters are inside.
  readonly infeasible: Uint32Array;
  private readonly brushes = new Map<Axis, Range>();
  private readonly listeners: (() => void)[] = [];

  constructor(private readonly found: Exploration) {
    this.inside = new Uint8Array(found.ids.length);
    this.infeasible = new Uint32Array(found.reasons.length);
    this.feasible = found.reason.reduce((sum, reason) => sum + (reason < 0 ? 1 : 0), 0);
    this.apply();
  }

  subscribe(listener: () => void): void {
    this.listeners.push(listener);
  }

  brush(axis: Axis): Range | null {
    return this.brushes.get(axis) ?? null;
  }

  get is_all(): boolean {
    return this.brushes.size === 0;
  }

  set(axis: Axis, range: Range | null): void {
    if (range === null) this.brushes.delete(axis);
    else this.brushes.set(axis, range);
    this.change();
  }

  clear(): void {
    this.brushes.clear();
    this.change();
  }

  private change(): void {
    this.apply();
    for (const listener of this.listeners) listener();
  }

  private apply(): void {
    const { reason } = this.found;
    this.inside.fill(1);
    for (const [axis, [low, high]] of this.brushes) {
      for (let i = 0; i < reason.length; ++i) {
        if (reason[i]! >= 0 && axis.parameter < 0) continue; // has no such number
        const at = position(axis, axis.values[i]!);
        if (!(at >= low - kSlack && at <= high + kSlack)) this.inside[i] = 0;
      }
    }
    this.infeasible.fill(0);
    this.count = 0;
    for (let i = 0; i < reason.length; ++i) {
      if (this.inside[i] === 0) continue;
      if (reason[i]! < 0) this.count += 1;
      else {
        this.infeasible[reason[i]!]! += 1;
        this.inside[i] = 0;
      }
    }
  }
}
