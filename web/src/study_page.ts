// The page of a study of backward passes: published figures beside ours, what the paper finds, and bytes by tensor.
import { kMoved } from "./data";
import { list, number, object, text, type Json } from "./json";
import { h, shown, type Child } from "./dom";
import { table_bytes as bytes } from "./format";
import { drawing, legend, panel, rectangle, stacked_bars, table, type Part } from "./parts";
import { moved_variable } from "./theme";

const kPaper = { name: "paper", variable: "--idle" };
const kOurs = { name: "ours", variable: "--blue" };
const kRange = { name: "ours with every other assumption", variable: "--vermilion" };
const kColumns = ["paper", "ours", "lowest", "highest"];
const kNames: Record<string, string> = { dy: "dY", x: "X", w: "W", dx: "dX", dw: "dW" };
const kTensors: Part[] = kMoved
  .filter((key) => key in kNames)
  .map((key) => ({ key, name: kNames[key] ?? key, variable: moved_variable(key) }));
const kSource =
  "Kim, Na, Lee, Lee, Huh, \u201cImproving Data Reuse in NPU On-chip Memory with Interleaved Gradient Order for DNN Training\u201d, MICRO 2023.";

function figure_text(value: unknown, is_factor: boolean): string {
  if (typeof value !== "number") return "\u2013";
  return is_factor ? `${value.toFixed(2)}\u00d7` : value.toFixed(1);
}

/// Minimum and maximum of all figures of a unit, 0 and 1 included.
function extent(figures: Json[], unit: unknown): [number, number] {
  let [min, max] = [0, 1];
  for (const figure of figures.filter((one) => one["unit"] === unit))
    for (const value of kColumns.map((key) => number(figure[key]))) [min, max] = [Math.min(min, value), Math.max(max, value)];
  return [min, max];
}

/// The paper's bar, ours below it, and the range of ours.
function figure_bars(figure: Json, [min, max]: [number, number]): SVGElement {
  const width = 360;
  const picture = drawing(width, 26, "paper and ours");
  const x = (value: number) => (width * (value - min)) / (max - min);
  const show = (key: string) => figure_text(figure[key], figure["unit"] === "factor");
  const bar = (key: string, y: number, variable: string) => {
    const value = figure[key];
    if (typeof value !== "number") return;
    const box = { x: Math.min(x(0), x(value)), y, width: Math.abs(x(value) - x(0)), height: 9 };
    picture.append(rectangle(box, variable, `${key}: ${show(key)}`));
  };
  bar("paper", 2, kPaper.variable);
  bar("ours", 13, kOurs.variable);
  const { lowest, highest } = figure;
  if (typeof lowest === "number" && typeof highest === "number") {
    const box = { x: x(lowest), y: 16.5, width: Math.max(1, x(highest) - x(lowest)), height: 2 };
    picture.append(rectangle(box, kRange.variable, `${show("lowest")} to ${show("highest")}`));
  }
  return picture;
}

function figures_panel(figures: Json[]): HTMLElement {
  const note = "Reductions of the time of forward and backward pass in percent, averages over the networks; shares in percent.";
  const rows = figures.map((figure) => [
    shown(text(figure["text"])),
    ...kColumns.map((key) => figure_text(figure[key], figure["unit"] === "factor")),
    figure_bars(figure, extent(figures, figure["unit"])),
  ]);
  const parts = [h("p", { class: "muted note" }, note), legend([kPaper, kOurs, kRange]), table(["", ...kColumns, ""], rows, "full narrow")];
  return panel("The paper\u2019s figures and ours", ...parts);
}

function statements_panel(study: Json): HTMLElement {
  const rows = list(study["statements"]).map(object).map(({ text: claim, holds }) => {
    const word = typeof holds !== "boolean" ? "unknown" : holds ? "yes" : "no";
    return [shown(text(claim)), h("span", { class: word === "yes" ? "good" : word === "no" ? "bad" : "" }, word)];
  });
  return panel("What the paper finds", table([], rows, "full narrow"));
}

function networks_panel(networks: Json[]): HTMLElement {
  const head = ["", "NPU", "interleave", "algorithm-1", "best of three", "with partition", "best sequential", "joint"];
  const rows = networks.map((network) => {
    const techniques = object(network["techniques"]);
    const reduction = (of: unknown) => figure_text(object(of)["reduction_percent"], false);
    return [
      shown(text(network["name"]), 80),
      shown(text(network["machine"]), 40),
      ...["interleave", "algorithm-1", "best-of-three"].map((name) => reduction(techniques[name])),
      reduction(network["partition"]),
      ...["best-sequential", "joint"].map((name) => reduction(techniques[name])),
    ];
  });
  return panel("Network by network", table(head, rows));
}

/// Bytes of the five tensors by technique; the longest bar of a network is as wide as its picture.
function network_bytes(network: Json): HTMLElement {
  const techniques = Object.entries(object(network["techniques"])).map(([name, of]): [string, Json] => [name, object(of)]);
  const rows = techniques.map(([name, of]) => {
    const moved = object(of["tensor_bytes"]);
    return { name: shown(name, 20), values: kTensors.map((tensor) => number(moved[tensor.key])), text: bytes(number(of["dram_bytes"])) };
  });
  const max = techniques.reduce((high, [, of]) => Math.max(high, number(of["dram_bytes"])), 1);
  const options = { label: "bytes by technique", max, left: 130, width: 560, show: bytes };
  const name = `${shown(text(network["name"]), 80)}, ${shown(text(network["machine"]), 40)} NPU`;
  return h("details", {}, h("summary", {}, name), stacked_bars(kTensors, rows, options));
}

function assumptions_panel(study: Json, figures: Json[]): HTMLElement {
  const words = (value: unknown) => h("span", {}, shown(text(value), 400));
  const open = list(study["ambiguities"]).map(object).map((one): Child[] => [
    `(${shown(text(one["letter"]), 20)}) ${shown(text(one["what"]))}`,
    words(one["ours"]),
    words(list(one["others"]).map(text).join("; ")),
  ]);
  const tried = list(figures[0]?.["assumptions"]).map(object).map((one) => `(${shown(text(one["ambiguity"]), 20)}) ${shown(text(one["says"]))}`);
  const rows = figures.map((figure) => {
    const values = [figure["ours"], ...list(figure["assumptions"]).map((one) => object(one)["value"])];
    return [shown(text(figure["text"])), ...values.map((value) => figure_text(value, figure["unit"] === "factor"))];
  });
  return panel(
    "What the paper leaves open",
    table(["", "here", "also tried"], open, "words"),
    h("details", {}, h("summary", {}, "Every figure with every assumption"), table(["", "ours", ...tried], rows, "wrap full")),
  );
}

export function study_page(study: Json): HTMLElement[] {
  const figures = list(study["figures"]).map(object);
  const networks = list(study["networks"]).map(object);
  const infeasible = list(study["infeasible"]).map(object).map(({ machine, why }) =>
    h("p", { class: "bad" }, `Infeasible on the ${shown(text(machine), 40)} NPU: ${shown(text(why), 400)}`),
  );
  return [
    h("header", {}, h("h1", {}, shown(text(study["name"])) || "Study"), h("p", { class: "muted" }, kSource), ...infeasible),
    figures_panel(figures),
    statements_panel(study),
    networks_panel(networks),
    panel("What crosses between chip and DRAM in the backward pass", legend(kTensors), ...networks.map(network_bytes)),
    assumptions_panel(study, figures),
  ];
}
