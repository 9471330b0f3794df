// The page of a step on a cluster: key figures, stages over time, where time and memory go, what blocks cost.
import { nanoseconds, picojoules, read_cluster_step, type ClusterStep } from "./cluster_data";
import { list, number, object, text, type Json } from "./json";
import { h, shown, type Child } from "./dom";
import { exact, table_bytes as bytes } from "./format";
import { legend, panel, stacked_bars, table, type Part } from "./parts";
import { kBars, StageGantt } from "./stage_gantt";

const kMaxStages = 64; // drawn
const kMaxDetail = 0.5; // of the step; a longer beginning has no picture of its own

const kShares: Part[] = [
  { key: "compute_ns", name: "compute", variable: "--blue" },
  { key: "recompute_ns", name: "recompute", variable: "--sky" },
  { key: "host_ns", name: "host", variable: "--pink" },
  { key: "collectives_ns", name: "collectives", variable: "--vermilion" },
  { key: "offload_ns", name: "offload", variable: "--wine" },
  { key: "sends_ns", name: "sends", variable: "--orange" },
  { key: "gradients_ns", name: "gradients", variable: "--yellow" },
  { key: "update_ns", name: "update", variable: "--green" },
  { key: "bubble_ns", name: "bubble", variable: "--idle" },
];

/// Owners of a device's memory; they add up to its total.
const kParts: Part[] = [
  { key: "parameters_bytes", name: "parameters", variable: "--owner-parameters" },
  { key: "gradients_bytes", name: "gradients", variable: "--owner-gradients" },
  { key: "optimizer_state_bytes", name: "optimizer state", variable: "--owner-optimizer-state" },
  { key: "stored_activations_bytes", name: "stored activations", variable: "--owner-stored-activations" },
  { key: "temporaries_bytes", name: "temporaries", variable: "--owner-temporaries" },
  { key: "workspace_bytes", name: "workspace", variable: "--owner-workspace" },
];

/// Five significant digits; every digit of large rates.
export function rate(per_second: number): string {
  return per_second < 10000 ? String(Number(per_second.toPrecision(5))) : exact(Math.round(per_second));
}

function memory_text(memory: Json): Child {
  const limit = memory["limit_bytes"];
  const held = bytes(number(memory["largest_bytes"])) + (typeof limit === "number" ? ` of ${bytes(limit)}` : "");
  return memory["fits"] === false ? h("span", { class: "bad" }, `${held}: does not fit`) : held;
}

function summary(from: Json): HTMLElement {
  const cluster = object(from["cluster"]);
  const memory = object(from["memory"]);
  const rows: Child[][] = [
    ["devices", `${exact(number(cluster["devices"]))} of ${shown(text(cluster["name"]), 80)} (${shown(text(cluster["device"]), 80)})`],
    ["strategy", shown(text(object(from["strategy"])["text"]), 200)],
    ["time of a step", nanoseconds(number(from["time_ns"]))],
    ["samples a second", rate(number(from["samples_per_second"]))],
  ];
  const add = (name: string, value: unknown, show: (value: number) => string) => {
    if (typeof value === "number") rows.push([name, show(value)]);
  };
  add("tokens a second", from["tokens_per_second"], rate);
  for (const key of ["mfu", "hfu"]) add(key.toUpperCase(), from[key], (value) => `${(100 * value).toFixed(2)}\u202f%`);
  add("energy", from["energy_pj"], picojoules);
  if (number(memory["host_bytes"]) > 0) add("host's memory of a device, at most", memory["host_bytes"], bytes);
  rows.push(["memory of a device, at most", memory_text(memory)]);
  return table([], rows, "narrow full");
}

/// Indices of the drawn stages: all, or `kMaxStages` evenly from the first to the last.
function drawn_stages(count: number): number[] {
  const drawn = Math.min(count, kMaxStages);
  return Array.from({ length: drawn }, (_, i) => (drawn === count ? i : Math.floor((i * (count - 1)) / (drawn - 1))));
}

function timeline(step: ClusterStep, stages: number[]): HTMLElement {
  const whole = step.makespan;
  const is_cut = step.listed_until < whole;
  const picture = (from: number, to: number, has_sends: boolean) =>
    h("div", { class: "scroll-x" }, new StageGantt(step, { stages, from, to, has_sends }).element);
  const parts: Child[] = [legend(kBars)];
  if (is_cut) parts.push(h("p", { class: "bad" }, `Of this long step only passes that begin before ${nanoseconds(step.listed_until)} are drawn.`));
  parts.push(picture(0, whole, false));
  // Until stage 0's first backward pass the pipeline fills.
  const first = step.passes.find((pass) => pass.stage === 0 && pass.kind === 1);
  const detail = first === undefined ? whole : 1.5 * first.end;
  if (detail < kMaxDetail * whole) {
    parts.push(h("h3", {}, "Its beginning"), picture(0, detail, true));
    if (!is_cut) parts.push(h("h3", {}, "Its end"), picture(whole - detail, whole, true));
  }
  return panel("Stages over time", ...parts);
}

function values_of(parts: Part[], from: Json): number[] {
  return parts.map((part) => number(from[part.key]));
}

function shares(step: ClusterStep, stages: number[], time: number): HTMLElement {
  const rows = stages.map((stage) => ({ name: `stage ${stage}`, values: values_of(kShares, step.stages[stage]!.share), text: "" }));
  const show = (part: number) => `${nanoseconds(part)}, ${((100 * part) / Math.max(time, 1)).toFixed(2)}\u202f%`;
  const options = { label: "time by stage", max: time, left: 70, width: 880, show };
  return panel("Where the time goes", legend(kShares), stacked_bars(kShares, rows, options));
}

function memories(step: ClusterStep, stages: number[], memory: Json): HTMLElement {
  const limit = memory["limit_bytes"];
  const rows = stages.map((stage) => {
    const held = step.stages[stage]!.memory;
    return { name: `stage ${stage}`, values: values_of(kParts, held), text: bytes(number(held["total_bytes"])) };
  });
  const mark = typeof limit === "number" ? { mark: { value: limit, title: `a device has ${bytes(limit)}` } } : {};
  const max = Math.max(number(memory["largest_bytes"]), number(limit));
  const options = { label: "memory by stage", max, left: 70, width: 880, show: bytes, ...mark };
  return panel("Memory of a device, by stage and owner", legend(kParts), stacked_bars(kParts, rows, options));
}

const kTimes = ["forward_ns", "backward_input_ns", "backward_weight_ns", "recompute_ns", "collectives_ns", "host_ns", "offload_ns", "update_ns"];

function blocks(from: Json): HTMLElement {
  const names = ["forward", "backward input", "backward weight", "recompute", "collectives", "host", "offload", "update"];
  const rows = list(from["blocks"]).map(object).map((block) => [
    shown(text(block["name"]), 80),
    exact(number(block["count"])),
    ...kTimes.map((key) => nanoseconds(number(block[key]))),
    exact(number(block["kernels"])),
    exact(number(block["parameters"])),
    bytes(number(block["stored_activations_bytes"])),
  ]);
  const note = "Of one micro-batch on one device; collectives, host and offload are parts of the passes.";
  const head = ["", "count", ...names, "kernels", "parameters", "stored"];
  return panel("Blocks", h("p", { class: "muted note" }, note), table(head, rows));
}

export function cluster_page(from: Json): HTMLElement[] {
  const step = read_cluster_step(from);
  const stages = drawn_stages(step.stages.length);
  const cut = stages.length < step.stages.length ? `${stages.length} of ${step.stages.length} stages are drawn.` : "";
  return [
    h("header", {}, h("h1", {}, shown(text(from["name"])) || "Step"), h("p", { class: "muted" }, cut || "One training step on a cluster")),
    h("section", { class: "panel" }, summary(from)),
    timeline(step, stages),
    shares(step, stages, number(from["time_ns"])),
    memories(step, stages, object(from["memory"])),
    blocks(from),
  ];
}
