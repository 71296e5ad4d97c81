// Tokens: what definitions cost a model, by server and toolbox, and what the workbench saves.

import { bar, el, empty, get, table } from "./element.js";

const number = (value) => Number(value).toLocaleString("en");

// Bars of one scale, each with its name and number as text.
function chart(rows) {
  const most = Math.max(1, ...rows.map((row) => row.value));
  return el("ol", { class: "chart" }, ...rows.map((row) => el("li", {},
    el("span", { class: "wrap" }, row.name), el("span", { class: "number" }, number(row.value)),
    bar((row.value / most) * 1000, row.isOwn ? "inner" : "whole"))));
}

const section = (title, about, ...children) => el("section", { class: "card stack", "data-key": title, "aria-label": title },
  el("div", {}, el("h2", {}, title), about ? el("p", { class: "small faint flat" }, about) : null), ...children);

export const tokens = {
  lead: "What the definitions of tools cost a model that reads them.",
  command: "mcp-workbench tokens",
  loading: "Asking servers for their tools…",
  changes: ["servers", "trust"],
  async make() {
    const document = await get("tokens");
    const servers = document.toolboxes.flatMap((toolbox) =>
      toolbox.servers.map((server) => ({ toolbox: toolbox.name, key: `${toolbox.name}/${server.name}`, ...server })));
    if (!servers.length) return [empty("No server is configured.")];
    const opened = document.toolboxes.filter((toolbox) => toolbox.open_tokens);
    const saved = document.saved_percent ?? 0;
    const start = [
      { name: "every server connected directly", value: document.flat_tokens },
      { name: "through the workbench", value: document.workbench.start_tokens, isOwn: true },
    ];
    const title = saved > 0 ? `${saved} % fewer tokens at the start` : "With so few tools, the workbench costs more tokens than it saves";
    return [
      section(title, `Estimated for ${document.tokenizer}; other models count differently.`, chart(start)),
      opened.length ? section("Toolboxes", "What a model reads when it opens a toolbox, and what the same tools cost directly.", table([
        { title: "Toolbox", show: (row) => row.name },
        { title: "Opened", kind: "number", show: (row) => number(row.open_tokens) },
        { title: "Signatures only", kind: "number", show: (row) => number(row.open_signature_tokens) },
        { title: "Directly", kind: "number", show: (row) => number(row.flat_tokens) },
      ], opened.map((toolbox) => ({ key: toolbox.name, ...toolbox })))) : null,
      section("Servers", "The definitions of each server.", table([
        { title: "Toolbox", show: (row) => row.toolbox },
        { title: "Server", show: (row) => row.name },
        { title: "Tools", kind: "number", show: (row) => (row.error ? "" : number(row.tools)) },
        { title: "Tokens", kind: "number", show: (row) => (row.error ? "" : number(row.tokens)) },
        { title: "Not counted", show: (row) => row.error || "" },
      ].filter(({ title }) => title !== "Not counted" || servers.some((server) => server.error)), servers)),
      document.largest.length ? section("The largest definitions", "",
        chart(document.largest.map((tool) => ({ name: `${tool.toolbox} / ${tool.server} / ${tool.tool}`, value: tool.tokens })))) : null,
    ].filter(Boolean);
  },
};
