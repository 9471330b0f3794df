// Makes the pictures of docs/tutorials from the pages that the tutorials' commands wrote.
// Usage: KEEP=RESULTS tests/docs/tutorials.sh . MONET, then tests/browser/run.sh --tutorials RESULTS docs/pictures
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { kArguments, settle } from "./browser_tools.mjs";

const require = createRequire(path.resolve(process.env.MODULES ?? "node_modules", "x.js"));
const { chromium } = require("playwright-core");

const kWidth = 1200; // px
const kMaxBytes = 150000;

// The page under RESULTS, the file to write, the element shown, the px above it that are shown, too, and the maximum
// height in px.
const kPictures = [
  ["first-training-step/out/first/report.html", "tutorial_first_step.png", "#timeline", 0, 640],
  ["your-network/out/step.html", "tutorial_network.png", 'canvas[data-chart="memory"]', 54, 400],
  ["your-chip/out/step.html", "tutorial_chip.png", "#timeline", 0, 395],
  ["fuse-recompute-search/out/fusion/report.html", "tutorial_fusion.png", "#searches", 0, 560],
  ["explore-a-space/out/space/report.html", "tutorial_front.png", "#fronts figure", 0, 640],
];

async function make_picture(context, from, to, selector, above, max_height) {
  const page = await context.newPage();
  await page.goto(pathToFileURL(from).href);
  await settle(page);
  const box = await page.evaluate((shown) => {
    const { top, bottom, left, right } = document.querySelector(shown).getBoundingClientRect();
    return { top: top + window.scrollY, bottom: bottom + window.scrollY, left, right };
  }, selector);
  const height = Math.min(max_height, box.bottom - box.top + above);
  const clip = { x: box.left, y: box.top - above, width: Math.min(kWidth, box.right - box.left), height };
  await page.screenshot({ path: to, clip, fullPage: true });
  await page.close();
  const bytes = statSync(to).size;
  console.log(`${to}: ${Math.round(clip.width)} x ${Math.round(height)}, ${bytes} bytes`);
  if (bytes > kMaxBytes) throw new Error(`${to} is larger than ${kMaxBytes} bytes`);
}

async function main() {
  const [results, folder] = process.argv.slice(2).map((name) => path.resolve(name));
  const profile = mkdtempSync(path.join(tmpdir(), "monet-pictures-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: "/usr/bin/chromium",
    headless: true,
    args: kArguments,
    viewport: { width: kWidth, height: 900 },
    colorScheme: "light",
  });
  try {
    for (const [page, picture, ...shown] of kPictures)
      await make_picture(context, path.join(results, page), path.join(folder, picture), ...shown);
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

await main();
