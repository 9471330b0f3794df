// Pages that the tool made of hostile names (tests/cli/hostile_names_test.cpp): they run nothing, ask for nothing and show
// the names as text.
import { readdirSync } from "node:fs";
import path from "node:path";

/// Controls, and what cannot be seen or turns the direction of writing; lines are the page's own.
const kUntamed = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;

async function check_page(page, name, { check, equal }) {
  const found = await page.evaluate(() => ({
    hacked: window.__hacked ?? null,
    title: document.title,
    text: document.querySelector("#report, svg")?.textContent ?? "",
    seen: document.querySelector("#report")?.innerText ?? "",
    // The page's own are its data and its viewer, before and behind the report.
    elements: document.querySelectorAll("#report script, #report img:not(.picture), #report iframe, svg script, svg image, svg foreignObject").length,
    scripts: document.scripts.length,
    handlers: [...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames()).filter((key) => key.startsWith("on")),
    links: [...document.querySelectorAll("a")].map((link) => link.getAttribute("href") ?? "").filter((href) => !href.startsWith("designs/") && !href.startsWith("#")),
  }));
  equal(found.hacked, null, `${name}: no name was run as a script`);
  equal(found.elements, 0, `${name}: no name has become an element`);
  equal(found.handlers, [], `${name}: nor an attribute that runs`);
  equal(found.links, [], `${name}: nor a link`);
  check(found.scripts <= 2, `${name}: the scripts are the page's own`);
  check(found.text.includes("mallory") || found.text.includes("<img src=x"), `${name}: the names are shown`);
  check(found.text.includes("<script>") || found.text.includes("<img src=x"), `${name}: markup in them is text`);
  check(!kUntamed.test(found.seen), `${name}: what is shown is tame: ${JSON.stringify(kUntamed.exec(found.seen))}`);
  check(!kUntamed.test(found.title), `${name}: and so is the title`);
}

export async function check_hostile(context, folder, open, checks) {
  const files = readdirSync(folder).filter((name) => /\.(html|svg)$/.test(name));
  checks.check(files.length >= 9, `the pages are there: ${files}`);
  for (const name of files) {
    const { page, wrong } = await open(context, path.join(folder, name));
    await check_page(page, name, checks);
    checks.equal(wrong, [], `${name}: nothing went wrong, no dialog, no request, no other page`);
    await page.close();
    console.log(`ok ${name}`);
  }
}
