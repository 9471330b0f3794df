// Pages without charts to use: of a step on a cluster, of a search for a strategy, of a study and of a comparison.

async function check_cluster(page, data, { check, equal }) {
  const report = page.locator("#report");
  const stages = Math.min(data.stages.length, 64);
  const last = report.getByText(`stage ${data.stages.length - 1}`, { exact: true });
  check((await last.count()) >= 3, "the last stage is in the pictures over time, of time and of memory");
  const gantt = page.locator("svg.drawing").first();
  const { listed_until_ns, makespan_ns } = data.timeline;
  const texts = await gantt.locator("text:not(.inside)").count();
  equal(texts, stages + 6, "a row for each drawn stage, and an axis");
  const bars = await gantt.locator("rect").count();
  if (data.timeline.passes.length < 500) equal(bars, data.timeline.passes.length + 2 * stages, "a bar for each pass, gradients and update");
  else check(bars > stages && bars <= 20000, `narrow passes are drawn together: ${bars}`);
  const text = await report.innerText();
  equal(text.includes(`${stages} of ${data.stages.length} stages are drawn`), stages < data.stages.length, "it says which stages are drawn");
  equal(text.includes("only passes that begin before"), listed_until_ns < makespan_ns, "and until when");
  equal(text.includes(": does not fit"), !data.memory.fits, "and whether the step fits");
  equal(await page.locator("section").last().locator("tbody tr").count(), data.blocks.length, "a row for each block");
}

async function check_plan(page, data, { equal }) {
  const points = data.front.length + data.runners_up.length + 1;
  equal(await page.locator("svg circle").count(), points, "a point for each strategy");
  const listed = await page.locator("section").nth(3).locator("tbody tr").count();
  equal(listed, data.front.length, "a row for each strategy on the front");
  equal(await page.locator('a[href="best/report.html"]').count(), 1, "the best strategy leads to its report");
}

async function check_study(page, data, { equal }) {
  const rows = page.locator("section").first().locator("tbody tr");
  equal(await rows.count(), data.figures.length, "a row for each figure");
  const [figure] = data.figures;
  equal((await rows.first().locator("td").allInnerTexts()).slice(0, 2), [figure.paper, figure.ours].map((value) => value.toFixed(1)), "the paper's figure and ours");
  equal(await page.locator(".good").count(), data.statements.filter(({ holds }) => holds === true).length, "what holds is marked");
  equal(await page.locator("details").count(), data.networks.length + 1, "details for each network and for the assumptions");
  await page.locator("details").first().locator("summary").click();
  const bars = await page.locator("details").first().locator("rect").count();
  equal(bars, 5 * Object.keys(data.networks[0].techniques).length, "with a part for each tensor");
}

async function check_comparison(page, data, { check, equal }) {
  const rows = (index) => page.locator("section").nth(index).locator("tbody tr");
  equal(await rows(0).count(), data.runs.length, "a row for each result");
  equal(await rows(1).count(), data.totals.length, "a row for each total");
  equal(await rows(2).count(), data.causes.length, "a row for each cause");
  const timelines = page.locator("section").nth(4);
  equal(await timelines.locator("svg").count(), data.timelines.length, "a timeline for each result");
  equal(await timelines.locator("rect").count(), data.timelines.flat().flatMap((lane) => lane.bars).length, "with a bar for each run");
  equal(await rows(5).count(), 200, "the first layers are listed");
  check((await page.locator("section").nth(5).innerText()).includes("50 more layers"), "and how many are not");
  equal(await rows(6).count(), data.settings.length, "a row for each setting that differs");
}

const kChecks = { comparison: check_comparison, cluster: check_cluster, parallelism: check_plan, "backward-study": check_study };

/// Null where the page is another one.
export function check_of_page(kind) {
  if (!Object.hasOwn(kChecks, kind ?? "")) return null;
  return async (page, data, tools) => {
    const wrong = /NaN|Infinity|undefined|\[object/.exec(await page.evaluate(() => document.getElementById("report").innerText));
    tools.equal(wrong, null, "no number is nonsense");
    const sizes = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    tools.check(sizes[0] <= sizes[1], `the page does not scroll sideways: ${sizes}`);
    await kChecks[kind](page, data, tools);
  };
}
