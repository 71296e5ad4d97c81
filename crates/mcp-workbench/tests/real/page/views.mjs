// Every view, live updates, and an approval that is decided on the page.

import { assert, client, enter, given, launch } from "./browser.mjs";

const browser = await launch();
try {
  const { page, trouble } = await enter(browser, given.links[0]);
  const view = async (name) => {
    await page.getByRole("link", { name }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
  };

  // Servers: started by a button, and its state follows without a reload.
  await page.getByRole("heading", { level: 1, name: "Servers" }).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  const server = page.getByRole("region", { name: "dev fs" });
  await server.getByText("resting").waitFor();
  await server.getByRole("button", { name: "Start" }).click();
  await server.getByText("up", { exact: true }).waitFor();
  const broken = page.getByRole("region", { name: "dev broken" });
  await broken.getByRole("button", { name: "Start" }).click();
  await broken.getByText("failed", { exact: true }).waitFor();
  await broken.getByText("What to do:").waitFor();

  // Calls: one that is made while the view is open appears.
  await view("Calls");
  const agent = await client("agent");
  await agent.open("dev");
  const read = await agent.use("dev", "fs", "read", { path: "/x" });
  assert.equal(read.result.content[0].text, "hello");
  await page.getByRole("button", { name: "read", exact: true }).click();
  const detail = page.getByRole("region", { name: "The selected call" });
  await detail.getByText("use_tool became a call of “read”").waitFor();
  assert.match(await detail.innerText(), /"path": "\/x"/);
  assert.equal(await detail.getByText("\"hello\"").count(), 2, "the result on both hops");
  assert.match(await detail.innerText(), /replied \(\d+ B, ≈ \d+ tokens\)/);
  await page.getByLabel("Tool or method").fill("nothing like it");
  await page.getByText("No call matches.").waitFor();
  await page.getByLabel("Tool or method").fill("");

  // Approvals: the call of a client that cannot be asked waits for the page.
  const wipe = agent.use("dev", "fs", "wipe", { path: "/" });
  await page.locator("#waiting").getByText("1").waitFor();
  await view("Approvals");
  assert.match(await page.locator("main pre").innerText(), /\{"path":"\/"\}/);
  await page.getByRole("button", { name: "Allow once" }).click();
  assert.equal((await wipe).result.content[0].text, "gone");
  await page.getByText("Nothing waits for you.").waitFor();
  const denied = agent.use("dev", "fs", "wipe", { path: "/etc" });
  await page.getByRole("button", { name: "Deny" }).click();
  assert.match((await denied).result.content[0].text, /did not permit this call/);

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

  // Tools: found by what they do, and tried.
  await view("Tools");
  await page.getByLabel("What should the tool do?").fill("read a file");
  await page.getByRole("button", { name: "Search" }).click();
  const found = page.getByRole("region", { name: "read", exact: true });
  await found.getByRole("button", { name: "Try it" }).click();
  await page.getByLabel("path").fill("/y");
  await page.getByRole("button", { name: "Run" }).click();
  await page.locator("#result").getByText("hello").waitFor();

  await view("Tokens");
  await page.getByRole("cell", { name: "fs", exact: true }).waitFor();

  // Servers: the calls were counted.
  await view("Servers");
  assert.match(await page.getByRole("region", { name: "dev fs" }).locator("dl").innerText(), /calls\n3/);
  // The browser logs that the broken server could not be started, and nothing else.
  assert.deepEqual(trouble, ["console: Failed to load resource: the server responded with a status of 409 (Conflict)"]);
} finally {
  await browser.close();
}
