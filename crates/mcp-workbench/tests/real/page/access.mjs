// The page for everybody: every view with axe-core, in both colours and from 320 pixels to a wide screen, and an approval
// by keyboard alone.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";

import { assert, client, enter, given, launch, show as view } from "./browser.mjs";

const views = ["Servers", "Calls", "Approvals", "Trust", "Tools", "Tokens"];
const widths = [320, 480, 768, 1280, 2560];
const require = createRequire(path.join(given.packages, "package.json"));
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

const browser = await launch();
try {
  // The policy of the page forbids the script of the audit.
  const { page } = await enter(browser, given.links[0], { bypassCSP: true, reducedMotion: "reduce" });
  await page.getByText("live", { exact: true }).waitFor();
  await page.evaluate(axe);
  const agent = await client("agent");
  await agent.open("dev");
  await agent.use("dev", "fs", "read", { path: "/x".repeat(200) });
  await agent.use("dev", "fs", given.hostile, { ["long-name".repeat(30)]: "value" });
  const show = (name) => view(page, name);

  // Everything that can be unfolded is: a call with its messages, a difference, a form.
  const wipe = agent.use("dev", "fs", "wipe", { path: "/".repeat(300) });
  await page.locator("#waiting").getByText("1").waitFor();
  await show("Calls");
  await page.getByRole("button", { name: "read", exact: true }).click();
  await page.getByRole("region", { name: "The selected call" }).waitFor();
  await show("Trust");
  await page.getByRole("region", { name: "dev vault" }).getByRole("button", { name: "Show the difference" }).click();
  await page.locator("pre.diff").waitFor();
  await show("Tools");
  await page.getByRole("region", { name: "fill", exact: true }).getByRole("button", { name: "Try it" }).click();
  await page.getByRole("region", { name: "Try fill" }).waitFor();

  for (const name of views) {
    await show(name);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      }));
      const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
      assert.deepEqual(found, [], `${name}, ${colorScheme}`);
    }
    for (const width of widths) {
      await page.setViewportSize({ width, height: 800 });
      const needed = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(needed <= width, `${name} needs ${needed} of ${width} pixels`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  }

  // By keyboard alone: over the skip link to the content, along every control in order, and a decision.
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim() || document.activeElement.id);
  await page.goto(`${page.url().split("#")[0]}#approvals`);
  await page.reload();
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  const walked = [];
  for (let step = 0; step < 12; step += 1) {
    await page.keyboard.press("Tab");
    walked.push(await focused());
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, "none", `${walked.at(-1)} shows the focus`);
  }
  const expected = [
    "Skip to the content", ...views.map((name) => (name === "Approvals" ? "Approvals 1" : name)),
    JSON.stringify({ path: "/".repeat(300) }, null, 2), "Allow once", "For this session", "Always", "Deny"];
  assert.deepEqual(walked, expected);
  // A change while a control has the focus does not take it away.
  await agent.use("dev", "fs", "read", { path: "/y" });
  const second = agent.use("dev", "fs", "wipe", { path: "/etc" });
  await page.locator("#waiting").getByText("2").waitFor();
  await page.getByRole("button", { name: "Deny" }).nth(1).waitFor();
  assert.equal(await focused(), "Deny");
  await page.keyboard.press("Enter");
  assert.match((await wipe).result.content[0].text, /did not permit this call/);
  await page.getByRole("button", { name: "Deny" }).nth(1).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Deny" }).click();
  await second;
} finally {
  await browser.close();
}
