// Trust: what is pinned and what was found. Approval is a separate step after looking at the difference.

import { acting, el, empty, get, heading, notice, pill, post } from "./element.js";

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
    const place = new URLSearchParams({ toolbox: server.toolbox, server: server.server });
    open.set(key, await get(`trust/diff?${place}`));
    renew();
  });
  const approve = acting(async () => {
    await post("trust", { toolbox: server.toolbox, server: server.server, digest: shown.digest });
    open.delete(key);
    notice(`${server.server}: approved`);
    renew();
  });
  if (!shown) return el("p", { class: "row" }, el("button", { onclick: look }, "Show the difference"));
  return el("div", { class: "stack" },
    difference(shown.difference || "no difference\n"),
    shown.error ? el("p", { class: "reason" }, shown.error) : null,
    ...shown.remarks.map((remark) => el("p", { class: "small wrap" }, remark)),
    el("div", { class: "row" },
      el("button", { class: "danger", onclick: approve }, "I have read it: approve"),
      el("button", { onclick: () => { open.delete(key); renew(); } }, "Close")));
}

function card(server, renew) {
  const changed = server.tools.filter((tool) => tool.state !== "pinned");
  const differs = server.state !== "pinned" || changed.length > 0;
  return el("section", { class: "card", "aria-label": `${server.toolbox} ${server.server}` },
    el("div", { class: "row between" },
      el("h2", {}, el("span", { class: "faint" }, `${server.toolbox} / `), server.server),
      el("span", {}, pill(differs && server.state === "pinned" ? "changed" : server.state, differs ? kinds[server.state === "pinned" ? "changed" : server.state] : "good"))),
    el("p", { class: "small faint" }, `${server.tools.length} tools`, server.pin ? `, pin: ${server.pin}` : ""),
    server.launch ? el("p", { class: "reason" }, `the launch differs: ${server.launch.join(", ")}`) : null,
    server.error ? el("p", { class: "reason" }, server.error) : null,
    changed.length ? el("ul", {}, ...changed.map((tool) => el("li", {}, tool.tool, " ", pill(tool.state, kinds[tool.state])))) : null,
    ...(server.remarks || []).map((remark) => el("p", { class: "small wrap" }, remark.text)),
    differs ? review(server, renew) : null);
}

export const trust = {
  changes: ["trust"],
  async make(renew) {
    const { file, servers } = await get("trust");
    return [
      ...heading("Trust", "What is pinned, and what was found now.", "mcp-workbench trust list"),
      el("p", { class: "small faint wrap" }, file),
      servers.length ? el("div", { class: "stack" }, ...servers.map((server) => card(server, renew)))
        : empty("No server is configured."),
    ];
  },
};
