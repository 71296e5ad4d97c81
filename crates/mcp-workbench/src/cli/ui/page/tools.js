// Tools: browse, search with an explanation, and try one through a form made from its schema.

import { acting, count, el, empty, get, notice, parse, pill, place, post, pretty, text } from "./element.js";
import { fields, read } from "./form.js";

const state = { query: "", chosen: null, result: null };

const keyOf = (tool) => `${tool.toolbox}/${tool.server}/${tool.tool}`;

// All tools, or those that a search found, and the servers whose tools are not known.
async function load() {
  if (state.query) {
    const found = await get(`search?${new URLSearchParams({ q: state.query })}`);
    return { tools: found.hits.map((hit) => ({ definition: {}, ...hit })), missing: found.failed, isGood: found.good_match };
  }
  const { toolboxes } = await get("tools");
  const servers = toolboxes.flatMap((toolbox) => toolbox.servers.map((server) => ({ toolbox: toolbox.name, server: server.name, ...server })));
  return {
    tools: servers.flatMap(({ toolbox, server, tools = [] }) =>
      tools.map((definition) => ({ toolbox, server, tool: definition.name, definition }))),
    missing: servers.filter((server) => server.error),
    isGood: true,
  };
}

function result(answer) {
  const value = answer.result ?? answer.error;
  const texts = (answer.result?.content || []).filter((item) => item.type === "text");
  const isOk = answer.result && !answer.result.isError;
  return el("div", { id: "result", class: "stack" },
    el("h3", {}, "Result ", pill(isOk ? "ok" : "error", isOk ? "good" : "bad")),
    ...texts.map((item) => el("pre", { tabindex: "0" }, item.text)),
    el("details", { open: texts.length === 0 }, el("summary", { class: "small faint" }, "as JSON"), el("pre", { tabindex: "0" }, pretty(value))));
}

function form(tool, renew) {
  const run = acting(async () => {
    const values = read(document.getElementById("arguments"));
    if (values === undefined) return;
    notice(`${tool.tool}: running`);
    state.result = await post("call", { toolbox: tool.toolbox, server: tool.server, tool: tool.tool, arguments: values }, parse);
    notice(`${tool.tool}: done`);
    await renew();
    document.getElementById("result")?.scrollIntoView({ block: "nearest" });
  });
  const close = () => { state.chosen = null; state.result = null; renew(); };
  return el("section", { class: "card stack", "data-key": `try ${keyOf(tool)}`, "aria-label": `Try ${tool.tool}` },
    el("div", { class: "row between" }, el("h2", {}, "Try ", place(tool.toolbox, tool.server), tool.tool), el("button", { onclick: close }, "Close")),
    el("p", { class: "wrap lines" }, text(tool.definition.description)),
    el("form", { id: "arguments", class: "stack", onsubmit: (event) => event.preventDefault() },
      ...fields(tool.definition.inputSchema || {}),
      el("p", { class: "row flat" }, el("button", { class: "main", type: "button", onclick: run }, "Run"))),
    state.result ? result(state.result) : null,
    el("details", {}, el("summary", { class: "small faint" }, "definition"), el("pre", { tabindex: "0" }, pretty(tool.definition))));
}

function why(hit) {
  const words = hit.explanation.words.map((word) => `${word.word} → ${word.found} (${word.how}, ${word.fields.join(", ")})`);
  const missing = hit.explanation.missing.length ? `; not found: ${hit.explanation.missing.join(", ")}` : "";
  return (hit.explanation.exact ? `${hit.explanation.exact}; ` : "") + words.join("; ") + missing;
}

function card(tool, renew) {
  const choose = async () => {
    Object.assign(state, { chosen: tool, result: null });
    await renew();
    document.getElementById("arguments")?.closest("section").scrollIntoView({ block: "start" });
    document.querySelector("#arguments :is(input, select, textarea, button)")?.focus({ preventScroll: true });
  };
  return el("section", { class: "card tool", "data-key": keyOf(tool), "aria-label": tool.tool },
    el("div", { class: "row between" },
      el("h2", {}, place(tool.toolbox, tool.server), tool.tool),
      tool.score === undefined ? null : el("span", { class: "pill", title: "score" }, tool.score.toFixed(2))),
    el("p", { class: "small wrap short" }, text(tool.definition.description)),
    tool.explanation ? el("p", { class: "small faint wrap" }, el("strong", {}, "Why: "), why(tool)) : null,
    el("div", { class: "row actions" }, el("button", { onclick: choose }, "Try it")));
}

function search(renew) {
  const find = (query) => { Object.assign(state, { query, chosen: null, result: null }); renew(); };
  return el("form", {
    class: "row end", role: "search",
    onsubmit: (event) => { event.preventDefault(); find(document.getElementById("query").value.trim()); },
  },
  el("label", {}, "What should the tool do?", el("input", { id: "query", type: "search", value: state.query })),
  el("button", { class: "main", type: "submit" }, "Search"),
  state.query ? el("button", { type: "button", onclick: () => { document.getElementById("query").value = ""; find(""); } }, "Show all") : null);
}

export const tools = {
  lead: "Browse all tools, or search as a model does.",
  command: "mcp-workbench search",
  loading: "Asking servers for their tools…",
  changes: ["servers", "trust"],
  async make(renew) {
    const { tools: all, missing, isGood } = await load();
    const words = state.query ? `${count(all.length, "tool")} for “${state.query}”${isGood ? "" : ". No good match: these are the nearest"}`
      : count(all.length, "tool");
    return [
      search(renew),
      state.chosen ? form(state.chosen, renew) : null,
      el("p", { class: "summary", role: "status" }, words),
      missing.length ? el("details", { class: "card notes" },
        el("summary", {}, `${count(missing.length, "server")} could not be asked`),
        el("ul", { class: "small wrap" }, ...missing.map((server) => el("li", {}, place(server.toolbox), `${server.server}: ${server.error}`)))) : null,
      all.length ? el("div", { class: "grid" }, ...all.map((tool) => card(tool, renew))) : empty("No tool was found."),
    ].filter(Boolean);
  },
};
