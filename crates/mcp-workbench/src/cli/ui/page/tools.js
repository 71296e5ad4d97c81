// Tools: browse, search with an explanation, and try one through a form made from its schema.

import { acting, el, empty, get, heading, notice, pill, post, pretty, text } from "./element.js";

const state = { query: "", found: null, listed: null, chosen: null, result: null };

async function load() {
  if (state.query) {
    state.found = await get(`search?${new URLSearchParams({ q: state.query })}`);
    return state.found.hits.map((hit) => ({ ...hit, definition: hit.definition || {} }));
  }
  state.found = null;
  state.listed ||= await get("tools");
  return state.listed.toolboxes.flatMap((toolbox) => toolbox.servers.flatMap((server) =>
    (server.tools || []).map((definition) => ({
      toolbox: toolbox.name, server: server.name, tool: definition.name, definition,
    }))));
}

function control(name, schema, isRequired) {
  const kind = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  const id = `argument-${name}`;
  const attributes = { id, name, "data-kind": kind || "json", required: isRequired };
  if (schema.enum) {
    return el("select", attributes, el("option", { value: "" }, ""), ...schema.enum.map((value) => el("option", { value: text(value) }, text(value))));
  }
  if (kind === "boolean") return el("input", { ...attributes, type: "checkbox", required: undefined });
  if (kind === "number" || kind === "integer") return el("input", { ...attributes, type: "number", step: kind === "integer" ? "1" : "any" });
  if (kind === "string") return el("input", { ...attributes, type: "text" });
  return el("textarea", { ...attributes, placeholder: kind === "array" ? "[]" : "{}" });
}

function read(form) {
  const values = {};
  for (const field of form.querySelectorAll("[data-kind]")) {
    const { kind } = field.dataset;
    if (kind === "boolean") { if (field.checked) values[field.name] = true; continue; }
    if (field.value === "") continue;
    if (kind === "string") values[field.name] = field.value;
    else if (field.matches("select")) values[field.name] = kind === "json" ? JSON.parse(field.value) : field.value;
    else values[field.name] = JSON.parse(field.value);
  }
  return values;
}

function form(tool, renew) {
  const schema = tool.definition.inputSchema || {};
  const required = new Set(schema.required || []);
  const fields = Object.entries(schema.properties || {}).map(([name, property]) => el("label", {},
    el("span", {}, name, required.has(name) ? " (required)" : "", property.description ? ` – ${property.description}` : ""),
    control(name, property, required.has(name))));
  const run = acting(async () => {
    const place = document.getElementById("arguments");
    if (!place.reportValidity()) return;
    const answer = await post("call", { toolbox: tool.toolbox, server: tool.server, tool: tool.tool, arguments: read(place) });
    state.result = answer;
    notice(`${tool.tool}: done`);
    renew();
  });
  return el("section", { class: "card stack", "aria-label": `Try ${tool.tool}` },
    el("div", { class: "row between" }, el("h2", {}, `Try ${tool.tool}`),
      el("button", { onclick: () => { state.chosen = null; state.result = null; renew(); } }, "Close")),
    el("p", { class: "wrap" }, text(tool.definition.description)),
    el("form", { id: "arguments", class: "stack", onsubmit: (event) => event.preventDefault() }, ...fields,
      el("p", { class: "row" }, el("button", { class: "main", type: "button", onclick: run }, "Run"))),
    state.result ? el("pre", { tabindex: "0", id: "result" }, pretty(state.result.result ?? state.result.error)) : null,
    el("details", {}, el("summary", { class: "small faint" }, "definition"), el("pre", { tabindex: "0" }, pretty(tool.definition))));
}

function why(hit) {
  if (!hit.explanation) return "";
  const words = hit.explanation.words.map((word) => `${word.word} → ${word.found} (${word.how}, ${word.fields.join(", ")})`);
  const missing = hit.explanation.missing.length ? `; not found: ${hit.explanation.missing.join(", ")}` : "";
  return (hit.explanation.exact ? `${hit.explanation.exact}; ` : "") + words.join("; ") + missing;
}

const same = (a, b) => a && b && a.toolbox === b.toolbox && a.server === b.server && a.tool === b.tool;

export const tools = {
  changes: [],
  async make(renew) {
    const all = await load();
    const search = el("form", {
      class: "row end", role: "search",
      onsubmit: (event) => { event.preventDefault(); state.query = document.getElementById("query").value.trim(); renew(); },
    }, el("label", {}, "What should the tool do?", el("input", { id: "query", type: "search", value: state.query })),
    el("button", { class: "main", type: "submit" }, "Search"));
    const cards = all.map((tool) => el("section", { class: "card", "aria-label": tool.tool },
      el("div", { class: "row between" },
        el("h2", {}, el("span", { class: "faint" }, `${tool.toolbox} / ${tool.server} / `), tool.tool),
        tool.score === undefined ? null : pill(tool.score.toFixed(2))),
      el("p", { class: "small wrap" }, text(tool.definition.description).slice(0, 400)),
      tool.explanation ? el("p", { class: "small faint wrap" }, why(tool)) : null,
      el("button", { onclick: () => { state.chosen = tool; state.result = null; renew(); window.scrollTo(0, 0); } }, "Try it")));
    const chosen = all.find((tool) => same(tool, state.chosen)) || state.chosen;
    return [
      ...heading("Tools", "Browse all tools, or search as a model does.", "mcp-workbench search"),
      search, el("p", {}),
      chosen ? form(chosen, renew) : null, chosen ? el("p", {}) : null,
      cards.length ? el("div", { class: "grid" }, ...cards) : empty("No tool was found."),
    ].filter(Boolean);
  },
};
