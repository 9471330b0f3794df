// Made-up explorations of known shape: costs are simple formulas of the parameters.

const kObjectives = { latency: "latency_cycles", energy: "energy_pj", memory: "peak_memory_bytes", area: "area_mm2", power: "peak_power_w", error: "error" };
const kRuns = ["inference", "training"];

function figures_of(values, run) {
  const [pe, width, memory, extra] = values;
  const work = run === "training" ? 3e8 : 1e8;
  return {
    latency_cycles: Math.round(work / (pe * width) + work / (10 * memory)),
    energy_pj: work * (3 + 0.02 * width + 0.001 * memory + (extra === "fast" ? 0.5 : 0)) * (1 + 1 / (pe * width)),
    peak_memory_bytes: run === "training" ? 4 << 20 : 1 << 20,
  };
}

/// The front of the first two objectives, equal designs included, by brute force over the sorted list.
function front_of(designs, keys) {
  const sorted = [...designs].sort((a, b) => a[keys[0]] - b[keys[0]] || a[keys[1]] - b[keys[1]] || a.id - b.id);
  const front = [];
  for (const design of sorted) {
    const last = front[front.length - 1];
    const same = last !== undefined && keys.every((key) => last[key] === design[key]);
    if (last === undefined || design[keys[1]] < last[keys[1]] || same) front.push(design);
  }
  return front;
}

/// `has_error`: with the metrics of short trainings.
function make(name, sizes, names, reason, has_error = false) {
  const numbers = (count, unit) => Array.from({ length: count }, (_, i) => unit * (i + 1));
  const parameters = [
    { name: names[0], values: numbers(sizes[0], 4) },
    { name: names[1], values: numbers(sizes[1], 8) },
    { name: names[2], values: numbers(sizes[2], 64) },
    { name: names[3], values: ["fast", "small"] },
  ];
  const rows = [];
  const designs = { inference: [], training: [] };
  let infeasible = 0;
  const size = parameters.reduce((product, parameter) => product * parameter.values.length, 1);
  for (let id = 0; id < size; ++id) {
    let rest = id;
    const values = [...parameters].reverse().map(({ values: of }) => [of[rest % of.length], (rest = Math.floor(rest / of.length))][0]).reverse();
    const area = values[0] * values[1] * 0.01 + values[2] * 0.02;
    const fits = area < 0.8 * (parameters[0].values.at(-1) * parameters[1].values.at(-1) * 0.01 + parameters[2].values.at(-1) * 0.02);
    infeasible += fits ? 0 : 1;
    const row = [id, ...values, fits ? null : 0, area, 0, 0];
    const metrics = has_error ? { error: 0.5 / values[1] + (values[3] === "fast" ? 0.02 : 0), gradients_flushed: 0.001 } : {};
    for (const run of kRuns) {
      const figures = figures_of(values, run);
      row.push(...Object.values(figures).map((value) => (fits ? value : null)));
      const chosen = Object.fromEntries(values.map((value, i) => [parameters[i].name, value]));
      if (fits) designs[run].push({ id, parameters: chosen, ...figures, area_mm2: area, peak_power_w: 0, ...metrics });
    }
    row.push(...Object.values(metrics).map((value) => (fits ? value : null)));
    rows.push(row);
  }
  const fronts = {};
  const best = {};
  for (const run of kRuns) {
    const front = front_of(designs[run], ["latency_cycles", "energy_pj"]);
    fronts[`${run}: latency, energy`] = { run, objectives: ["latency", "energy"], hypervolume: 0.9, designs: front };
    best[run] = {};
    for (const objective of ["latency", "energy", "area", ...(has_error ? ["error"] : [])])
      best[run][objective] = designs[run].reduce((a, b) => (b[kObjectives[objective]] < a[kObjectives[objective]] ? b : a));
  }
  const effect = (share) => ({ designs: size - infeasible, deviation: 1, together: 0.1, parameters: parameters.map(({ name: of }, i) => ({ name: of, share: i === 0 ? share : 0.05, values: [] })) });
  const sensitivity = Object.fromEntries(kRuns.map((run) => [run, { latency: effect(0.7), energy: effect(0.3) }]));
  return {
    schema_version: 1,
    kind: "explore",
    name,
    space: { parameters, size, budgets: {}, content_hash: "0123456789abcdef" },
    runs: kRuns,
    strategy: "exhaustive",
    seed: 1,
    budget: 0,
    designs: size,
    excluded: 0,
    evaluated: size - infeasible,
    infeasible,
    skipped_by_bound: 0,
    interrupted: false,
    seconds: 1.5,
    fronts,
    best,
    reasons: infeasible > 0 ? [{ reason, designs: infeasible, example: { id: 1, reason } }] : [],
    columns: ["id", ...parameters.map((parameter) => parameter.name), "reason", "area_mm2", "peak_power_w", "frequency_hz", ...kRuns.flatMap((run) => ["latency_cycles", "energy_pj", "peak_memory_bytes"].map((key) => `${run} ${key}`)), ...(has_error ? ["error", "gradients_flushed"] : [])],
    rows_left_out: 0,
    rows,
    sensitivity,
    reports: [String(best.training.latency.id)],
    provenance: { version: "0.1.0", git_hash: "0123456", seed: 1, inputs: { "toy.yaml": "0" }, options: {} },
  };
}

export function explored() {
  return make("toy space", [6, 5, 4], ["pe", "width", "memory", "kind"], "area # mm2 is above the budget of # mm2", true);
}

export function explored_large() {
  return make("large space", [20, 25, 20], ["pe", "width", "memory", "kind"], "too large");
}

export function explored_hostile() {
  const bad = "</script><img src=x onerror=window.__hacked=1>";
  return make(bad, [3, 3, 3], [bad, "__proto__", "a\u202eb", "x".repeat(300)], bad);
}

export function compared() {
  const from = explored();
  const side = (run) => ({ label: `toy.json (${run})`, name: from.name, run, content_hash: "0" });
  const of = (run) => ({ hypervolume: 0.5, dominated: run === "training" ? 4 : 0, designs: from.fronts[`${run}: latency, energy`].designs });
  const best = ["latency", "energy", "area"].map((objective) => ({
    objective,
    a: from.best.inference[objective],
    b: from.best.training[objective],
    b_over_a: 3,
    best_of_a_in_b: 1,
    best_of_b_in_a: null,
  }));
  const front = { objectives: ["latency", "energy"], latency_in: "cycles", reference: [1, 1], shared: 2, a: of("inference"), b: of("training") };
  return { schema_version: 1, kind: "explore-comparison", name: "inference against training", pairs: [{ a: side("inference"), b: side("training"), fronts: { "latency, energy": front }, best }] };
}
