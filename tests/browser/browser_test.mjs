// Opens each report from file:// in headless Chromium, uses it as a person would, and checks what it shows.
// Usage: node browser_test.mjs [--screenshot OUT.png] [--dark] [REPORT.html]..., or --hostile FOLDER; run.sh gives it playwright-core.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { assemble } from "./assemble.mjs";
import { kArguments, page_cpu_ms, settle } from "./browser_tools.mjs";
import { check_brush_speed, check_comparison, check_exploration } from "./explore_checks.mjs";
import * as explorations from "./explore_samples.mjs";
import { check_hostile } from "./hostile_checks.mjs";
import { check_of_page } from "./page_checks.mjs";
import * as pages from "./page_samples.mjs";
import * as samples from "./samples.mjs";

const require = createRequire(path.resolve(process.env.MODULES ?? "node_modules", "x.js"));
const { chromium } = require("playwright-core");

const kGutter = 136; // px, as in web/src/surface.ts
let checks = 0;

function check(condition, message) {
  checks += 1;
  assert.ok(condition, message);
}

function equal(actual, expected, message) {
  checks += 1;
  assert.deepEqual(actual, expected, message);
}

/// A page that remembers everything it must not do.
async function open(context, file) {
  const page = await context.newPage();
  const wrong = [];
  page.on(
    "console",
    (message) => ["error", "warning"].includes(message.type()) && wrong.push(`console: ${message.text()}`),
  );
  page.on("pageerror", (error) => wrong.push(`exception: ${error.message}`));
  page.on("dialog", (dialog) => (wrong.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("request", (request) => request.url().startsWith("file://") || wrong.push(`request: ${request.url()}`));
  page.on("framenavigated", (frame) => frame.url().startsWith("file://") || wrong.push(`navigation: ${frame.url()}`));
  await page.goto(pathToFileURL(file).href);
  await settle(page);
  return { page, wrong };
}

function gantt(page) {
  return page.locator('canvas[data-chart="gantt"]');
}

async function range(page) {
  return gantt(page).evaluate((canvas) => [Number(canvas.dataset.start), Number(canvas.dataset.end)]);
}

/// Distinct colours, each "r,g,b" with its count, inside a box of the canvas (px of the page).
async function colours(canvas, box) {
  const found = await canvas.evaluate((element, at) => {
    const ratio = element.width / element.clientWidth;
    const [x, y, width, height] = [at.x, at.y, at.width, at.height].map((px) => Math.floor(px * ratio));
    const copy = new OffscreenCanvas(Math.max(width, 1), Math.max(height, 1)).getContext("2d", {
      willReadFrequently: true,
    });
    copy.drawImage(element, -x, -y);
    const { data } = copy.getImageData(0, 0, Math.max(width, 1), Math.max(height, 1));
    const counts = new Map();
    for (let i = 0; i < data.length; i += 4) {
      const key = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts];
  }, box);
  return new Map(found);
}

/// The value of a colour variable as "r,g,b".
async function variable(page, name) {
  return page.evaluate((key) => {
    const hex = getComputedStyle(document.documentElement).getPropertyValue(key).trim();
    return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join(",");
  }, name);
}

async function check_rows(page, step) {
  const rows = await page.evaluate(() => window.__monet.rows());
  const busy = new Set(step.timeline.runs.map((run) => run[0]));
  const cores = rows.filter((row) => row.kind === "core");
  equal(
    cores.reduce((sum, row) => sum + row.bars, 0),
    step.timeline.runs.length,
    "every run is a bar of a core's row",
  );
  check(cores.length >= busy.size, "every core that runs has a row");
  equal(new Set(cores.map((row) => row.label)).size, cores.length, "cores of one name are told apart");
  const bars_of = (kind) => rows.filter((row) => row.kind === kind).reduce((sum, row) => sum + row.bars, 0);
  equal(bars_of("path"), step.critical_path?.segments.length ?? 0, "every piece of the critical path is a bar");
  const offchip = step.cores.find((core) => core.kind === "offchip")?.id;
  const through = step.timeline.transfers.filter((row) => row[6] === offchip || row[7] === offchip);
  equal(bars_of("port"), step.ports ? through.length : 0, "what passes the off-chip memory is a bar of a port's row");
  const has_held = (step.timeline.onchip?.cycles.length ?? 0) > 0;
  equal(await page.locator('canvas[data-chart="onchip"]').count(), has_held ? 1 : 0, "what is on the chip has a chart");
  equal(await page.locator("#bounds").count(), step.bounds ? 1 : 0, "bounds are shown where they are given");
  const moved = (row) => Object.entries(row).reduce((sum, [key, value]) => sum + (key.endsWith("_bytes") ? value : 0), 0);
  const gradients = (step.backward ?? []).map(moved);
  const all_moved = gradients.reduce((sum, bytes) => sum + bytes, 0);
  const panel = page.locator("#gradients");
  equal(await panel.count(), all_moved > 0 ? 1 : 0, "gradients that pass the port are shown");
  if (all_moved > 0) {
    const most = gradients.length > 13 ? 13 : gradients.length;
    equal(await panel.locator("tr").count(), most, "the products that move most have rows, and the others one together");
  }
  const lane = await variable(page, "--lane");
  const width = await gantt(page).evaluate((canvas) => canvas.clientWidth - 150);
  for (const row of rows.filter((entry) => entry.bars > 0)) {
    const seen = await colours(gantt(page), { x: kGutter, y: row.top + 1, width, height: Math.max(row.height - 2, 1) });
    check(seen.size > 1 || !seen.has(lane), `row ${row.label.slice(0, 40)} has bars`);
    const empty = lane.split(",").map(Number);
    const is_bar = ([key]) => key.split(",").some((channel, i) => Math.abs(Number(channel) - empty[i]) > 24);
    const filled = [...seen].filter(is_bar).reduce((sum, [, count]) => sum + count, 0);
    const part = filled / [...seen.values()].reduce((sum, count) => sum + count, 0);
    check(
      part > 0.6 * row.busy - 0.02,
      `row ${row.label.slice(0, 40)} is ${row.busy} busy, but ${part} of it is drawn`,
    );
  }
  const visible = rows.reduce((sum, row) => sum + row.bars, 0);
  equal(Number(await gantt(page).getAttribute("data-bars")), visible, "at full range every bar is drawn");
  check(
    Number(await gantt(page).getAttribute("data-rectangles")) <= width * rows.length * 2,
    "sub-pixel bars are merged",
  );
}

async function check_phase_colours(page, step) {
  const width = await gantt(page).evaluate((canvas) => canvas.clientWidth - 150);
  const band = await colours(gantt(page), { x: kGutter, y: 4, width, height: 12 });
  const known = ["forward", "loss", "backward", "update", "recompute"];
  for (const phase of step.phases) {
    const share = phase.latency_cycles / step.latency_cycles;
    if (share < 0.005) continue;
    const wanted = await variable(page, known.includes(phase.phase) ? `--phase-${phase.phase}` : "--phase-other");
    check((band.get(wanted) ?? 0) > 0, `phase ${phase.phase} has its colour ${wanted} in the band`);
  }
}

async function check_zoom(page, step) {
  await gantt(page).scrollIntoViewIfNeeded(); // lines above it may push it down
  const box = await gantt(page).boundingBox();
  const middle = [box.x + kGutter + (box.width - 150) / 2, box.y + 60];
  const full = await range(page);
  check(full[0] === 0 && full[1] >= step.latency_cycles, "the whole step is shown first");
  await page.mouse.move(...middle);
  await page.mouse.wheel(0, -400);
  await settle(page);
  const nearer = await range(page);
  check(nearer[1] - nearer[0] < (full[1] - full[0]) * 0.8, "the wheel zooms in");
  const memory = page.locator('canvas[data-chart="memory"]');
  const before = await colours(memory, { x: kGutter, y: 30, width: box.width - 150, height: 180 });
  await page.keyboard.down("Shift");
  await page.mouse.down();
  await page.mouse.move(middle[0] + 100, middle[1], { steps: 3 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await settle(page);
  const panned = await range(page);
  check(panned[0] < nearer[0] || nearer[0] === 0, "shift and drag pans");
  check(Math.abs(panned[1] - panned[0] - (nearer[1] - nearer[0])) < 1e-6 * full[1] + 1e-6, "a pan keeps the span");
  check(before.size > 0, "the memory chart follows");
  await page.mouse.down();
  await page.mouse.move(middle[0] + 50, middle[1], { steps: 3 });
  await page.mouse.up();
  await settle(page);
  const dragged = await range(page);
  check(dragged[1] - dragged[0] < panned[1] - panned[0], "a drag zooms to what it covers");
  await gantt(page).focus();
  await page.keyboard.press("0");
  await settle(page);
  equal(await range(page), full, "0 shows all again");
}

/// Zooms in on a bar until it can be pointed at; then its tooltip, and a click selects its layer in the table.
async function check_pick(page, step) {
  const [core, layer, start, end] = step.timeline.runs[Math.floor(step.timeline.runs.length * 0.6)];
  const row = (await page.evaluate(() => window.__monet.rows())).findIndex(
    (entry) => entry.kind === "core" && entry.label.split(" ")[0] === String(core),
  );
  check(row >= 0, "the run's core has a row");
  const find = () =>
    page.evaluate(
      ([at, wanted]) => {
        for (let bar = 0; ; ++bar) {
          const place = window.__monet.locate(at, bar);
          if (place === null) return null;
          if (place.layer === wanted) return place;
        }
      },
      [row, layer],
    );
  await gantt(page).evaluate((canvas) => canvas.scrollIntoView({ block: "start" }));
  const box = await gantt(page).boundingBox();
  for (let i = 0; i < 60 && (await range(page))[1] - (await range(page))[0] > (end - start) * 8; ++i) {
    const place = await find();
    await page.mouse.move(box.x + place.x, box.y + place.y);
    await page.mouse.wheel(0, -240);
    await settle(page);
  }
  const place = await find();
  await page.mouse.move(box.x + place.x, box.y + place.y);
  await settle(page);
  const tip = await page.locator(".tooltip").innerText();
  const shown = step.layers[layer];
  for (const part of ["cycles", "layer energy"]) check(tip.includes(part), `the tooltip names ${part}: ${tip}`);
  if (/^[\w./]{1,100}$/.test(shown.name)) {
    for (const part of [shown.name, shown.op_type, shown.phase])
      check(tip.includes(part), `the tooltip says ${part}: ${tip}`);
  }
  await page.mouse.click(box.x + place.x, box.y + place.y);
  await settle(page);
  const selected = page.locator('#layers tr[aria-selected="true"]');
  equal(await selected.getAttribute("data-layer"), String(layer), "a click on a bar selects its layer's row");
  check(await selected.isVisible(), "the selected row is in sight");
  await gantt(page).focus();
  await page.keyboard.press("Escape");
  await page.keyboard.press("0");
  await settle(page);
  equal(await page.locator('#layers tr[aria-selected="true"]').count(), 0, "Escape clears the selection");
}

async function first_cells(page, column, count = 5) {
  return page.evaluate(
    ([key, most]) =>
      [...document.querySelectorAll(`#layers tbody tr[data-layer]`)]
        .slice(0, most)
        .map((row) => Number(row.dataset.layer)),
    [column, count],
  );
}

/// The first five layers by a column; those that are equal in their order.
function sorted_by(step, key, sign) {
  return step.layers
    .map((_, i) => i)
    .sort((a, b) => sign * (step.layers[a][key] - step.layers[b][key]) || a - b)
    .slice(0, 5);
}

async function check_first_order(page, step) {
  equal(await first_cells(page), sorted_by(step, "critical_path_cycles", -1), "the layers that cost the time come first");
  const head = await page.locator("#layers thead").innerText();
  check(head.includes("Span (cycles)") && !head.includes("Latency"), "a layer has a span and no latency: " + head);
}

async function check_table(page, step) {
  const by = (key, sign) => sorted_by(step, key, sign);
  await page.click('#layers [data-sort="energy_pj"]');
  equal(await first_cells(page), by("energy_pj", -1), "a click on Energy puts the largest first");
  equal(await page.locator('#layers th[aria-sort="descending"]').count(), 1, "the sorted column says so");
  await page.click('#layers [data-sort="energy_pj"]');
  equal(await first_cells(page), by("energy_pj", 1), "a second click turns it round");
  await page.focus('#layers [data-sort="index"]');
  await page.keyboard.press("Enter");
  equal(await first_cells(page), by("start_cycle", 0), "from the keyboard, back to the graph's order");
  await page.locator('#layers tbody tr[tabindex="0"]').first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const wanted = Math.min(1, step.layers.length - 1);
  equal(
    await page.locator('#layers tr[aria-selected="true"]').getAttribute("data-layer"),
    String(wanted),
    "arrows move the selection",
  );
  await page.keyboard.press("Escape");
  const type = step.layers[0].op_type;
  await page.fill("#layer-filter", type.slice(0, 30));
  const matching = step.layers.filter((layer) =>
    type
      .slice(0, 30)
      .toLowerCase()
      .split(/\s+/)
      .every((word) => `${layer.name} ${layer.op_type} ${layer.phase}`.toLowerCase().includes(word)),
  );
  const count = async () => Number((await page.innerText("#layer-count")).split(" of ")[0].replace(/\D/g, ""));
  equal(await count(), matching.length, `the filter keeps the layers with ${type.slice(0, 30)}`);
  await page.fill("#layer-filter", "no layer is called this");
  equal(await page.locator("#layers tr[data-layer]").count(), 0, "a filter that matches nothing leaves nothing");
  await page.fill("#layer-filter", "");
  await page.locator("input[data-phase]").first().uncheck();
  equal(
    await count(),
    step.layers.filter((layer) => layer.phase !== step.layers[0].phase).length,
    "a phase can be left out",
  );
  await page.locator("input[data-phase]").first().check();
  equal(await count(), step.layers.length, "and brought back");
  check((await page.locator("#layers tr[data-layer]").count()) <= 120, "only rows in sight are made");
  if (step.layers.length > 100) {
    await page.locator(".layers-scroll").evaluate((box) => (box.scrollTop = box.scrollHeight));
    await settle(page);
    const last = page.locator(`#layers tr[data-layer="${step.layers.length - 1}"]`);
    check(await last.isVisible(), "scrolling reaches the last layer");
    await page.locator(".layers-scroll").evaluate((box) => (box.scrollTop = 0));
  }
}

async function check_memory(page, step) {
  const canvas = page.locator('canvas[data-chart="memory"]');
  const width = await canvas.evaluate((element) => element.clientWidth - 150);
  const seen = await colours(canvas, { x: kGutter, y: 22, width, height: 190 });
  for (const [key, value] of Object.entries(step.memory)) {
    if (key === "peak_cycle" || value < step.peak_memory_bytes * 0.03) continue;
    const owner = key.replace(/_bytes$/, "").replace(/_/g, "-");
    check((seen.get(await variable(page, `--owner-${owner}`)) ?? 0) > 20, `memory shows ${owner}`);
  }
}

async function check_figures(page, step) {
  const energy = await page.locator(".card").nth(1).getAttribute("title");
  check(energy.endsWith(" pJ"), "the energy card has its exact value");
  const rows = await page.locator("#phases tbody tr").count();
  equal(rows, step.phases.length, "a row per phase");
  check((await page.locator("rect.energy-part").count()) >= 1, "energy bars are drawn");
  const sizes = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  check(sizes[0] <= sizes[1], `the page does not scroll sideways: ${sizes}`);
  const bold = /NaN|Infinity|undefined|\[object/.exec(
    await page.evaluate(() => document.getElementById("report").innerText),
  );
  equal(bold, null, "no number is nonsense");
}

/// What searches found: a chart for each thing there is, every one with something drawn.
async function check_searches(page, found) {
  equal(await page.locator("#searches").count(), found === undefined ? 0 : 1, "searches are shown where there are any");
  if (found === undefined) return;
  const panel = page.locator("#searches");
  const searches = found.searches ?? [];
  const worse = (found.worse ?? []).map((row) => row.objective);
  const worse_searches = searches.filter((search) => search?.worse_than_start && !worse.includes(search.objective));
  equal(await page.locator("#worse p").count(), worse.length + worse_searches.length, "the page begins with what is worse");
  equal(await panel.locator(".outcomes tbody tr").count(), searches.length, "every search has a row");
  const sum = (count) => searches.reduce((total, search) => total + count(search), 0);
  const objectives = (search) => Object.values(search.front?.[0] ?? {}).filter((value) => typeof value === "number").length;
  const fronts = sum((search) => Math.max(0, Math.min(objectives(search), 3) - 1));
  equal(await panel.locator(".front").count(), fronts, "fronts are drawn, the first objective against others");
  for (let i = 0; i < fronts; ++i)
    check((await panel.locator(".front").nth(i).locator("circle").count()) > 0, "a front has points");
  const chosen = sum((search) => (search.front?.some((point) => point.chosen) ? 1 : 0));
  check((await panel.locator(".point.chosen").count()) >= chosen, "the chosen point stands out");
  const memories = (found.memory ?? []).length + sum((search) => search.memory?.length ?? 0);
  equal(await panel.locator(".memory").count(), memories, "memory before and after is drawn");
  const picture = panel.locator("img.picture");
  equal(await picture.count(), found.picture === undefined ? 0 : 1, "the groups' picture is shown where there is one");
  if (found.picture !== undefined)
    check(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth > 0)), "and can be seen");
}

async function check_step(page, step) {
  await check_figures(page, step);
  await check_first_order(page, step);
  if (step.timeline.runs.length > 0) {
    await check_rows(page, step);
    await check_phase_colours(page, step);
    await check_zoom(page, step);
    await check_pick(page, step);
    await check_memory(page, step);
  }
  await check_table(page, step);
}

async function check_result(page, data) {
  await check_step(page, data);
  await check_searches(page, data.optimise);
  if (data.inference !== undefined) {
    const energy = await page.locator("#energy svg").first().innerHTML();
    await page.locator('.switch input[value="inference"]').check({ force: true });
    await settle(page);
    equal(await page.getAttribute("#report", "data-shown"), "inference", "the switch shows inference");
    check((await page.locator("#energy svg").first().innerHTML()) !== energy, "the charts are drawn anew");
    await check_step(page, data.inference);
    await page.locator('.switch input[value="training"]').check({ force: true });
    await settle(page);
    equal(await page.locator("#phases tbody tr").count(), data.phases.length, "and back");
  } else {
    equal(await page.locator(".switch input").count(), 0, "without inference there is no switch");
  }
}

async function check_report(context, file, options) {
  const { page, wrong } = await open(context, file);
  const data = JSON.parse(await page.locator("#monet-data").textContent());
  check(
    readFileSync(file).length < 400000 + JSON.stringify(data).length * 1.2,
    "the page without its data is under 400 kB",
  );
  check((await page.title()).length > 0, "the page has a title");
  if (options.screenshot !== null) await page.screenshot({ path: options.screenshot, fullPage: true });
  const tools = { check, equal };
  if (data.kind === "explore") await check_exploration(page, data, tools);
  else if (data.kind === "explore-comparison") await check_comparison(page, data, tools);
  else if (check_of_page(data.kind) !== null) await check_of_page(data.kind)(page, data, tools);
  else await check_result(page, data);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  await settle(page);
  equal(await variable(page, "--panel"), "255,255,255", "paper is white");
  equal(await page.evaluate(() => window.__hacked ?? null), null, "no name was run as a script");
  equal(
    await page.locator('#report script, #report img:not(.picture), #report iframe, #report a:not([href^="designs/"], [href="best/report.html"])').count(),
    0,
    "no name became markup",
  );
  equal(wrong, [], "nothing went wrong in the page");
  await page.close();
}

/// The test itself must notice: a page that runs a name as script, and one that asks the network.
async function check_the_checks(context, folder) {
  const bad = path.join(folder, "bad.html");
  writeFileSync(
    bad,
    '<img src="http://127.0.0.1:9/x" onerror="alert(1)"><script>console.error("e"); throw new Error("x")</script>',
  );
  const { page, wrong } = await open(context, bad);
  await page.waitForTimeout(300);
  for (const kind of ["console:", "exception:", "dialog:", "request:"]) {
    check(
      wrong.some((line) => line.startsWith(kind)),
      `the test notices ${kind} ${wrong}`,
    );
  }
  await page.close();
}

/// Data that is not a result: the page says so or shows what there is, and never fails.
async function check_malformed(context, folder) {
  const wrong_types = {
    name: 3,
    phases: {},
    cores: [null, 5],
    links: "x",
    layers: [[]],
    timeline: { runs: [null, [1]], memory: 7 },
  };
  for (const data of [
    {},
    [],
    null,
    wrong_types,
    { optimise: { searches: [null, { front: [7], trace: {}, memory: [{}] }], memory: "x", compared: [{}], picture: "<b>" } },
    { kind: "explore", space: { parameters: [null, { name: 3, values: "x" }] }, runs: [7], rows: [null, [1]], fronts: { a: null }, best: [], reasons: [4], sensitivity: { training: { latency: 5 } } },
    { kind: "explore", runs: ["training"] },
    { kind: "explore-comparison", pairs: [7, { fronts: { a: { a: { designs: [null] } } }, best: [1] }] },
    { kind: "constructor" },
    { kind: "comparison", runs: [null], totals: [{ values: [null, "x"] }], causes: [7], layers: [null], timelines: [[{ bars: [null, [1]] }], 3], settings: [{ values: [5] }] },
    { kind: "cluster", stages: [null], timeline: { passes: [null, [0, 9, "x"], [0, 0, 0, -1, 5, 2]], sends: [7], stages: [3] }, memory: [], blocks: [null] },
    { kind: "parallelism", front: [null], runners_up: {}, best_strategy: 4, memory_limit_bytes: "x" },
    { kind: "backward-study", figures: [null, { unit: 3, paper: "x", assumptions: [2] }], networks: [{ techniques: [null] }], ambiguities: [7], statements: [1] },
    { timeline: { transfers: [[9, [4], -1, 5, 2]], runs: [[0, 99, 0, 10]] } },
  ]) {
    const file = path.join(folder, "malformed.html");
    writeFileSync(
      file,
      assemble(data ?? {}).replace(/(id="monet-data">)[^<]*/, (_, tag) => tag + JSON.stringify(data)),
    );
    const { page, wrong } = await open(context, file);
    equal(wrong, [], `${JSON.stringify(data)} is shown without an error`);
    equal(await page.locator("h1").count(), 1, "the page has its heading");
    await page.close();
  }
  const file = path.join(folder, "cut.html");
  writeFileSync(
    file,
    assemble({}).replace(/(id="monet-data">)[^<]*/, (_, tag) => `${tag}{"name": `),
  );
  const { page } = await open(context, file);
  check(
    (await page.innerText("[role=alert]")).startsWith("This report's data cannot be shown"),
    "cut data is reported",
  );
  await page.close();
}

/// Redraws of 100 000 bars, without a GPU: CPU time of the main thread for each of ten wheel steps.
async function check_speed(context, file) {
  const { page } = await open(context, file);
  if (path.basename(file).startsWith("explored")) {
    await check_brush_speed(page, { check });
    await page.close();
    return;
  }
  const canvas = await gantt(page).elementHandle();
  const redraw = (await page_cpu_ms(page, async (canvas) => {
    for (let i = 0; i < 10; ++i) {
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: i % 2 ? 5 : -5, cancelable: true }));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    }
  }, canvas)) / 10;
  console.log(`   redraw of ${await gantt(page).getAttribute("data-bars")} bars: ${redraw.toFixed(0)} ms`);
  check(redraw > 0 && redraw < 250, `redraw takes ${redraw} ms`);
  await page.close();
}

function make_samples(folder) {
  const makers = { ...samples, ...explorations, ...pages };
  const names = ["typical", "hostile", "smallest", "single_core", "optimised", "large", "explored", "explored_hostile", "explored_large", "compared", "cluster", "cluster_cut", "cluster_hostile", "plan", "plan_hostile", "study", "study_hostile", "results_compared", "results_compared_hostile"];
  return names.map((name) => {
    const file = path.join(folder, `${name}.html`);
    writeFileSync(file, assemble(makers[name]()));
    return file;
  });
}

function read_arguments() {
  const options = { screenshot: null, dark: false, hostile: null, files: [] };
  for (let i = 2; i < process.argv.length; ++i) {
    if (process.argv[i] === "--screenshot") options.screenshot = process.argv[++i];
    else if (process.argv[i] === "--dark") options.dark = true;
    else if (process.argv[i] === "--hostile") options.hostile = path.resolve(process.argv[++i]);
    else options.files.push(path.resolve(process.argv[i]));
  }
  return options;
}

async function main() {
  const options = read_arguments();
  const folder = mkdtempSync(path.join(tmpdir(), "monet-browser-"));
  const context = await chromium.launchPersistentContext(path.join(folder, "profile"), {
    executablePath: "/usr/bin/chromium",
    headless: true,
    args: kArguments,
    viewport: { width: 1440, height: 900 },
    colorScheme: options.dark ? "dark" : "light",
  });
  let failures = 0;
  try {
    await check_the_checks(context, folder);
    if (options.hostile !== null) await check_hostile(context, options.hostile, open, { check, equal });
    else await check_malformed(context, folder);
    const files = options.files.length > 0 ? options.files : options.hostile === null ? make_samples(folder) : [];
    for (const [i, file] of files.entries()) {
      const began = Date.now();
      try {
        await check_report(context, file, { screenshot: i === 0 ? options.screenshot : null });
        if (path.basename(file).endsWith("large.html")) await check_speed(context, file);
        console.log(`ok ${path.basename(file)} (${Date.now() - began} ms)`);
      } catch (error) {
        failures += 1;
        console.error(`FAILED ${file}\n${error.stack}`);
      }
    }
  } finally {
    await context.close();
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`${checks} checks, ${failures} of the reports failed`);
  process.exitCode = failures === 0 ? 0 : 1;
}

await main();
