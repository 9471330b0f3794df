// Axes of scatters: logarithmic where all values are above zero.
import { ticks } from "./format";

export interface Scale {
  low: number;
  high: number;
  at: (value: number) => number; // px
  ticks: number[];
}

function log_ticks(low: number, high: number, count: number): number[] {
  for (const digits of [[1, 2, 5], [1, 3], [1]]) {
    const found: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) && found.length < 100; ++power)
      for (const digit of digits) {
        const tick = digit * 10 ** power;
        if (tick >= low && tick <= high) found.push(tick);
      }
    if (found.length <= count) return found.length >= 2 ? found : ticks(low, high, count);
  }
  return [low, high];
}

export function make_scale(values: [number, number], from: number, to: number, count: number): Scale {
  const [first, last] = values;
  if (first > 0) {
    const margin = last > first ? (last / first) ** 0.04 : 1.5;
    const low = first / margin;
    const high = last * margin;
    const per = (to - from) / Math.log(high / low);
    return { low, high, at: (value) => from + Math.log(value / low) * per, ticks: log_ticks(low, high, count) };
  }
  const margin = (last - first) * 0.04 || 1;
  const low = first - margin;
  const high = last + margin;
  return { low, high, at: (value) => from + ((value - low) / (high - low)) * (to - from), ticks: ticks(low, high, count) };
}
