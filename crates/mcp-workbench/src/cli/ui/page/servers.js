// Servers: state, reason and remedy, process, last lines of stderr, and what can be done.

import { acting, bytes, clock, el, empty, get, heading, notice, pill, post } from "./element.js";

// The addresses at which the user signs in, by server.
const signingIn = new Map();
const kinds = { up: "good", failed: "bad", starting: "warn" };

// The address comes from the server, so only one that a browser opens as a page becomes a link.
const isPage = (address) => /^https?:\/\//.test(address);

function signIn(server, renew) {
  const key = `${server.toolbox}/${server.server}`;
  const address = signingIn.get(key);
  if (address) {
    return el("p", {}, "Sign in at ", el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, new URL(address).host),
      ". The server starts when you come back.");
  }
  return el("button", {
    class: "main",
    onclick: acting(async () => {
      const answer = await post("servers", { toolbox: server.toolbox, server: server.server, action: "sign_in" });
      if (isPage(answer.address)) signingIn.set(key, answer.address);
      renew();
    }),
  }, "Sign in");
}

function card(server, renew) {
  const act = (action, done) => acting(async () => {
    await post("servers", { toolbox: server.toolbox, server: server.server, client: server.client, instance: server.instance, action });
    notice(`${server.server}: ${done}`);
    renew();
  });
  const facts = [
    ["only for", server.client],
    ["runs", server.target],
    ["process", server.pid],
    ["memory", bytes(server.memory_bytes)],
    ["tools", server.tools],
    ["calls", server.calls],
    ["withheld", server.withheld || undefined],
  ].filter(([, value]) => value !== undefined && value !== "");
  const isUp = server.state === "up";
  if (isUp) signingIn.delete(`${server.toolbox}/${server.server}`);
  return el("section", { class: "card", "aria-label": `${server.toolbox} ${server.server}` },
    el("div", { class: "row between" },
      el("h2", {}, el("span", { class: "faint" }, `${server.toolbox} / `), server.server),
      pill(server.state, kinds[server.state])),
    server.reason ? el("p", { class: "reason" }, server.reason) : null,
    server.remedy ? el("p", { class: "remedy" }, "What to do: ", server.remedy) : null,
    el("dl", {}, ...facts.flatMap(([name, value]) => [
      el("dt", {}, name), el("dd", { class: name === "runs" ? "mono" : "" }, String(value))])),
    server.stderr.length ? el("details", { open: server.state === "failed" },
      el("summary", { class: "small faint" }, "last lines of stderr"),
      el("pre", { tabindex: "0" }, server.stderr.join("\n"))) : null,
    el("p", { class: "row" },
      isUp ? el("button", { onclick: act("restart", "restarted") }, "Restart") : null,
      isUp ? el("button", { onclick: act("stop", "stopped") }, "Stop")
        : el("button", { onclick: act("start", "started") }, "Start"),
      server.sign_in ? signIn(server, renew) : null));
}

export const servers = {
  changes: ["servers", "calls"],
  async make(renew) {
    const [{ servers: all }, { activity }] = await Promise.all([get("servers"), get("activity")]);
    return [
      ...heading("Servers", "Servers start when they are needed.", "mcp-workbench live servers"),
      all.length ? el("div", { class: "grid" }, ...all.map((server) => card(server, renew)))
        : empty("No server is configured."),
      activity.length ? el("section", { class: "card activity", "aria-label": "Activity" },
        el("h2", {}, "What happened"),
        el("ol", { class: "small", reversed: true }, ...activity.slice(-50).reverse().map((note) =>
          el("li", { class: "wrap" }, el("span", { class: "faint mono" }, `${clock(note.time)} `), note.text)))) : "",
    ];
  },
};
