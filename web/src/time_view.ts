// What all charts over time share: the visible range of cycles, the cursor, the selected layer.

const kLeastSpan = 4; // cycles; closer there is nothing more to see

export class TimeView {
  start: number;
  end: number;
  cursor: number | null = null;
  selected: number | null = null;
  private readonly listeners: (() => void)[] = [];

  constructor(readonly last: number) {
    this.start = 0;
    this.end = last;
  }

  subscribe(listener: () => void): void {
    this.listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }

  get span(): number {
    return this.end - this.start;
  }

  get is_full(): boolean {
    return this.start <= 0 && this.end >= this.last;
  }

  show(start: number, end: number): void {
    const span = Math.min(Math.max(end - start, kLeastSpan), Math.max(this.last, kLeastSpan));
    const middle = (start + end) / 2;
    this.start = Math.max(0, Math.min(middle - span / 2, this.last - span));
    this.end = this.start + span;
    this.changed();
  }

  reset(): void {
    this.show(0, this.last);
  }

  /// factor < 1 zooms in; `around` stays where it is on the screen.
  zoom(factor: number, around: number): void {
    const least = kLeastSpan / this.span;
    const by = Math.max(factor, least);
    this.show(around - (around - this.start) * by, around + (this.end - around) * by);
  }

  pan(cycles: number): void {
    this.show(this.start + cycles, this.end + cycles);
  }

  set_cursor(cycle: number | null): void {
    if (this.cursor === cycle) return;
    this.cursor = cycle;
    this.changed();
  }

  select(layer: number | null): void {
    if (this.selected === layer) return;
    this.selected = layer;
    this.changed();
  }
}
