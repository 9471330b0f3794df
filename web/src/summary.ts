// The head of the report: name, key figures of the step beside inference alone, the phases' table, cores and links.
import {
  core_label,
  kOwners,
  kTransferKinds,
  type ByOwner,
  type Core,
  type Link,
  type Phase,
  type Result,
  type Step,
} from "./data";
import { h, shown, type Child } from "./dom";
import { bytes, energy, exact, label, percent, seconds, si } from "./format";
import { owner_variable, phase_variable } from "./theme";

export function header(result: Result): HTMLElement {
  const { step } = result;
  const kinds = new Map<string, number>();
  for (const core of step.cores) kinds.set(core.kind || "core", (kinds.get(core.kind || "core") ?? 0) + 1);
  const cores = [...kinds].map(([kind, count]) => `${count} ${shown(kind, 40)}`).join(", ");
  const parts = [
    step.kind === "inference" ? "Inference" : "One training step",
    result.chip === "" ? "" : `on ${shown(result.chip, 80)}`,
    cores === "" ? "" : `cores: ${cores}`,
    step.links.length === 0 ? "no links" : `${step.links.length} link${step.links.length === 1 ? "" : "s"}`,
    `${exact(step.layers.length)} layer${step.layers.length === 1 ? "" : "s"}`,
  ];
  return h(
    "header",
    {},
    h("h1", {}, shown(result.name) || "Result"),
    h("p", { class: "muted" }, parts.filter((part) => part !== "").join(" \u00b7 ")),
  );
}

interface Figure {
  label: string;
  value: (step: Step) => number;
  show: (value: number) => string;
  exact: string;
  detail: (step: Step) => string;
  compare: boolean;
}

const kFigures: Figure[] = [
  {
    label: "Latency",
    value: (step) => step.latency_cycles,
    show: (value) => `${si(value)} cycles`,
    exact: "cycles",
    detail: (step) => (step.latency_seconds === null ? "" : seconds(step.latency_seconds)),
    compare: true,
  },
  {
    label: "Energy",
    value: (step) => step.energy_pj,
    show: energy,
    exact: "pJ",
    detail: (step) =>
      step.latency_seconds === null || step.latency_seconds <= 0
        ? step.macs.total > 0
          ? `${energy(step.energy_pj / step.macs.total)} per MAC`
          : ""
        : `${si((step.energy_pj * 1e-12) / step.latency_seconds, "W")} on average`,
    compare: true,
  },
  {
    label: "Peak memory",
    value: (step) => step.peak_memory_bytes,
    show: bytes,
    exact: "bytes",
    detail: (step) => {
      const most = kOwners.reduce((a, b) => (step.memory[b] > step.memory[a] ? b : a));
      return step.peak_memory_bytes > 0 ? `${percent(step.memory[most] / step.peak_memory_bytes)} ${label(most)}` : "";
    },
    compare: true,
  },
  {
    label: "MACs",
    value: (step) => step.macs.total,
    show: (value) => si(value),
    exact: "MACs",
    detail: (step) => (step.latency_cycles > 0 ? `${si(step.macs.total / step.latency_cycles)} per cycle` : ""),
    compare: true,
  },
  {
    label: "Parameters",
    value: (step) => step.parameters,
    show: (value) => si(value),
    exact: "elements",
    detail: () => "",
    compare: false,
  },
  {
    label: "Chip area",
    value: (step) => step.area_mm2,
    show: (value) => (value > 0 ? `${si(value)} mm\u00b2` : "not given"),
    exact: "mm\u00b2",
    detail: () => "",
    compare: false,
  },
];

/// One card per figure: the step's, and below it inference alone with how many times it the step takes.
export function key_figures(step: Step, inference: Step | null): HTMLElement {
  const cards = kFigures.map((figure) => {
    const value = figure.value(step);
    const card = h(
      "div",
      { class: "card", title: `${exact(value)} ${figure.exact}` },
      h("div", { class: "card-label" }, figure.label, figure.compare ? ratio_badge(value, inference, figure) : null),
      h("div", { class: "card-value" }, figure.show(value)),
      h("div", { class: "card-detail" }, figure.detail(step) || "\u00a0"),
    );
    if (inference !== null && figure.compare) card.append(comparison(figure, value, inference));
    if (!figure.compare) card.classList.add("narrow");
    return card;
  });
  return h("section", { class: "cards", "aria-label": "Key figures" }, ...cards);
}

function comparison(figure: Figure, value: number, inference: Step): HTMLElement {
  const alone = figure.value(inference);
  const share = value > 0 ? Math.min(1, alone / value) : 0;
  return h(
    "div",
    { class: "card-compare", title: `inference alone: ${exact(alone)} ${figure.exact}` },
    h("div", { class: "card-bar" }, h("span", { style: `width: ${(share * 100).toFixed(1)}%` })),
    h("div", {}, h("span", { class: "card-name" }, "inference alone "), h("b", {}, figure.show(alone))),
  );
}

function ratio_badge(value: number, inference: Step | null, figure: Figure): HTMLElement | null {
  const alone = inference === null ? 0 : figure.value(inference);
  if (!(alone > 0)) return null;
  const ratio = value / alone;
  return h(
    "span",
    { class: "ratio", title: "times inference alone" },
    `${ratio.toFixed(ratio >= 9.995 ? 0 : 2)}\u00d7 inference`,
  );
}

export function phase_table(step: Step, inference: Step | null): HTMLElement {
  const head = ["Phase", "Latency (cycles)", "Critical path (cycles)", "At work (cycles)", "Energy", "MACs", "Peak memory", "", ...kOwners.map(label)];
  const body = h("tbody");
  for (const phase of step.phases) body.append(phase_row(step, phase));
  const no_part = { start_cycle: 0, critical_path_cycles: 0, busy_cycles: 0 };
  const whole: Phase = { ...step, ...no_part, phase: "total", macs: step.macs.total, energy: step.energy };
  const foot = h("tfoot", {}, plain_row("Whole step", whole, step.peak_memory_bytes));
  if (inference !== null) {
    const alone: Phase = { ...inference, ...no_part, phase: "inference", macs: inference.macs.total };
    const row = plain_row("Inference alone", alone, step.peak_memory_bytes);
    row.classList.add("compare");
    foot.append(row);
  }
  const header = h("tr", {}, ...head.map((name, i) => h("th", { scope: "col", class: i === 0 ? "" : "number" }, name)));
  return h(
    "div",
    { class: "scroll-x" },
    h("table", { class: "figures", id: "phases" }, h("thead", {}, header), body, foot),
  );
}

function owner_cells(memory: ByOwner): HTMLElement[] {
  return kOwners.map((owner) =>
    h("td", { class: "number small" }, memory[owner] === 0 ? "\u2013" : bytes(memory[owner])),
  );
}

function owner_bar(memory: ByOwner, most: number): HTMLElement {
  const parts = kOwners.map((owner) => {
    const share = most > 0 ? (memory[owner] / most) * 100 : 0;
    return h("span", {
      style: `width: ${share.toFixed(2)}%; background: var(${owner_variable(owner)})`,
      title: `${label(owner)}: ${bytes(memory[owner])}`,
    });
  });
  return h("td", { class: "bar-cell" }, h("div", { class: "stack" }, ...parts));
}

function share_cell(text: string, share: number, variable: string): HTMLElement {
  const bar = `background: var(${variable}); width: ${(Math.min(Math.max(share, 0), 1) * 100).toFixed(2)}%`;
  return h(
    "td",
    { class: "number share" },
    text,
    h("i", {}, percent(share)),
    h("span", { class: "share-bar", style: bar }),
  );
}

function phase_row(step: Step, phase: Phase): HTMLElement {
  const variable = phase_variable(phase.phase);
  const of = (value: number, total: number) => (total > 0 ? value / total : 0);
  return h(
    "tr",
    {},
    h(
      "th",
      { scope: "row" },
      h("span", { class: "swatch", style: `background: var(${variable})` }),
      shown(label(phase.phase), 40),
    ),
    share_cell(si(phase.latency_cycles), of(phase.latency_cycles, step.latency_cycles), variable),
    share_cell(si(phase.critical_path_cycles), of(phase.critical_path_cycles, step.latency_cycles), variable),
    h("td", { class: "number" }, si(phase.busy_cycles)),
    share_cell(energy(phase.energy_pj), of(phase.energy_pj, step.energy_pj), variable),
    share_cell(si(phase.macs), of(phase.macs, step.macs.total), variable),
    h("td", { class: "number" }, bytes(phase.peak_memory_bytes)),
    owner_bar(phase.memory, step.peak_memory_bytes),
    ...owner_cells(phase.memory),
  );
}

function plain_row(name: string, phase: Phase, most: number): HTMLElement {
  const cell = (text: string): Child => h("td", { class: "number" }, text);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name),
    cell(si(phase.latency_cycles)),
    cell(si(phase.latency_cycles)), // a whole step has all of its critical path
    cell(""),
    cell(energy(phase.energy_pj)),
    cell(si(phase.macs)),
    cell(bytes(phase.peak_memory_bytes)),
    owner_bar(phase.memory, most),
    ...owner_cells(phase.memory),
  );
}

/// How much is moved for which reason; null without transfers.
export function transfer_summary(step: Step): HTMLElement | null {
  const count = new Array<number>(kTransferKinds.length).fill(0);
  const bits = [...count];
  for (const transfer of step.transfers) {
    if (count[transfer.kind] === undefined) continue;
    count[transfer.kind]! += 1;
    bits[transfer.kind]! += transfer.bits;
  }
  const parts = kTransferKinds.map((kind, i) => `${kind} ${bytes(bits[i]! / 8)} in ${exact(count[i]!)}`);
  return step.transfers.length === 0 ? null : h("p", { class: "muted note" }, `Transfers: ${parts.join(" \u00b7 ")}`);
}

const kMostListed = 64;

function meter(fraction: number): HTMLElement {
  const width = `width: ${(Math.min(Math.max(fraction, 0), 1) * 100).toFixed(1)}%`;
  return h(
    "td",
    { class: "number share" },
    percent(fraction),
    h("span", { class: "share-bar", style: `background: var(--accent); ${width}` }),
  );
}

/// Cores, links and ports by how busy they are; beyond kMostListed only the busiest.
export function resource_tables(step: Step): HTMLElement {
  const by_use = <T extends Core | Link>(items: T[]): T[] =>
    items.length <= kMostListed
      ? items
      : [...items].sort((a, b) => b.busy_cycles - a.busy_cycles || a.id - b.id).slice(0, kMostListed);
  const cores = by_use(step.cores).map((core) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, shown(core_label(core), 40)),
      h("td", {}, shown(core.kind, 30)),
      meter(core.utilisation),
      h("td", { class: "number" }, energy(core.energy_pj)),
      h(
        "td",
        { class: "number" },
        core.capacity_bytes > 0
          ? `${bytes(core.peak_memory_bytes)} of ${bytes(core.capacity_bytes)}`
          : bytes(core.peak_memory_bytes),
      ),
    ),
  );
  const links = by_use(step.links).map((link) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, shown(link.name, 40)),
      h("td", {}, "link"),
      meter(link.utilisation),
      h("td", { class: "number" }, energy(link.energy_pj)),
      h("td", { class: "number" }, `${bytes(link.bits / 8)} moved`),
    ),
  );
  const ports = step.ports.map((port) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, shown(port.name, 40)),
      h("td", {}, "port"),
      meter(port.utilisation),
      h("td", { class: "number" }, "\u2013"),
      h("td", { class: "number" }, `${bytes(port.bits / 8)} moved`),
    ),
  );
  const head = ["Name", "Kind", "Busy", "Energy", "Memory"].map((name, i) =>
    h("th", { scope: "col", class: i < 2 ? "" : "number" }, name),
  );
  const left_out = step.cores.length + step.links.length - cores.length - links.length;
  return h(
    "div",
    { class: "scroll-y" },
    h("table", { class: "figures" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...cores, ...links, ...ports)),
    left_out > 0 ? h("p", { class: "muted" }, `${left_out} less busy ones are not listed.`) : null,
  );
}

export function provenance(entries: Result["provenance"]): HTMLElement {
  if (entries.length === 0) return h("footer");
  const list = h("dl", { class: "provenance" });
  for (const [key, value] of entries) {
    const lines = typeof value === "string" ? [value] : value.map(([name, inner]) => `${name}: ${inner}`);
    list.append(h("dt", {}, shown(label(key), 60)));
    list.append(h("dd", {}, ...lines.map((line) => h("div", {}, shown(line, 400)))));
  }
  return h("footer", {}, h("h2", {}, "Provenance"), list);
}
