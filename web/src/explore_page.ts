// The page of an exploration: scatters of the runs side by side, parallel coordinates whose brushes filter them, the
// designs of a front, the best ones, what each parameter decides, and why designs are infeasible.
import type { Json } from "./json";
import { DesignTable, design_name, design_parameters } from "./design_table";
import { h, shown } from "./dom";
import { axis_of, front_of, kObjectives, position, read_exploration, type Axis, type Exploration, type Objective } from "./explore_data";
import { exact, percent, si } from "./format";
import { ParallelCoordinates } from "./parallel";
import { Scatter, type Cloud } from "./scatter";
import { Selection } from "./selection";

const kRamp = [0, 1, 2, 3, 4, 5, 6].map((i) => `--ramp-${i}`);

interface Choices {
  x: Objective;
  y: Objective;
  colour: string; // an axis' title, an objective, or empty
}

export class ExplorePage {
  readonly element = h("div", { class: "content" });
  private readonly selection: Selection;
  private readonly choices: Choices;
  private readonly scatters: { run: string; scatter: Scatter; note: HTMLElement }[] = [];
  private readonly table: DesignTable;
  private readonly count = h("span", { id: "design-count", role: "status" });
  private readonly reason_cells: HTMLElement[] = [];
  private front = "";

  constructor(
    private readonly found: Exploration,
    private readonly signal: AbortSignal,
  ) {
    this.selection = new Selection(found);
    const first = found.fronts[0]?.objectives ?? [];
    this.choices = { x: first[0] ?? "latency", y: first[1] ?? "energy", colour: "" };
    this.table = new DesignTable(found);
    this.front = found.fronts[0]?.name ?? "";
    const parallel = new ParallelCoordinates(found, this.selection, signal);
    this.element.append(
      this.scatter_panel(),
      this.parallel_panel(parallel),
      this.best_panel(),
      this.front_panel(),
      ...this.effect_panel(),
      ...this.reason_panel(),
    );
    this.selection.subscribe(() => this.update());
    this.update();
    // For the browser test: where axes are, so that it can brush them.
    Object.defineProperty(window, "__explore", {
      configurable: true,
      value: { found, selection: this.selection, x: (a: number) => parallel.x(a), y: (at: number) => parallel.y(at), position },
    });
  }

  private update(): void {
    const { found, selection } = this;
    const brushed = selection.is_all ? "" : " inside the brushes";
    this.count.textContent = `${exact(selection.count)} of ${exact(selection.feasible)} designs${brushed}`;
    for (const { run, scatter, note } of this.scatters) {
      const cloud = this.cloud(run);
      scatter.show(cloud);
      note.textContent = `${cloud.fronts[0]?.rows.length ?? 0} designs on the front`;
    }
    this.reason_cells.forEach((cell, i) => (cell.textContent = exact(selection.infeasible[i]!)));
    const chosen = found.fronts.find((front) => front.name === this.front);
    this.table.show((chosen?.rows ?? []).filter((row) => selection.inside[row] === 1));
  }

  /// An objective's axis in a run; the last one where there is none.
  private axis(run: string, objective: Objective): Axis {
    return axis_of(this.found.axes, run, objective) ?? this.found.axes[this.found.axes.length - 1]!;
  }

  private cloud(run: string): Cloud {
    const { found, selection, choices } = this;
    const x = this.axis(run, choices.x);
    const y = this.axis(run, choices.y);
    const colour = found.axes.find((axis) => axis.title === choices.colour) ?? (choices.colour === "" ? null : axis_of(found.axes, run, choices.colour as Objective));
    const shade = colour === null ? null : Uint8Array.from(colour.values, (value) => shade_of(position(colour, value)));
    const front = front_of(x.values, y.values, (row) => found.reason[row]! < 0);
    const fronts = [{ rows: front, variable: "--front", is_dashed: false, is_walked: true }];
    if (!selection.is_all) {
      const inner = front_of(x.values, y.values, (row) => selection.inside[row] === 1);
      fronts.push({ rows: inner, variable: "--text", is_dashed: true, is_walked: false });
    }
    return {
      label: `${run}: ${choices.y} against ${choices.x}; left and right walk along the front`,
      x,
      y,
      shade,
      ramp: shade === null ? ["--accent"] : kRamp,
      inside: selection.inside,
      fronts,
      describe: (row) => ({
        title: `Design ${found.ids[row]}`,
        lines: found.axes.map((axis): [string, string] => [axis.title, axis.show(axis.values[row]!)]),
      }),
    };
  }

  private choose(id: string, title: string, options: [string, string][], chosen: string, set: (value: string) => void): HTMLElement {
    const select = h("select", { id, class: "tool" });
    for (const [value, text] of options) select.append(h("option", { value, selected: value === chosen }, shown(text, 60)));
    select.addEventListener("change", () => {
      set(select.value);
      this.update();
    });
    return h("label", { class: "choice" }, title + " ", select);
  }

  private scatter_panel(): HTMLElement {
    const { found, choices } = this;
    const objectives = kObjectives.filter((name) => found.axes.some((axis) => axis.objective === name));
    const names = objectives.map((name): [string, string] => [name, name]);
    const colours: [string, string][] = [["", "nothing"], ...names, ...found.parameters.map((p): [string, string] => [p.name, p.name])];
    const controls = h(
      "div",
      { class: "controls" },
      this.choose("scatter-x", "Across", names, choices.x, (value) => (choices.x = value as Objective)),
      this.choose("scatter-y", "Up", names, choices.y, (value) => (choices.y = value as Objective)),
      this.choose("scatter-colour", "Colour by", colours, "", (value) => (choices.colour = value)),
      h("span", { class: "ramp", "aria-hidden": "true" }, "least ", ...kRamp.map((name) => h("i", { style: `background: var(${name})` })), " most"),
      h("span", { class: "spring" }),
      h("span", { class: "muted hint" }, "point at a design, or walk along the front with the arrow keys"),
    );
    const pictures = found.runs.map((run) => {
      const note = h("figcaption", {});
      const scatter = new Scatter(this.cloud(run), this.signal);
      this.scatters.push({ run, scatter, note });
      return h("figure", { class: "chart", "data-run": run }, h("h3", {}, shown(run, 40)), scatter.element, note);
    });
    const left_out = found.left_out > 0 ? h("p", { class: "muted note" }, `A sample: ${exact(found.left_out)} designs that are on no front are not in this page.`) : null;
    const body = found.ids.length === 0 ? [h("p", {}, "No design was evaluated.")] : [controls, h("div", { class: "two" }, ...pictures), left_out];
    return h("section", { class: "panel", id: "fronts" }, h("h2", {}, "Fronts"), ...body);
  }

  private parallel_panel(parallel: ParallelCoordinates): HTMLElement {
    const clear = h("button", { type: "button", class: "tool", id: "clear-brushes" }, "Clear brushes");
    clear.addEventListener("click", () => this.selection.clear());
    return h(
      "section",
      { class: "panel", id: "parallel" },
      h("h2", {}, "Parameters and objectives"),
      h(
        "div",
        { class: "controls" },
        this.count,
        h("span", { class: "spring" }),
        h("span", { class: "muted hint" }, "drag along an axis to brush it, click it to clear"),
        clear,
      ),
      parallel.element,
    );
  }

  private front_panel(): HTMLElement {
    const { found } = this;
    const options = found.fronts.map((front): [string, string] => [front.name, front.name]);
    const volumes = found.fronts.map((front) =>
      h("tr", {}, h("th", { scope: "row" }, shown(front.name, 80)), h("td", { class: "number" }, String(front.rows.length)), h("td", { class: "number" }, front.hypervolume === null ? "\u2013" : front.hypervolume.toFixed(4))),
    );
    const head = h("tr", {}, h("th", { scope: "col" }, "Front"), h("th", { scope: "col", class: "number" }, "Designs"), h("th", { scope: "col", class: "number", title: "Part of the box from the best to the worst values of all designs that the front dominates" }, "Hypervolume"));
    return h(
      "section",
      { class: "panel", id: "front-designs" },
      h("h2", {}, "Designs on fronts"),
      h("div", { class: "scroll-x" }, h("table", { class: "figures narrow" }, h("thead", {}, head), h("tbody", {}, ...volumes))),
      h("div", { class: "controls gap" }, this.choose("front", "Front of", options, this.front, (value) => (this.front = value))),
      this.table.element,
    );
  }

  /// The best of each run and objective, and how far it is from the best of the other runs.
  private best_panel(): HTMLElement {
    const { found } = this;
    const rows = found.best.map(({ run, objective, row }) => {
      const elsewhere = found.runs
        .filter((other) => other !== run && axis_of(found.axes, run, objective)?.run !== "")
        .map((other) => {
          const axis = axis_of(found.axes, other, objective);
          const best = found.best.find((entry) => entry.run === other && entry.objective === objective);
          return axis === null || best === undefined ? "" : `${other}: ${(axis.values[row]! / axis.values[best.row]!).toFixed(3)}\u00d7 its best`;
        });
      const axis = this.axis(run, objective);
      return h(
        "tr",
        { "data-design": found.ids[row]! },
        h("th", { scope: "row" }, shown(run, 40)),
        h("td", {}, objective),
        h("td", { class: "number", title: exact(axis.values[row]!) }, axis.show(axis.values[row]!)),
        h("td", { class: "number" }, design_name(found, row)),
        h("td", {}, elsewhere.join(", ")),
        h("td", { class: "wide" }, shown(design_parameters(found, row), 400)),
      );
    });
    const head = ["Run", "Least", "Value", "Design", "The same design in", "Parameters"].map((name, i) =>
      h("th", { scope: "col", class: i === 2 || i === 3 ? "number" : "" }, name),
    );
    const table = h("table", { class: "figures best" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
    return h("section", { class: "panel", id: "best" }, h("h2", {}, "Which design is best for what"), h("div", { class: "scroll-x" }, table));
  }

  private effect_panel(): HTMLElement[] {
    const { effects, parameters } = this.found;
    if (effects.length === 0) return [];
    const bar = (share: number) =>
      h("td", { class: "share" }, h("span", { class: "share-bar", style: `width: ${(100 * Math.min(Math.max(share, 0), 1)).toFixed(1)}%; background: var(--accent)` }), percent(share));
    const rows = parameters.map((parameter, p) =>
      h("tr", {}, h("th", { scope: "row" }, shown(parameter.name, 60)), ...effects.map((effect) => bar(effect.shares[p]!))),
    );
    const together = h("tr", { class: "compare" }, h("th", { scope: "row" }, "together"), ...effects.map((effect) => bar(effect.together)));
    const head = [h("th", { scope: "col" }, "Parameter"), ...effects.map((effect) => h("th", { scope: "col" }, shown(`${effect.run} ${effect.objective}`, 40)))];
    return [
      h(
        "section",
        { class: "panel", id: "effects" },
        h("h2", {}, "What each parameter decides"),
        h("p", { class: "muted" }, "Share of the variance of the objective's logarithm that the parameter explains by itself; together: what no parameter explains alone."),
        h("div", { class: "scroll-x" }, h("table", { class: "figures" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows), h("tfoot", {}, together))),
      ),
    ];
  }

  private reason_panel(): HTMLElement[] {
    const { reasons } = this.found;
    if (reasons.length === 0) return [];
    const rows = reasons.map((reason) => {
      const inside = h("td", { class: "number" });
      this.reason_cells.push(inside);
      return h("tr", {}, h("th", { scope: "row", class: "wide", title: shown(reason.example, 400) }, shown(reason.reason, 300)), h("td", { class: "number" }, si(reason.designs)), inside);
    });
    const head = ["Reason (# stands for numbers)", "Designs", "Inside the brushes"].map((name, i) => h("th", { scope: "col", class: i > 0 ? "number" : "" }, name));
    return [
      h(
        "section",
        { class: "panel", id: "reasons" },
        h("h2", {}, "Why designs are infeasible"),
        h("div", { class: "scroll-y" }, h("table", { class: "figures" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows))),
      ),
    ];
  }
}

function shade_of(at: number): number {
  return at >= 0 ? Math.min(Math.floor(at * kRamp.length), kRamp.length - 1) : 0;
}

export function explore_header(found: Exploration): HTMLElement {
  const counts = found.counts.filter(([name, count]) => count > 0 || name === "evaluated").map(([name, count]) => `${exact(count)} ${name}`);
  const parts = [`strategy ${shown(found.strategy, 40)}, seed ${found.seed}`, ...counts, ...(found.interrupted ? ["interrupted"] : [])];
  return h("header", {}, h("h1", {}, shown(found.name) || "Exploration"), h("p", { class: "muted" }, parts.join(" \u00b7 ")));
}

export function explore_page(result: Json, signal: AbortSignal): HTMLElement[] {
  const found = read_exploration(result);
  return [explore_header(found), new ExplorePage(found, signal).element];
}
