// Attacks on the page: a link that was used, other sites, other names of this machine, and scripts in what servers send.

import http from "node:http";

import { assert, base, client, enter, given, launch } from "./browser.mjs";

const browser = await launch();
const port = given.address.split(":")[1];
try {
  const { context, page, trouble } = await enter(browser, given.links[0]);
  await page.getByText("live", { exact: true }).waitFor();

  // A link that was used opens nothing in another profile.
  const stranger = await browser.newContext();
  const second = await stranger.newPage();
  assert.equal((await second.goto(base + given.links[0])).status(), 403);
  assert.equal((await second.goto(`${base}/ui/`)).status(), 401);

  // A page of another site, in the profile that has the cookie, cannot decide.
  const agent = await client("agent");
  await agent.open("dev");
  const wipe = agent.use("dev", "fs", "wipe", { path: "/" });
  await page.locator("#waiting").getByText("1").waitFor();
  const evil = http.createServer((request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<form id="f" method="post" enctype="text/plain" action="${base}/ui/api/approvals"><input name='{"id":1,"decision":"once","a":"' value='"}'></form>`);
  });
  await new Promise((ready) => evil.listen(0, "127.0.0.1", ready));
  const other = await context.newPage();
  await other.goto(`http://127.0.0.1:${evil.address().port}/`);
  const attempt = (type) => other.evaluate(async ([url, type]) => {
    try {
      const response = await fetch(url, {
        method: "POST", credentials: "include", headers: { "content-type": type },
        body: JSON.stringify({ id: 1, decision: "once" }),
      });
      return response.status;
    } catch {
      return "blocked";
    }
  }, [`${base}/ui/api/approvals`, type]);
  assert.equal(await attempt("application/json"), "blocked");
  assert.equal(await attempt("text/plain"), "blocked");
  // The navigation must be over before the next one begins.
  const submitted = other.waitForNavigation({ url: `${base}/ui/api/approvals` });
  await other.evaluate(() => document.getElementById("f").submit());
  assert.equal((await submitted).status(), 403);
  assert.equal(await page.locator("#waiting").innerText(), "1", "it still waits");

  // Nor does it read anything, by a frame or by a script.
  const framed = await other.goto(`http://127.0.0.1:${evil.address().port}/`).then(() => other.evaluate(async (url) => {
    const frame = document.createElement("iframe");
    frame.src = url;
    document.body.append(frame);
    await new Promise((loaded) => { frame.onload = loaded; setTimeout(loaded, 3000); });
    try { return frame.contentDocument?.body.innerText ?? "blocked"; } catch { return "blocked"; }
  }, `${base}/ui/`));
  assert.doesNotMatch(framed, /MCP Workbench/);
  evil.close();

  // Another name of this machine is not ours, whatever it resolves to.
  const rebound = await context.newPage();
  assert.equal((await rebound.goto(`http://evil.example:${port}/ui/`)).status(), 403);
  assert.equal((await rebound.goto(`http://evil.example:${port}/ui/api/servers`)).status(), 403);

  // What servers send stays text.
  await page.getByRole("link", { name: "Approvals" }).click();
  await page.getByRole("button", { name: "Deny" }).click();
  await wipe;
  await agent.use("dev", "fs", given.hostile, { "<b onclick=alert(1)>": "<img src=x onerror=alert(2)>" });
  await page.getByRole("link", { name: "Calls" }).click();
  await page.getByRole("button", { name: given.hostile }).click();
  await page.getByText("<script>alert('result')</script>").first().waitFor();
  await page.getByRole("link", { name: "Tools" }).click();
  await page.getByText("<script>alert('description')</script>").first().waitFor();
  await page.getByText("so\u27e6U+00AD\u27e7ft").first().waitFor();
  await page.getByRole("region", { name: given.hostile }).getByRole("button", { name: "Try it" }).click();
  assert.equal(await page.locator("main script, main img, main b").count(), 0);
  assert.deepEqual(trouble, []);
} finally {
  await browser.close();
}
