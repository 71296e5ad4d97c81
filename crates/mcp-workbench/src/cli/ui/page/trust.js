// Trust: what is pinned and what was found. Approval is a separate step after looking at the difference.

import { acting, count, el, empty, get, notice, pill, place, post } from "./element.js";

const kinds = { pinned: "good", changed: "bad", new: "warn", gone: "warn", unknown: "warn" };
const open = new Map();

function difference(words) {
  const lines = words.split("\n").map((line) => {
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@@") ? "place" : "";
    return el("span", { class: kind }, `${line}\n`);
  });
  return el("pre", { class: "diff", tabindex: "0" }, ...lines);
}

function review(server, renew) {
  const key = `${server.toolbox}/${server.server}`;
  const shown = open.get(key);
  const look = acting(async () => {
    const query = new URLSearchParams({ toolbox: server.toolbox, server: server.server });
    open.set(key, await get(`trust/diff?${query}`));
    renew();
  });
  const approve = acting(async () => {
    await post("trust", { toolbox: server.toolbox, server: server.server, digest: shown.digest });
    open.delete(key);
    notice(`${server.server}: approved`);
    renew();
  });
  if (!shown) return el("div", { class: "row actions" }, el("button", { onclick: look }, "Show the difference"));
  return el("div", { class: "stack" },
    shown.error ? el("p", { class: "reason" }, shown.error) : null,
    shown.difference ? difference(shown.difference.trimEnd()) : el("p", {}, "There is no difference."),
    ...shown.remarks.map((remark) => el("p", { class: "small wrap" }, remark)),
    el("div", { class: "row" },
      shown.difference && !shown.error ? el("button", { class: "danger", onclick: approve }, "I have read it: approve") : null,
      el("button", { onclick: () => { open.delete(key); renew(); } }, "Close")));
}

const changesOf = (server) => server.tools.filter((tool) => tool.state !== "pinned");
const differs = (server) => server.state !== "pinned" || changesOf(server).length > 0;

function card(server, renew) {
  const changed = changesOf(server);
  const state = differs(server) && server.state === "pinned" ? "changed" : server.state;
  return el("section", { class: "card", "data-key": `${server.toolbox}/${server.server}`, "aria-label": `${server.toolbox} ${server.server}` },
    el("div", { class: "row between" }, el("h2", {}, place(server.toolbox), server.server), pill(state, kinds[state])),
    el("p", { class: "small faint flat" }, count(server.tools.length, "tool"), server.pin ? `, pin: ${server.pin}` : ""),
    server.launch ? el("p", { class: "reason" }, `The launch differs: ${server.launch.join(", ")}`) : null,
    server.error ? el("p", { class: "reason" }, server.error) : null,
    changed.length ? el("ul", {}, ...changed.map((tool) => el("li", { class: "wrap" }, tool.tool, " ", pill(tool.state, kinds[tool.state])))) : null,
    ...(server.remarks || []).map((remark) => el("p", { class: "small wrap" }, remark.text)),
    differs(server) && server.state !== "gone" ? review(server, renew) : null);
}

export const trust = {
  lead: "What is pinned, and what was found now. Nothing is approved by looking.",
  command: "mcp-workbench trust list",
  loading: "Starting servers to compare them, for at most 10 seconds…",
  changes: ["trust"],
  async make(renew) {
    const { file, servers } = await get("trust");
    if (!servers.length) return [empty("No server is configured.")];
    const open = servers.filter(differs);
    const settled = servers.filter((server) => !differs(server));
    return [
      el("p", { class: "summary wrap" }, open.length ? `${count(open.length, "server")} of ${servers.length} to look at. ` : "Everything is as it was approved. ",
        el("span", { class: "faint" }, "Lock file: ", el("code", {}, file))),
      el("div", { class: "stack" }, ...[...open, ...settled].map((server) => card(server, renew))),
    ];
  },
};
