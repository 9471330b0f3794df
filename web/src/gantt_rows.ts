// The timeline's bars by row (the critical path, a core, a link or a port), in order of start, so that the visible ones are found by bisection.
import { core_label, type Step } from "./data";

export type RowKind = "path" | "core" | "link" | "port";

export interface Row {
  kind: RowKind;
  label: string;
  detail: string;
  count: number;
  start: Float64Array;
  end: Float64Array;
  reach: Float64Array; // the largest end up to and including this bar: bars of a link may overlap
  layer: Int32Array;
  item: Int32Array; // index into runs, transfers or segments of the critical path
}

const kMostRows = 600; // more would be thinner than they can be told apart

export interface Rows {
  rows: Row[];
  hidden_links: number; // idle, or beyond what fits
}

interface Bar {
  start: number;
  end: number;
  layer: number;
  item: number;
}

function make_row(kind: RowKind, label: string, detail: string, bars: Bar[]): Row {
  bars.sort((a, b) => a.start - b.start || a.end - b.end || a.item - b.item);
  const reach = new Float64Array(bars.length);
  let furthest = -Infinity;
  bars.forEach((bar, i) => {
    furthest = Math.max(furthest, bar.end);
    reach[i] = furthest;
  });
  return {
    kind,
    label,
    detail,
    count: bars.length,
    start: Float64Array.from(bars, (bar) => bar.start),
    end: Float64Array.from(bars, (bar) => bar.end),
    reach,
    layer: Int32Array.from(bars, (bar) => bar.layer),
    item: Int32Array.from(bars, (bar) => bar.item),
  };
}

function push(lists: Map<number, Bar[]>, key: number, bar: Bar): void {
  const bars = lists.get(key);
  if (bars === undefined) lists.set(key, [bar]);
  else bars.push(bar);
}

export function make_rows(step: Step): Rows {
  const by_core = new Map<number, Bar[]>();
  step.runs.forEach((run, item) => push(by_core, run.core, { ...run, item }));
  const by_link = new Map<number, Bar[]>();
  step.transfers.forEach((transfer, item) => {
    for (const link of transfer.links) {
      push(by_link, link, { start: transfer.start, end: transfer.end, layer: transfer.layer, item });
    }
  });
  const cores = step.cores
    .filter((core) => by_core.has(core.id) || core.tiles > 0 || step.runs.length === 0)
    .slice(0, kMostRows)
    .map((core) => make_row("core", core_label(core), percent_label(core.utilisation), by_core.get(core.id) ?? []));
  const busy = step.links
    .filter((link) => by_link.has(link.id))
    .sort((a, b) => b.busy_cycles - a.busy_cycles || a.id - b.id)
    .slice(0, Math.max(kMostRows - cores.length, 0))
    .sort((a, b) => a.id - b.id);
  const links = busy.map((link) =>
    make_row("link", link.name, percent_label(link.utilisation), by_link.get(link.id) ?? []),
  );
  const rows = [...path_rows(step), ...cores, ...links, ...port_rows(step)];
  return { rows, hidden_links: step.links.length - links.length };
}

function path_rows(step: Step): Row[] {
  if (step.segments.length === 0) return [];
  const bars = step.segments.map(({ start, end, layer }, item) => ({ start, end, layer: layer ?? -1, item }));
  return [make_row("path", "critical path", "", bars)];
}

/// What passes the off-chip memory's one port, or its port to read and its port to write.
function port_rows(step: Step): Row[] {
  const offchip = step.cores.find((core) => core.kind === "offchip")?.id;
  const reads: Bar[] = [];
  const writes: Bar[] = [];
  step.transfers.forEach(({ start, end, layer, from, to, also }, item) => {
    if (from === offchip) reads.push({ start, end, layer, item });
    if (to === offchip || also.some((core) => core === offchip)) writes.push({ start, end, layer, item });
  });
  const carried = step.ports.length === 1 ? [[...reads, ...writes]] : [reads, writes];
  return step.ports
    .slice(0, carried.length)
    .map((port, i) => make_row("port", port.name, percent_label(port.utilisation), carried[i]!))
    .filter((row) => row.count > 0);
}

function percent_label(fraction: number): string {
  return `${Math.round(fraction * 100)}%`;
}

/// The first bar that may end after `cycle`; all before it end at or before it.
export function first_after(row: Row, cycle: number): number {
  let low = 0;
  let high = row.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.reach[middle]! > cycle) high = middle;
    else low = middle + 1;
  }
  return low;
}

/// The bar at `cycle`, or the nearest within `slack` cycles; of several the shortest. Null if there is none.
export function bar_at(row: Row, cycle: number, slack: number): number | null {
  let best: number | null = null;
  let best_distance = Infinity;
  let best_length = Infinity;
  for (let i = first_after(row, cycle - slack - 1e-9); i < row.count && row.start[i]! <= cycle + slack; ++i) {
    const distance = Math.max(row.start[i]! - cycle, cycle - row.end[i]!, 0);
    const length = row.end[i]! - row.start[i]!;
    if (distance > slack) continue;
    if (distance < best_distance || (distance === best_distance && length < best_length)) {
      best = i;
      best_distance = distance;
      best_length = length;
    }
  }
  return best;
}
