// Makes report.html from result.json the way the tool does: `node assemble.mjs RESULT.json OUT.html`.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const dist = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../web/dist");

function escape_html(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (mark) => entities[mark]);
}

export function assemble(result) {
  const read = (name) => readFileSync(path.join(dist, name), "utf8");
  const parts = {
    TITLE: escape_html(String(result.name ?? "")),
    STYLE: `<style>${read("report.css")}</style>`,
    // Inside a script element only "<" can end the data or open a comment.
    DATA: `<script type="application/json" id="monet-data">${JSON.stringify(result).replace(/</g, "\\u003c")}</script>`,
    SCRIPT: `<script>${read("report.js")}</script>`,
  };
  return read("report.html").replace(/<!--MONET_(TITLE|STYLE|DATA|SCRIPT)-->/g, (_, part) => parts[part]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [input, output] = process.argv.slice(2);
  writeFileSync(output, assemble(JSON.parse(readFileSync(input, "utf8"))));
}
