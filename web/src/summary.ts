// The head of the report: name, key figures of the step beside inference alone, the phases' table, cores and links.
import { core_label, kTransferKinds, type Phase, type Result, type Step } from "./data";
import { kCards, kOwners, kPhaseColumns, type ByOwner, type CoreFigures, type LinkFigures } from "./figures";
import { h, shown } from "./dom";
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

type Card = (typeof kCards)[number];

/// Values with their units, by unit.
const kShow: Record<string, (value: number) => string> = {
  cycles: (value) => `${si(value)} cycles`,
  pJ: energy,
  bytes,
  s: seconds,
  "1": percent,
  "mm\u00b2": (value) => (value > 0 ? `${si(value)} mm\u00b2` : "not given"),
};

function show(value: number, unit: string): string {
  return (kShow[unit] ?? si)(value);
}

/// What a card says below its value, by the figure's key.
const kDetails: Record<string, (step: Step) => string> = {
  latency_cycles: (step) => (step.latency_seconds === null ? "" : seconds(step.latency_seconds)),
  energy_pj: (step) => {
    if (step.latency_seconds !== null && step.latency_seconds > 0)
      return `${si((step.energy_pj * 1e-12) / step.latency_seconds, "W")} on average`;
    return step.macs.total > 0 ? `${energy(step.energy_pj / step.macs.total)} per MAC` : "";
  },
  peak_memory_bytes: (step) => {
    const most = kOwners.reduce((a, b) => (step.memory[b] > step.memory[a] ? b : a));
    return step.peak_memory_bytes > 0 ? `${percent(step.memory[most] / step.peak_memory_bytes)} ${label(most)}` : "";
  },
  total: (step) => (step.latency_cycles > 0 ? `${si(step.macs.total / step.latency_cycles)} per cycle` : ""),
};

/// One card per figure: the step's, and below it inference alone with how many times it the step takes.
export function key_figures(step: Step, inference: Step | null): HTMLElement {
  const cards = kCards.map((figure) => {
    const value = figure.value(step);
    const card = h(
      "div",
      { class: "card", title: `${exact(value)} ${figure.unit}` },
      h("div", { class: "card-label" }, figure.label, figure.compare ? ratio_badge(value, inference, figure) : null),
      h("div", { class: "card-value" }, show(value, figure.unit)),
      h("div", { class: "card-detail" }, kDetails[figure.key]?.(step) || "\u00a0"),
    );
    if (inference !== null && figure.compare) card.append(comparison(figure, value, inference));
    if (!figure.compare) card.classList.add("narrow");
    return card;
  });
  return h("section", { class: "cards", "aria-label": "Key figures" }, ...cards);
}

function comparison(figure: Card, value: number, inference: Step): HTMLElement {
  const alone = figure.value(inference);
  const share = value > 0 ? Math.min(1, alone / value) : 0;
  return h(
    "div",
    { class: "card-compare", title: `inference alone: ${exact(alone)} ${figure.unit}` },
    h("div", { class: "card-bar" }, h("span", { style: `width: ${(share * 100).toFixed(1)}%` })),
    h("div", {}, h("span", { class: "card-name" }, "inference alone "), h("b", {}, show(alone, figure.unit))),
  );
}

function ratio_badge(value: number, inference: Step | null, figure: Card): HTMLElement | null {
  const alone = inference === null ? 0 : figure.value(inference);
  if (!(alone > 0)) return null;
  const ratio = value / alone;
  return h(
    "span",
    { class: "ratio", title: "times inference alone" },
    `${ratio.toFixed(ratio >= 9.995 ? 0 : 2)}\u00d7 inference`,
  );
}

/// A whole step in the form of a phase, with all of its critical path.
function as_phase(step: Step): Phase {
  const { latency_cycles } = step;
  return { ...step, phase: step.kind, start_cycle: 0, critical_path_cycles: latency_cycles, busy_cycles: latency_cycles, macs: step.macs.total };
}

export function phase_table(step: Step, inference: Step | null): HTMLElement {
  const head = ["Phase", ...kPhaseColumns.map((column) => column.title), "", ...kOwners.map(label)];
  const body = h("tbody");
  for (const phase of step.phases) body.append(phase_row(step, phase));
  const foot = h("tfoot", {}, plain_row("Whole step", as_phase(step), step.peak_memory_bytes));
  if (inference !== null) {
    const row = plain_row("Inference alone", as_phase(inference), step.peak_memory_bytes);
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

/// A number of the table, whose head names the unit of cycles.
function phase_value(phase: Phase, column: (typeof kPhaseColumns)[number]): string {
  return column.unit === "cycles" ? si(phase[column.key]) : show(phase[column.key], column.unit);
}

function phase_row(step: Step, phase: Phase): HTMLElement {
  const variable = phase_variable(phase.phase);
  const cells = kPhaseColumns.map((column) => {
    const text = phase_value(phase, column);
    if (column.whole === null) return h("td", { class: "number" }, text);
    const total = column.whole(step);
    return share_cell(text, total > 0 ? phase[column.key] / total : 0, variable);
  });
  return h(
    "tr",
    {},
    h(
      "th",
      { scope: "row" },
      h("span", { class: "swatch", style: `background: var(${variable})` }),
      shown(label(phase.phase), 40),
    ),
    ...cells,
    owner_bar(phase.memory, step.peak_memory_bytes),
    ...owner_cells(phase.memory),
  );
}

/// A row of a whole step, which is at work all the time.
function plain_row(name: string, whole: Phase, most: number): HTMLElement {
  const cells = kPhaseColumns.map((column) =>
    h("td", { class: "number" }, column.key === "busy_cycles" ? "" : phase_value(whole, column)),
  );
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name),
    ...cells,
    owner_bar(whole.memory, most),
    ...owner_cells(whole.memory),
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
  const by_use = <T extends CoreFigures | LinkFigures>(items: T[]): T[] =>
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
