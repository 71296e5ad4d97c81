// Servers: state, reason and remedy, process, last lines of stderr, and what can be done.

import { acting, bytes, clock, count, el, empty, get, notice, pill, place, post } from "./element.js";

// The addresses at which the user signs in, by server.
const signingIn = new Map();
const kinds = { up: "good", failed: "bad", starting: "warn" };

// The address comes from the server, so only one that a browser opens as a page becomes a link.
const isPage = (address) => /^https?:\/\//.test(address);
const keyOf = (server) => `${server.toolbox}/${server.server}/${server.instance ?? ""}`;

function signIn(server, renew) {
  const address = signingIn.get(keyOf(server));
  const begin = el("button", {
    class: address ? "" : "main",
    onclick: acting(async () => {
      const answer = await post("servers", {
        toolbox: server.toolbox, server: server.server, client: server.client, instance: server.instance, action: "sign_in",
      });
      if (isPage(answer.address)) signingIn.set(keyOf(server), answer.address);
      renew();
    }),
  }, address ? "Sign in again" : "Sign in");
  if (!address) return begin;
  return [begin, el("p", { class: "flat" }, "Sign in at ",
    el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, new URL(address).host),
    ". The server starts when you come back.")];
}

function facts(server) {
  const withheld = server.withheld ? [`${server.withheld}, `, el("a", { href: "#trust" }, "see Trust")] : undefined;
  const known = [
    ["only for", server.client],
    [/^https?:/.test(server.target) ? "address" : "runs", el("span", { class: "mono" }, server.target)],
    ["process", server.pid],
    ["memory", bytes(server.memory_bytes)],
    ["tools", server.tools],
    ["withheld", withheld],
    ["calls", server.calls],
  ].filter(([, value]) => value !== undefined && value !== "");
  return el("dl", {}, ...known.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, ...[value].flat())]));
}

function card(server, renew) {
  const act = (action, done) => acting(async () => {
    await post("servers", { toolbox: server.toolbox, server: server.server, client: server.client, instance: server.instance, action });
    notice(`${server.server}: ${done}`);
    renew();
  });
  const isFailed = server.state === "failed";
  const isUp = server.state === "up";
  if (isUp) signingIn.delete(keyOf(server));
  return el("section", { class: "card", "data-key": keyOf(server), "aria-label": `${server.toolbox} ${server.server}` },
    el("div", { class: "row between" }, el("h2", {}, place(server.toolbox), server.server), pill(server.state, kinds[server.state])),
    server.reason ? el("p", { class: "reason" }, server.reason) : null,
    server.remedy ? el("p", { class: "remedy" }, el("strong", {}, "What to do: "), server.remedy) : null,
    facts(server),
    server.stderr.length ? el("details", { open: isFailed, "data-key": `stderr ${isFailed}` },
      el("summary", { class: "small faint" }, "last lines of stderr"),
      el("pre", { tabindex: "0" }, server.stderr.join("\n"))) : null,
    el("div", { class: "row actions" },
      server.sign_in ? signIn(server, renew) : null,
      isUp ? el("button", { onclick: act("restart", "restarted") }, "Restart") : null,
      isUp || server.state === "starting" ? el("button", { onclick: act("stop", "stopped") }, "Stop")
        : el("button", { onclick: act("start", "started") }, "Start")));
}

// How many servers are in each state.
function summary(all) {
  const states = ["failed", "starting", "up", "resting"];
  return states.map((state) => [state, all.filter((server) => server.state === state).length])
    .filter(([, number]) => number > 0).map(([state, number]) => `${number} ${state}`).join(", ");
}

export const servers = {
  lead: "Servers start when they are needed.",
  command: "mcp-workbench live servers",
  changes: ["servers", "calls"],
  async make(renew) {
    const [{ servers: all }, { activity }] = await Promise.all([get("servers"), get("activity")]);
    if (!all.length) return [empty("No server is configured. Add one with `mcp-workbench add`.")];
    return [
      el("p", { class: "summary" }, `${count(all.length, "server")}: ${summary(all)}`),
      el("div", { class: "grid" }, ...all.map((server) => card(server, renew))),
      activity.length ? el("section", { class: "card activity", "aria-label": "Activity" },
        el("h2", {}, "What happened"),
        el("ol", { class: "small" }, ...activity.slice(-50).reverse().map((note) =>
          el("li", { class: "wrap" }, el("span", { class: "faint mono" }, clock(note.time), " "), note.text)))) : null,
    ].filter(Boolean);
  },
};
