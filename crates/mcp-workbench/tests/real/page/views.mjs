// Every view, live updates, and an approval that is decided on the page.

import { assert, client, enter, given, launch, show } from "./browser.mjs";

const browser = await launch();
try {
  const { context, page, trouble } = await enter(browser, given.links[0], { permissions: ["clipboard-read", "clipboard-write"] });
  const view = (name) => show(page, name);

  // Servers: started, restarted and stopped by buttons, and the state follows without a reload.
  await page.getByRole("heading", { level: 1, name: "Servers" }).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  const server = page.getByRole("region", { name: "dev fs" });
  await server.getByText("resting").waitFor();
  await server.getByRole("button", { name: "Start" }).click();
  await server.getByText("up", { exact: true }).waitFor();
  const facts = () => server.locator("dl").innerText();
  assert.match(await facts(), /process\n\d+\nmemory\n[\d.]+ MiB\ntools\n5\ncalls\n0/);
  const before = (await facts()).match(/process\n(\d+)/)[1];
  await server.getByRole("button", { name: "Restart" }).click();
  await page.getByText("fs: restarted").waitFor();
  assert.notEqual((await facts()).match(/process\n(\d+)/)[1], before);
  await server.getByRole("button", { name: "Stop" }).click();
  await server.getByText("resting").waitFor();
  const broken = page.getByRole("region", { name: "dev broken" });
  await broken.getByRole("button", { name: "Start" }).click();
  await broken.getByText("failed", { exact: true }).waitFor();
  await broken.getByText("What to do: install it, or write its full path").waitFor();

  // Calls: one that is made while the view is open appears.
  await view("Calls");
  const agent = await client("agent");
  await agent.open("dev");
  const read = await agent.use("dev", "fs", "read", { path: "/x" });
  assert.equal(read.result.content[0].text, "hello");
  await page.getByRole("button", { name: "read", exact: true }).click();
  const detail = page.getByRole("region", { name: "The selected call" });
  await detail.getByText("use_tool became a call of read").waitFor();
  assert.match(await detail.innerText(), /"path": "\/x"/);
  assert.equal(await detail.getByText("\"hello\"").count(), 2, "the result on both hops");
  for (const message of [/received \(\d+ B, ≈ \d+ tokens\)/, /replied \(\d+ B, ≈ \d+ tokens\)/, /sent \(\d+ B, ≈/, /answered \(\d+ B, ≈/]) {
    assert.match(await detail.innerText(), message);
  }
  await detail.getByRole("button", { name: "Copy as mcp-workbench call" }).click();
  await page.getByText("copied").waitFor();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^mcp-workbench --config .* call dev fs read '\{"path":"\/x"\}'$/);

  // What the user looks at stays as it is while calls come in: text that is selected, and a list that is scrolled.
  const sent = detail.locator("pre").first();
  await sent.evaluate((element) => getSelection().selectAllChildren(element));
  for (let number = 0; number < 20; number += 1) await agent.use("dev", "fs", "read", { path: `/${number}` });
  await page.getByText(/^2[3-9] calls$/).waitFor();
  assert.match(await page.evaluate(() => getSelection().toString()), /use_tool/);
  const list = page.getByRole("region", { name: "All calls" });
  await list.evaluate((element) => { element.scrollTop = 120; });
  await agent.use("dev", "fs", "read", { path: "/last" });
  await page.getByText(/^2[4-9] calls$|^30 calls$/).waitFor();
  assert.ok(await list.evaluate((element) => element.scrollTop) >= 120, "the list stays scrolled");
  await detail.getByRole("button", { name: "Close" }).click();
  await detail.waitFor({ state: "detached" });

  // Filters: a list that is filtered follows too, also while somebody types.
  const filter = page.getByLabel("Tool or method");
  await filter.fill("nothing like it");
  await page.getByText("No call matches.").waitFor();
  await filter.fill("fail");
  await agent.use("dev", "fs", "fail");
  await page.getByRole("button", { name: "fail", exact: true }).waitFor();
  await page.getByText(/^1 of \d+ calls$/).waitFor();
  assert.equal(await filter.inputValue(), "fail");
  await page.getByLabel("Outcome").selectOption("ok");
  await page.getByText("No call matches.").waitFor();
  await page.getByLabel("Outcome").selectOption("");
  await page.getByLabel("Client").fill("somebody else");
  await page.getByText("No call matches.").waitFor();
  await page.getByLabel("Client").fill("AGENT");
  await page.getByLabel("Toolbox or server").fill("dev/fs");
  await page.getByText(/^1 of \d+ calls$/).waitFor();
  for (const label of ["Client", "Toolbox or server", "Tool or method"]) await page.getByLabel(label).fill("");

  // Approvals: the call of a client that cannot be asked waits for the page.
  const wipe = agent.use("dev", "fs", "wipe", { path: "/" });
  await page.locator("#waiting").getByText("1").waitFor();
  assert.match(await page.title(), /^\(1\) Calls/);
  await view("Approvals");
  assert.equal(await page.locator("main pre").innerText(), "{\n  \"path\": \"/\"\n}");
  await page.getByRole("button", { name: "Allow once" }).click();
  assert.equal((await wipe).result.content[0].text, "gone");
  await page.getByText("Nothing waits for you.").waitFor();
  const denied = agent.use("dev", "fs", "wipe", { path: "/etc" });
  await page.getByRole("button", { name: "Deny" }).click();
  assert.match((await denied).result.content[0].text, /did not permit this call/);
  const held = agent.use("dev", "fs", "wipe", { path: "/tmp" });
  await page.getByRole("button", { name: "For this session" }).click();
  assert.equal((await held).result.content[0].text, "gone");
  assert.equal((await agent.use("dev", "fs", "wipe")).result.content[0].text, "gone", "the session goes on");
  const other = await client("other");
  await other.open("dev");
  const always = other.use("dev", "fs", "wipe", { path: "/var" });
  await page.getByRole("button", { name: "Always" }).click();
  assert.equal((await always).result.content[0].text, "gone");
  await page.getByText("wipe: allowed in the configuration").waitFor();

  // Trust: nothing is approved by looking, and a tool that changed is withheld until its difference is approved.
  const locked = await agent.use("dev", "vault", "open");
  assert.match(locked.result.content[0].text, /changed since it was approved/);
  await view("Trust");
  await page.getByRole("region", { name: "dev fs" }).waitFor();
  const vault = page.getByRole("region", { name: "dev vault" });
  await vault.getByText("changed", { exact: true }).first().waitFor();
  assert.equal(await vault.getByRole("button", { name: /approve/ }).count(), 0, "no approval before looking");
  await vault.getByRole("button", { name: "Show the difference" }).click();
  await vault.locator("pre.diff").waitFor();
  assert.match(await vault.locator("pre.diff .removed").allInnerTexts().then((lines) => lines.join("")), /Open the vault/);
  assert.match(await vault.locator("pre.diff .added").allInnerTexts().then((lines) => lines.join("")), /Open the vault and send everything/);
  assert.match((await agent.use("dev", "vault", "open")).result.content[0].text, /changed since it was approved/, "looking approves nothing");
  await vault.getByRole("button", { name: "I have read it: approve" }).click();
  await vault.getByText("pinned", { exact: true }).waitFor();
  assert.equal((await agent.use("dev", "vault", "open")).result.content[0].text, "opened");

  // Tools: found by what they do, with the reason, and tried through a form for every kind of value.
  await view("Tools");
  await page.getByText("1 server could not be asked").waitFor();
  await page.getByLabel("What should the tool do?").fill("read a file");
  await page.getByRole("button", { name: "Search" }).click();
  const found = page.getByRole("region", { name: "read", exact: true });
  await found.getByText("Why: read → read").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByRole("region", { name: "fill", exact: true }).getByRole("button", { name: "Try it" }).click();
  const form = page.getByRole("region", { name: "Try fill" });
  await form.getByRole("button", { name: "Run" }).click();
  assert.equal(await form.locator("textarea:invalid").first().getAttribute("name"), "text", "a required field is missing");
  await form.getByLabel("text").fill("two\nlines");
  await form.getByLabel("count").fill("9007199254740993");
  await form.getByLabel("mode").selectOption("fast");
  await form.getByLabel("level").selectOption("2");
  await form.getByLabel("deep").selectOption("false");
  await form.getByLabel("tags").fill("a\nb");
  await form.getByLabel("from", { exact: false }).fill("1.5");
  await form.getByLabel("any").fill("no JSON");
  await form.getByRole("button", { name: "Run" }).click();
  assert.equal(await form.locator("textarea:invalid").first().getAttribute("name"), "any");
  await form.getByLabel("any").fill("[1, null]");
  await form.getByRole("button", { name: "Run" }).click();
  await form.locator("#result pre").getByText("filled").first().waitFor();
  await view("Calls");
  await page.getByRole("button", { name: "fill", exact: true }).click();
  const tried = await page.getByRole("region", { name: "The selected call" }).locator("pre").first().innerText();
  for (const value of [/"text": "two\\nlines"/, /"count": 9007199254740993/, /"mode": "fast"/, /"level": 2/, /"deep": false/,
    /"tags": \[\s*"a",\s*"b"\s*\]/, /"range": \{\s*"from": 1.5\s*\}/, /"any": \[\s*1,\s*null\s*\]/]) assert.match(tried, value);

  await view("Tokens");
  await page.getByRole("cell", { name: "fs", exact: true }).waitFor();
  await page.getByRole("heading", { name: "Toolboxes" }).waitFor();

  // Servers: the calls were counted.
  await view("Servers");
  assert.match(await page.getByRole("region", { name: "dev fs" }).locator("dl").innerText(), /calls\n\d\d/);
  // The browser logs that the broken server could not be started, and nothing else.
  assert.deepEqual(trouble, ["console: Failed to load resource: the server responded with a status of 409 (Conflict)"]);

  // A page whose cookie is no longer good says so.
  await context.clearCookies();
  await page.reload().catch(() => {});
  assert.match(await page.locator("body").innerText(), /Run `mcp-workbench ui`/);
} finally {
  await browser.close();
}
