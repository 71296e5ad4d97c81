// A server that hangs while it starts: it hides no others, shows its process and what it wrote, and can be stopped.

import { assert, enter, given, launch, show } from "./browser.mjs";

const browser = await launch();
try {
  const { page, trouble } = await enter(browser, given.links[0]);
  await page.getByText("live", { exact: true }).waitFor();
  await show(page, "Tools");
  await page.getByRole("region", { name: "read", exact: true }).waitFor();
  await page.getByText("2 servers could not be asked").click();
  await page.getByText("late: still starting").waitFor();

  await show(page, "Servers");
  const late = page.getByRole("region", { name: "slow late" });
  await late.getByText("starting", { exact: true }).waitFor();
  assert.match(await late.locator("dl").innerText(), /process\n\d+\nmemory\n/);
  await late.getByText("last lines of stderr").click();
  await late.getByText("waiting for the database").waitFor();
  await late.getByRole("button", { name: "Stop" }).click();
  await late.getByText("it was stopped while it was starting").waitFor();
  await late.getByRole("button", { name: "Start" }).waitFor();
  assert.deepEqual(trouble, []);
} finally {
  await browser.close();
}
