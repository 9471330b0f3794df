// Uses the page of an exploration as a person would: brushes, chooses, sorts, walks along a front.
import { page_cpu_ms, settle } from "./browser_tools.mjs";

function column(data, name) {
  return data.columns.indexOf(name);
}

/// Rows that are feasible and have the parameter's value.
function with_value(data, parameter, values) {
  return data.rows.filter((row) => row[data.space.parameters.length + 1] === null && values.includes(row[parameter + 1]));
}

async function shown_count(page) {
  return Number((await page.innerText("#design-count")).split(" of ")[0].replace(/\D/g, ""));
}

async function points(page, i) {
  return Number(await page.locator('canvas[data-chart="scatter"]').nth(i).getAttribute("data-points"));
}

/// Drags along an axis of the parallel coordinates, from one position (0 to 1) to another.
async function brush(page, axis, from, to) {
  const canvas = page.locator('canvas[data-chart="parallel"]');
  await canvas.evaluate((element) => element.scrollIntoView({ block: "center" }));
  const box = await canvas.boundingBox();
  const at = await page.evaluate(([a, ends]) => [window.__explore.x(a), ...ends.map((end) => window.__explore.y(end))], [axis, [from, to]]);
  await page.mouse.move(box.x + at[0], box.y + at[1]);
  await page.mouse.down();
  await page.mouse.move(box.x + at[0], box.y + (at[1] + at[2]) / 2, { steps: 2 });
  await page.mouse.move(box.x + at[0], box.y + at[2], { steps: 2 });
  await page.mouse.up();
  await settle(page);
}

async function check_brushes(page, data, { equal }) {
  const all = data.evaluated;
  equal(await shown_count(page), all, "every feasible design is inside without brushes");
  for (const i of data.runs.keys()) equal(await points(page, i), all, "and a point of each scatter");
  const values = data.space.parameters[0].values;
  const half = 0.5 / (values.length - 1);
  const top = values.length - 1;
  // The upper values of the first parameter: from beside the second-last one to the end.
  await brush(page, 0, (top - 1) / top - half / 2, 1);
  const wanted = with_value(data, 0, values.slice(top - 1));
  equal(await shown_count(page), wanted.length, "a brush over a parameter's two last values keeps their designs");
  for (const i of data.runs.keys()) equal(await points(page, i), wanted.length, "in the scatters, too");
  const infeasible = data.rows.filter((row) => row[data.space.parameters.length + 1] !== null && values.slice(top - 1).includes(row[1]));
  if (data.reasons.length > 0) {
    const inside = await page.locator("#reasons tbody tr").first().locator("td").nth(1).innerText();
    equal(Number(inside.replace(/\D/g, "")), infeasible.length, "infeasible designs are counted inside the brush, too");
  }
  await brush(page, 1, 0, half / 2);
  const both = wanted.filter((row) => row[2] === data.space.parameters[1].values[0]);
  equal(await shown_count(page), both.length, "two brushes keep what is inside both");
  const listed = await page.locator("#front-designs [data-design]").evaluateAll((rows) => rows.map((row) => row.dataset.design));
  const ids = new Set(both.map((row) => String(row[0])));
  const front = Object.values(data.fronts)[0].designs.map((design) => String(design.id));
  equal(listed, front.filter((id) => ids.has(id)), "the table lists the front's designs inside the brushes");
  await page.click("#clear-brushes");
  await settle(page);
  equal(await shown_count(page), all, "brushes can be cleared");
}

async function check_keyboard(page, data, { check, equal }) {
  const parallel = page.locator('canvas[data-chart="parallel"]');
  await parallel.focus();
  for (let i = 0; i < 20; ++i) await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowUp");
  await settle(page);
  const lowest = with_value(data, 0, [data.space.parameters[0].values[0]]);
  equal(await shown_count(page), lowest.length, "a brush from the keyboard begins at the lowest value");
  await page.keyboard.press("Escape");
  await settle(page);
  equal(await shown_count(page), data.evaluated, "Escape takes it away");
  const scatter = page.locator('canvas[data-chart="scatter"]').first();
  await scatter.focus();
  await page.keyboard.press("ArrowRight");
  await settle(page);
  const tip = await page.locator(".tooltip:visible").innerText();
  const first = Object.values(data.fronts)[0].designs[0];
  const fastest = Math.min(...Object.values(data.fronts)[0].designs.map((design) => design.latency_cycles));
  equal(first.latency_cycles, fastest, "the front begins with the fastest design");
  check(tip.includes(`Design ${first.id}`), `the arrow key shows the first design of the front: ${tip}`);
  await page.keyboard.press("Escape");
}

async function check_tables(page, data, { check, equal }) {
  const rows = () => page.locator("#front-designs [data-design]").evaluateAll((found) => found.map((row) => row.dataset.design));
  const front = Object.values(data.fronts)[0].designs;
  equal(await rows(), front.map((design) => String(design.id)), "the front's designs are listed in its order");
  const energy = page.locator("#front-designs .head", { hasText: "inference energy" });
  await energy.click();
  const sorted = [...front].sort((a, b) => a.energy_pj - b.energy_pj || a.id - b.id).map((design) => String(design.id));
  equal(await rows(), sorted, "a click on a column sorts by it");
  await energy.click();
  equal((await rows())[0], sorted[sorted.length - 1], "a second one turns it round");
  const names = Object.keys(data.fronts);
  await page.selectOption("#front", names[1]);
  equal((await rows()).length, data.fronts[names[1]].designs.length, "another front can be chosen");
  equal(await page.locator("#best tbody tr").count(), data.runs.reduce((sum, run) => sum + Object.keys(data.best[run]).length, 0), "the best of each run and objective has a row");
  const links = await page.locator("#report a").evaluateAll((found) => [...new Set(found.map((link) => link.getAttribute("href")))].sort());
  equal(links, data.reports.map((id) => `designs/${id}/report.html`).sort(), "links lead to the reports there are");
  const bar = page.locator("#effects tbody .share-bar").first();
  const [run] = Object.keys(data.sensitivity);
  const [objective] = Object.keys(data.sensitivity[run]);
  const share = data.sensitivity[run][objective].parameters[0].share;
  const width = await bar.evaluate((element) => parseFloat(element.style.width));
  check(Math.abs(width - 100 * share) < 0.06, `a bar is as long as its share ${share}: ${width}`);
}

/// Designs that no other beats in two columns.
function front_size(data, x, y) {
  const costs = data.rows.filter((row) => row[data.space.parameters.length + 1] === null).map((row) => [row[x], row[y]]);
  const beats = (a, b) => a[0] <= b[0] && a[1] <= b[1] && (a[0] < b[0] || a[1] < b[1]);
  return costs.filter((point) => !costs.some((other) => beats(other, point))).length;
}

async function check_choices(page, data, { equal }) {
  const front = async () => Number(await page.locator('canvas[data-chart="scatter"]').first().getAttribute("data-front"));
  const designs = Object.values(data.fronts)[0].designs.length;
  equal(await front(), designs, "the step line is the front of latency and energy, equal designs included");
  const note = await page.locator("#fronts figcaption").first().innerText();
  equal(note, `${designs} designs on the front`, "the plot counts what the table lists");
  const has_area = data.rows.some((row) => row[column(data, "area_mm2")] > 0);
  await page.selectOption("#scatter-x", has_area ? "area" : "memory");
  await settle(page);
  const across = column(data, has_area ? "area_mm2" : `${data.runs[0]} peak_memory_bytes`);
  const up = column(data, `${data.runs[0]} energy_pj`);
  equal(await front(), front_size(data, across, up), "of other objectives it is theirs");
  const error = column(data, "error");
  if (error >= 0) {
    await page.selectOption("#scatter-x", "energy");
    await page.selectOption("#scatter-y", "error");
    await settle(page);
    equal(await front(), front_size(data, up, error), "the error of short trainings is an objective, too");
    await page.selectOption("#scatter-y", "energy");
  }
  await page.selectOption("#scatter-colour", data.space.parameters[0].name);
  await page.selectOption("#scatter-x", "latency");
  await settle(page);
  equal(await points(page, 0), data.evaluated, "colours keep every point");
}

export async function check_exploration(page, data, tools) {
  const bold = /NaN|Infinity|undefined|\[object/.exec(await page.evaluate(() => document.getElementById("report").innerText));
  tools.equal(bold, null, "no number is nonsense");
  const sizes = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  tools.check(sizes[0] <= sizes[1], `the page does not scroll sideways: ${sizes}`);
  tools.equal(await page.locator('canvas[data-chart="scatter"]').count(), data.runs.length, "a scatter per run");
  await check_brushes(page, data, tools);
  await check_keyboard(page, data, tools);
  await check_choices(page, data, tools);
  await check_tables(page, data, tools);
}

export async function check_comparison(page, { pairs: [data] }, { check, equal }) {
  equal(await page.locator('canvas[data-chart="scatter"]').count(), Object.keys(data.fronts).length, "a scatter per front");
  const front = Object.values(data.fronts)[0];
  equal(await points(page, 0), front.a.designs.length + front.b.designs.length, "with the designs of both");
  const cells = await page.locator(".fronts tbody tr").first().locator("td").allInnerTexts();
  equal(cells.slice(0, 3).map(Number), [front.a.designs.length, front.b.designs.length, front.shared], "the table counts them");
  equal(await page.locator(".best tbody tr").count(), data.best.length, "the best designs are compared");
  const bold = /NaN|Infinity|undefined|\[object/.exec(await page.evaluate(() => document.getElementById("report").innerText));
  check(bold === null, `no number is nonsense: ${bold}`);
}

/// Brushes over 20,000 designs, without a GPU: CPU time of the main thread until scatters and lines are redrawn.
export async function check_brush_speed(page, { check }) {
  const brush = (await page_cpu_ms(page, async () => {
    const { found, selection } = window.__explore;
    for (let i = 0; i < 10; ++i) {
      selection.set(found.axes[i % 4], [0.2 + 0.02 * i, 0.9]);
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    }
  })) / 10;
  console.log(`   brush over a large space: ${brush.toFixed(0)} ms`);
  check(brush > 0 && brush < 250, `a brush takes ${brush} ms`);
}
