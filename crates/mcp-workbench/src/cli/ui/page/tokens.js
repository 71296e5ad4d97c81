// Tokens: what definitions cost a model, by server and toolbox, and what the workbench saves.

import { el, empty, get, heading, svg, table } from "./element.js";

const number = (value) => Number(value).toLocaleString("en");

function chart(rows) {
  const most = Math.max(1, ...rows.map(([, value]) => value));
  const height = rows.length * 34;
  return svg("svg", { class: "bars", viewBox: `0 0 640 ${height}`, role: "img", "aria-label": rows.map(([name, value]) => `${name}: ${number(value)}`).join(", ") },
    ...rows.flatMap(([name, value], index) => [
      svg("text", { class: "axis", x: 0, y: index * 34 + 11 }, `${name}: ${number(value)}`),
      svg("rect", { class: index ? "bar" : "bar inner", x: 0, y: index * 34 + 16, width: Math.max(2, (value / most) * 640), height: 12, rx: 3 }),
    ]));
}

export const tokens = {
  changes: [],
  async make() {
    const document = await get("tokens");
    const servers = document.toolboxes.flatMap((toolbox) => toolbox.servers.map((server) => ({ toolbox: toolbox.name, ...server })));
    const rows = [
      ["through the workbench, at the start", document.workbench.start_tokens],
      ["every server connected directly", document.flat_tokens],
      ...document.toolboxes.filter((toolbox) => toolbox.open_tokens)
        .map((toolbox) => [`opening ${toolbox.name}`, toolbox.open_tokens]),
    ];
    const saved = document.saved_percent ?? 0;
    return [
      ...heading("Tokens", `Estimated for ${document.tokenizer}.`, "mcp-workbench tokens"),
      el("section", { class: "card stack" },
        el("h2", {}, saved > 0 ? `${saved} % fewer tokens at the start` : "What a model reads at the start"), chart(rows)),
      el("p", {}),
      servers.length ? table([
        { title: "Toolbox", show: (row) => row.toolbox },
        { title: "Server", show: (row) => row.name },
        { title: "Tools", number: true, show: (row) => number(row.tools) },
        { title: "Tokens", number: true, show: (row) => number(row.tokens) },
        { title: "Note", show: (row) => row.error || "" },
      ], servers) : empty("No server is configured."),
    ];
  },
};
