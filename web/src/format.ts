// Numbers as people read them: three significant digits, the unit scaled.

const kSi: [number, string][] = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
];

function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return trim(value.toFixed(1));
  if (size >= 1) return trim(value.toFixed(2));
  return String(Number(value.toPrecision(2)));
}

function trim(value: string): string {
  return value.includes(".") ? value.replace(/\.?0+$/, "") : value;
}

/// 1234567 -> "1.23 M"; `unit` follows the prefix directly.
export function si(value: number, unit = ""): string {
  // 999.6 k would round to "1000 k": step up where rounding does.
  const [scale, prefix] = kSi.find(([size]) => Math.abs(value) >= size * 0.9995) ?? [1, ""];
  const suffix = prefix + unit;
  return digits(value / scale) + (suffix === "" ? "" : "\u202f" + suffix);
}

/// Picojoules as pJ, nJ, uJ, mJ or J.
export function energy(pj: number): string {
  const units: [number, string][] = [
    [1e12, "J"],
    [1e9, "mJ"],
    [1e6, "\u00b5J"],
    [1e3, "nJ"],
    [1, "pJ"],
  ];
  const [scale, unit] = units.find(([size]) => Math.abs(pj) >= size * 0.9995) ?? [1, "pJ"];
  return `${digits(pj / scale)}\u202f${unit}`;
}

export function seconds(value: number): string {
  const units: [number, string][] = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "\u00b5s"],
    [1e-9, "ns"],
  ];
  const [scale, unit] = units.find(([size]) => Math.abs(value) >= size * 0.9995) ?? [1e-9, "ns"];
  return `${digits(value / scale)}\u202f${unit}`;
}

const kBinary: [number, string][] = [
  [2 ** 50, "PiB"],
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
  [1, "B"],
];

export function bytes(value: number): string {
  const [scale, unit] = kBinary.find(([size]) => Math.abs(value) >= size * 0.9995) ?? [1, "B"];
  return `${digits(value / scale)}\u202f${unit}`;
}

/// As the terminal's tables show bytes: always three digits, GiB from 999.5 MiB on.
export function table_bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; value >= 999.5 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${value.toFixed(unit === 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0)}\u202f${units[unit]}`;
}

export function percent(fraction: number): string {
  const value = fraction * 100;
  if (value !== 0 && Math.abs(value) < 0.1) return "<0.1\u202f%";
  return `${value >= 10 ? value.toFixed(0) : trim(value.toFixed(1))}\u202f%`;
}

/// Every digit, in groups of three.
export function exact(value: number): string {
  const text = String(value);
  if (text.includes("e")) return text;
  const [whole, rest] = text.split(".");
  const grouped = (whole ?? "").replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

export function words(key: string): string {
  return key.replace(/_/g, " ");
}

const kLabels: Record<string, string> = {
  onchip_memory: "on-chip memory",
  offchip: "off-chip",
  optimizer_state: "optimizer state",
  stored_activations: "stored activations",
};

export function label(key: string): string {
  return Object.hasOwn(kLabels, key) ? (kLabels[key] ?? key) : words(key);
}

/// Round values covering [from, to], about `count` of them; steps are 1, 2 or 5 times a power of ten.
export function ticks(from: number, to: number, count: number): number[] {
  const span = to - from;
  if (!(span > 0) || count < 1) return [from];
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => span / size <= count) ?? 10 * power;
  return multiples(from, to, step);
}

/// As `ticks`, with steps that are powers of two times 1 KiB, so that labels in KiB, MiB, GiB stay round.
export function byte_ticks(to: number, count: number): number[] {
  if (!(to > 0) || count < 1) return [0];
  const step = 2 ** Math.ceil(Math.log2(Math.max(to / count, 1)));
  return multiples(0, to, step);
}

function multiples(from: number, to: number, step: number): number[] {
  const result: number[] = [];
  const first = Math.ceil(from / step - 1e-9);
  for (let k = first; k * step <= to * (1 + 1e-12) && result.length < 100; ++k) result.push(k * step);
  return result;
}

/// A cycle on an axis whose ticks are `step` apart: enough digits to tell neighbours apart.
export function axis_cycles(value: number, step: number): string {
  const [scale, prefix] = kSi.find(([size]) => Math.abs(value) >= size) ?? [1, ""];
  const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / scale) - 1e-9)));
  return trim((value / scale).toFixed(decimals)) + (prefix === "" ? "" : "\u202f" + prefix);
}
