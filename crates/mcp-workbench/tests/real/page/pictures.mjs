// Draws the pictures of the page.

import { client, enter, given, launch, show } from "./browser.mjs";

const browser = await launch();
const options = { viewport: { width: 1180, height: 780 }, deviceScaleFactor: 1, reducedMotion: "reduce" };
const picture = (page, name) => page.screenshot({ path: `${given.images}/page-${name}.png` });

try {
  const { page } = await enter(browser, given.links[0], options);
  await page.getByText("live", { exact: true }).waitFor();
  const view = (name) => show(page, name);

  const agent = await client("claude-code");
  await agent.open("dev");
  await agent.open("ops");
  const file = `${given.notes}/shopping.txt`;
  await agent.use("dev", "filesystem", "list_directory", { path: given.notes });
  await agent.use("dev", "everything", "echo", { message: "Is anybody there?" });
  await agent.use("dev", "everything", "get-sum", { a: 19, b: 23 });
  await agent.use("dev", "filesystem", "read_text_file", { path: `${given.notes}/missing.txt` });
  await agent.use("dev", "filesystem", "read_text_file", { path: file });

  await page.getByRole("region", { name: "ops tickets" }).getByText("failed", { exact: true }).waitFor();
  await picture(page, "servers");

  await page.setViewportSize({ width: 1180, height: 1180 });
  await view("Calls");
  await page.getByRole("button", { name: "read_text_file" }).first().click();
  await page.getByRole("region", { name: "The selected call" }).waitFor();
  await picture(page, "calls");

  const asked = agent.use("dev", "filesystem", "write_file", { path: file, content: "Milk, bread, and two new fuses\n" });
  await page.locator("#waiting").getByText("1").waitFor();
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 1180, height: 440 });
  await view("Approvals");
  // The notice about the call that waits has gone.
  await page.locator("#notice").waitFor({ state: "hidden" });
  await picture(page, "approvals");
  await page.getByRole("button", { name: "Allow once" }).click();
  await asked;
} finally {
  await browser.close();
}
