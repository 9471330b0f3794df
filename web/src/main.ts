// The viewer of report.html. Reads the result from the element #monet-data and builds the page into #report.
// Read data.ts for what is shown, time_view.ts for how the charts stay together.
import { bound_panel } from "./bound_panel";
import { cluster_page } from "./cluster_page";
import { compare_page } from "./compare_page";
import { last_cycle, read_provenance, read_result, type Result, type Step } from "./data";
import { list, object } from "./json";
import { h, shown } from "./dom";
import { energy_chart } from "./energy_chart";
import { explore_page } from "./explore_page";
import { label } from "./format";
import { Gantt } from "./gantt";
import { gradient_panel } from "./gradient_panel";
import { LayerTable } from "./layer_table";
import { live_memory, MemoryChart, onchip_memory } from "./memory_chart";
import { Overview } from "./overview";
import { parallelism_page } from "./parallelism_page";
import { warning_panel } from "./parts";
import { read_searches } from "./search_data";
import { search_panel, worse_panel } from "./search_panel";
import { result_comparison_page } from "./result_comparison_page";
import { header, key_figures, phase_table, provenance, resource_tables, transfer_summary } from "./summary";
import { study_page } from "./study_page";
import { phase_variable } from "./theme";
import { TimeView } from "./time_view";

function button(text: string, title: string, action: () => void, kind = "tool zoom"): HTMLButtonElement {
  const made = h("button", { type: "button", class: kind, title }, text);
  made.addEventListener("click", action);
  return made;
}

/// The phases as a legend that zooms to them, and the zoom buttons.
function timeline_tools(step: Step, view: TimeView): HTMLElement {
  const middle = () => (view.start + view.end) / 2;
  const tools = h("div", { class: "controls" });
  for (const phase of step.phases) {
    const name = shown(label(phase.phase), 40);
    const zoom = () => view.show(phase.start_cycle, phase.start_cycle + phase.latency_cycles);
    const show = button(name, `Zoom to ${name}`, zoom, "tool"); // on paper the legend
    show.prepend(h("span", { class: "swatch", style: `background: var(${phase_variable(phase.phase)})` }));
    tools.append(show);
  }
  const known = new Set(step.phases.map((phase) => phase.phase));
  for (const phase of [...new Set(step.layers.map((layer) => layer.phase))]
    .filter((name) => !known.has(name))
    .slice(0, 8)) {
    const swatch = h("span", { class: "swatch", style: `background: var(${phase_variable(phase)})` });
    tools.append(h("span", { class: "legend-item" }, swatch, shown(label(phase), 40)));
  }
  tools.append(
    h("span", { class: "spring" }),
    h("span", { class: "muted hint" }, "wheel or drag zooms, shift pans, click selects"),
    button("\u2212", "Zoom out", () => view.zoom(1 / 0.6, middle())),
    button("+", "Zoom in", () => view.zoom(0.6, middle())),
    button("Show all", "Show the whole step", () => view.reset()),
  );
  return tools;
}

function timeline_section(
  step: Step,
  view: TimeView,
  gantt: Gantt,
  memory: MemoryChart,
  onchip: MemoryChart | null,
  overview: Overview,
): HTMLElement {
  const hidden = gantt.hidden_links;
  return h(
    "section",
    { class: "panel", id: "timeline" },
    h("h2", {}, "Timeline"),
    timeline_tools(step, view),
    overview.canvas,
    gantt.element,
    transfer_summary(step),
    hidden > 0
      ? h(
          "p",
          { class: "muted note" },
          `${hidden} link${hidden === 1 ? "" : "s"} without transfers or among the least busy not shown.`,
        )
      : null,
    h("h3", {}, "Memory by owner"),
    memory.element,
    ...(onchip === null ? [] : [h("h3", {}, "Memory on the chip by tensor"), onchip.element]),
  );
}

class Report {
  private readonly root: HTMLElement;
  private readonly content = h("div", { class: "content" });
  private stop = new AbortController();
  private table: LayerTable | null = null;

  constructor(
    root: HTMLElement,
    private readonly result: Result,
  ) {
    this.root = root;
  }

  mount(): void {
    const searches = read_searches(this.result.optimise);
    const worse = searches === null ? null : worse_panel(searches);
    this.root.replaceChildren(
      header(this.result),
      ...(worse === null ? [] : [worse]),
      this.make_switch(),
      this.content,
      provenance(this.result.provenance),
    );
    this.show(this.result.step);
  }

  private make_switch(): HTMLElement {
    const { step, inference } = this.result;
    const bar = h("nav", { class: "switch", "aria-label": "What is shown" });
    if (inference === null) return bar;
    const choices: [string, Step, string][] = [
      ["training", step, "Training step"],
      ["inference", inference, "Inference alone"],
    ];
    for (const [value, shown_step, text] of choices) {
      const input = h("input", { type: "radio", name: "step", value, checked: shown_step === step });
      input.addEventListener("change", () => this.show(shown_step));
      bar.append(h("label", {}, input, h("span", {}, text)));
    }
    return bar;
  }

  private show(step: Step): void {
    this.stop.abort();
    this.stop = new AbortController();
    const { signal } = this.stop;
    const other = step === this.result.step ? this.result.inference : null;
    const view = new TimeView(last_cycle(step));
    const table = new LayerTable(step, view, this.table?.filter_text ?? "", signal);
    this.table = table;
    const gantt = new Gantt(step, view, (layer) => view.select(layer), signal);
    const compare = other === null ? null : { name: "inference alone", bytes: other.peak_memory_bytes };
    const memory = new MemoryChart(live_memory(step), step.latency_cycles, view, compare, signal);
    const held = onchip_memory(step);
    const onchip = held === null ? null : new MemoryChart(held, step.latency_cycles, view, null, signal);
    const bounds = bound_panel(step);
    const gradients = gradient_panel(step);
    const searches = step === this.result.step ? read_searches(this.result.optimise) : null;
    const overview = new Overview(step, view, signal);
    this.content.replaceChildren(
      key_figures(step, other),
      h("section", { class: "panel" }, h("h2", {}, "Phases"), phase_table(step, other)),
      timeline_section(step, view, gantt, memory, onchip, overview),
      ...(bounds === null ? [] : [bounds]),
      ...(gradients === null ? [] : [gradients]),
      ...(searches === null ? [] : [search_panel(searches)]),
      h(
        "div",
        { class: "two" },
        h(
          "section",
          { class: "panel", id: "energy" },
          h("h2", {}, "Energy by phase and component"),
          energy_chart(step, other),
        ),
        h("section", { class: "panel", id: "resources" }, h("h2", {}, "Cores and links"), resource_tables(step)),
      ),
      h("section", { class: "panel" }, h("h2", {}, "Layers"), table.element),
    );
    this.root.dataset["shown"] = step.kind;
    // For the browser test: where bars are, so that it can point at them.
    Object.defineProperty(window, "__monet", {
      configurable: true,
      value: { rows: () => gantt.row_boxes(), locate: (row: number, bar: number) => gantt.locate(row, bar) },
    });
  }
}

/// The page of what the data says it is: a step's result unless it says otherwise.
function mount(root: HTMLElement, data: unknown): void {
  const from = object(data);
  const pages = {
    explore: explore_page,
    "explore-comparison": compare_page,
    comparison: result_comparison_page,
    cluster: cluster_page,
    parallelism: parallelism_page,
    "backward-study": study_page,
  };
  const kind = Object.keys(pages).find((name) => name === from["kind"]) as keyof typeof pages | undefined;
  if (kind === undefined) return new Report(root, read_result(data)).mount();
  root.replaceChildren(...pages[kind](from, new AbortController().signal), provenance(read_provenance(from["provenance"])));
  root.dataset["shown"] = kind;
}

function start(): void {
  const root = document.getElementById("report");
  const data = document.getElementById("monet-data");
  if (root === null) return;
  try {
    const result: unknown = JSON.parse(data?.textContent ?? "");
    mount(root, result);
    const warnings = warning_panel(list(object(result)["warnings"]));
    if (warnings !== null) root.insertBefore(warnings, root.children[1] ?? null);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    root.replaceChildren(h("p", { role: "alert" }, `This report's data cannot be shown: ${reason}`));
  }
}

start();
