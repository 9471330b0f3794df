// Writes report.js, report.css and report.html: `node build.mjs [folder]`, by default into dist/.
import { copyFile, mkdir } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.resolve(process.argv[2] ?? path.join(here, "dist"));
const options = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  charset: "ascii",
  legalComments: "none",
  target: ["es2020", "chrome90", "firefox90", "safari15"],
  logLevel: "warning",
};

await mkdir(out, { recursive: true });
await build({ ...options, entryPoints: ["src/main.ts"], format: "iife", outfile: path.join(out, "report.js") });
await build({ ...options, entryPoints: ["src/report.css"], outfile: path.join(out, "report.css") });
await copyFile(path.join(here, "src/report.html"), path.join(out, "report.html"));
