// Calls: live, filtered, each with both hops and what the workbench changed between them.

import {
  bar, bytes, clock, copy, count, duration, el, empty, get, parse, pill, place, pretty, svg, table, text,
} from "./element.js";

const filter = { client: "", server: "", tool: "", outcome: "" };
const kinds = { ok: "good", running: "warn", input_required: "warn", cancelled: "" };
const outcomes = ["ok", "tool_error", "error", "denied", "cancelled", "input_required", "running"];
// The shortest duration that is a bar, and the most differences that are listed.
const SHORTEST = 50;
const MAX_CHANGES = 20;
let selected = null;

const caller = (call) => [text(call.client.name) || call.client.principal, call.client.number ? `#${call.client.number}` : ""]
  .filter(Boolean).join(" ");
const target = (call) => call.tool || call.target || call.method;
const server = (call) => (call.server ? `${call.toolbox}/${call.server}` : "");
const outcome = (call) => pill(call.code || call.outcome, kinds[call.outcome] ?? "bad");
const isShown = (call) => {
  const has = (value, wanted) => text(value).toLowerCase().includes(wanted.toLowerCase());
  return has(caller(call), filter.client) && has(server(call), filter.server) && has(target(call), filter.tool)
    && (!filter.outcome || call.outcome === filter.outcome);
};

function field(name, label, values, renew) {
  return el("label", {}, label,
    el("input", {
      type: "search", id: `filter-${name}`, list: `known-${name}`, autocomplete: "off", value: filter[name],
      oninput: (event) => { filter[name] = event.target.value; renew(); },
    }),
    el("datalist", { id: `known-${name}` }, ...[...new Set(values)].sort().filter(Boolean).map((value) => el("option", { value }))));
}

function filters(all, renew) {
  return el("div", { class: "filters", role: "search" },
    field("client", "Client", all.map(caller), renew),
    field("server", "Toolbox or server", all.map(server), renew),
    field("tool", "Tool or method", all.map(target), renew),
    el("label", {}, "Outcome", el("select", {
      id: "filter-outcome",
      onchange: (event) => { filter.outcome = event.target.value; renew(); },
    }, el("option", { value: "" }, "any"), ...outcomes.map((word) => el("option", { value: word, selected: filter.outcome === word }, word.replaceAll("_", " "))))));
}

const inServers = (call) => call.hops.reduce((sum, hop) => sum + (hop.duration_us || 0), 0);

// A bar whose length is the logarithm of the duration, so that 1 ms and 1 min are both seen. The stronger part is the share of servers.
function timing(call, longest) {
  if (call.duration_us === undefined) return "";
  const length = 1000 * Math.max(0, Math.log(Math.max(1, call.duration_us / SHORTEST)) / Math.log(longest / SHORTEST));
  const share = Math.min(1, inServers(call) / Math.max(1, call.duration_us));
  const bars = bar(length, "whole");
  bars.append(svg("rect", { class: "inner", width: length * share, height: 8 }));
  return bars;
}

function list(chosen, renew) {
  const longest = Math.max(1_000_000, ...chosen.map((call) => call.duration_us || 0));
  const select = (call) => async () => {
    selected = selected === call.id ? null : call.id;
    await renew();
    if (selected !== null) document.querySelector("tr.selected")?.scrollIntoView({ block: "nearest" });
  };
  return table([
    { title: "Time", kind: "time", show: (call) => clock(call.time) },
    { title: "Client", kind: "client", show: (call) => [caller(call), call.client.as].filter(Boolean).join(" as ") },
    { title: "Server", kind: "server", show: (call) => (call.server ? `${call.toolbox} / ${call.server}` : "") },
    {
      title: "Call",
      kind: "call",
      show: (call) => el("button", { class: "plain", "aria-expanded": String(selected === call.id), onclick: select(call) }, target(call)),
    },
    { title: "Outcome", kind: "outcome", show: outcome },
    { title: "Result", kind: "number size", show: (call) => bytes(call.result_bytes) },
    {
      title: "Duration",
      kind: "number duration",
      show: (call) => el("div", { class: "timing" }, el("span", {}, duration(call.duration_us)), timing(call, longest)),
    },
  ], chosen.map((call) => ({ ...call, key: call.id, selected: call.id === selected })), "calls");
}

// The size of a message, and the estimate of its tokens by `mcp-workbench tokens`.
function size(length, tokens) {
  const parts = [bytes(length), tokens === undefined ? "" : `≈ ${count(tokens, "token")}`].filter(Boolean);
  return parts.length ? ` (${parts.join(", ")})` : "";
}

function message(title, value, length, tokens) {
  const missing = length === undefined ? "None so far." : "Not stored: larger than 64 KiB.";
  return el("div", {}, el("h4", {}, title, size(length, tokens)),
    value === undefined ? el("p", { class: "small faint flat" }, missing) : el("pre", { tabindex: "0" }, pretty(value)));
}

const isTree = (value) => typeof value === "object" && value !== null && !JSON.isRawJSON?.(value);

// The differences between two values, each with its path.
function differences(before, after, path) {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (!isTree(before) || !isTree(after)) return [{ path, before, after }];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) =>
    differences(before[name], after[name], Array.isArray(after) ? `${path}[${name}]` : `${path}.${name}`));
}

function short(value) {
  const words = JSON.stringify(value);
  return words.length > 80 ? `${words.slice(0, 80)}…` : words;
}

function changed({ path, before, after }) {
  const name = el("code", {}, path);
  if (before === undefined) return [name, " was added: ", el("code", {}, short(after))];
  if (after === undefined) return [name, " was removed: ", el("code", {}, short(before))];
  return [name, " was changed from ", el("code", {}, short(before)), " to ", el("code", {}, short(after))];
}

// What the workbench changed on the way to the server and back, in words.
function changes(call) {
  const hop = call.hops[call.hops.length - 1];
  if (!hop) return ["Nothing was sent to a server."];
  const found = [];
  if (call.client.era !== hop.era) found.push(`The request was translated from a ${call.client.era} client to a ${hop.era} server.`);
  if (call.hops.length > 1) found.push(`${call.hops.length} requests were sent; the last one is compared.`);
  const sent = call.request || {};
  const isMeta = sent.name === "use_tool";
  if (isMeta) found.push([el("code", {}, "use_tool"), " became a call of ", el("code", {}, text(call.tool)), "."]);
  const own = isMeta ? { name: call.tool, arguments: call.arguments, _meta: sent._meta } : sent;
  const details = [
    ...(call.request && hop.request ? differences(own, hop.request, "params") : []),
    ...(call.reply && hop.result ? differences(hop.result, call.reply, "result") : []),
  ];
  found.push(...details.slice(0, MAX_CHANGES).map(changed));
  if (details.length > MAX_CHANGES) found.push(`${details.length - MAX_CHANGES} more differences`);
  const isTooLarge = (value, length) => value === undefined && length !== undefined;
  if (isTooLarge(call.request, call.request_bytes) || isTooLarge(call.reply, call.result_bytes)
    || isTooLarge(hop.request, hop.request_bytes) || isTooLarge(hop.result, hop.result_bytes)) {
    found.push("Messages larger than 64 KiB are not stored, so they are not compared.");
  }
  if (call.cut_bytes) found.push(`The result was cut to its budget; it had ${bytes(call.cut_bytes)}.`);
  return found.length ? found : ["Nothing."];
}

// The call and its requests to servers on one scale.
function timeline(call) {
  const total = Math.max(1, call.duration_us || 0, ...call.hops.map((hop) => hop.after_us + (hop.duration_us || 0)));
  const rows = [
    { name: "whole call", from: 0, took: call.duration_us },
    ...call.hops.map((hop) => ({ name: `${hop.server}: ${hop.method}`, from: hop.after_us, took: hop.duration_us, kind: "inner" })),
  ];
  return el("ol", { class: "timeline", "aria-label": "Timing" }, ...rows.map((row) => el("li", {},
    el("span", { class: "wrap" }, row.name), el("span", { class: "number" }, duration(row.took) || "running"),
    bar(((row.took || 0) / total) * 1000, row.kind || "whole", (row.from / total) * 996))));
}

function side(title, about, ...messages) {
  return el("section", { class: "stack" },
    el("div", {}, el("h3", {}, title), el("p", { class: "small faint flat" }, about.filter(Boolean).join(", "))), ...messages);
}

function detail(call, renew) {
  const close = () => { selected = null; renew(); };
  const hops = call.hops.map((hop) => side(`Workbench → ${hop.server}`, [hop.method, hop.era, hop.transport],
    message("sent", hop.request, hop.request_bytes, hop.request_tokens),
    message(hop.error ? `answered: ${hop.error.replaceAll("_", " ")}` : "answered", hop.result, hop.result_bytes, hop.result_tokens)));
  const { client } = call;
  return el("section", { class: "card stack", "data-key": `call-${call.id}`, "aria-label": "The selected call" },
    el("div", { class: "row between" },
      el("h2", {}, call.server ? place(call.toolbox, call.server) : "", target(call), " ", outcome(call)),
      el("div", { class: "row" },
        call.command ? el("button", { onclick: () => copy(call.command) }, "Copy as mcp-workbench call") : null,
        el("button", { onclick: close }, "Close"))),
    el("div", {}, el("h3", {}, "What the workbench changed"),
      el("ul", { class: "wrap" }, ...changes(call).map((words) => el("li", {}, ...[words].flat())))),
    timeline(call),
    call.trace_id ? el("p", { class: "small faint" }, "trace ", el("code", {}, call.trace_id)) : null,
    el("div", { class: "columns" },
      side(`${text(client.name) || "Client"} → workbench`, [call.method, client.era, client.transport, client.user],
        // A call of a command or a script is no message, and has only arguments.
        message("received", call.request ?? call.arguments, call.request_bytes ?? call.arguments_bytes, call.request_tokens),
        message("replied", call.reply, call.result_bytes, call.reply_tokens)),
      el("div", { class: "stack" }, ...(hops.length ? hops : [empty("Nothing was sent to a server.")]))));
}

export const calls = {
  lead: "The latest 500 calls since this page was first opened.",
  command: "mcp-workbench live calls",
  changes: ["calls"],
  async make(renew) {
    const [{ calls: all }, whole] = await Promise.all([
      get("calls"), selected === null ? null : get(`calls?id=${selected}`, parse).catch(() => null)]);
    if (!all.length) return [empty("No call yet. They appear here while clients work.")];
    const chosen = all.filter(isShown).reverse();
    return [
      filters(all, renew),
      el("p", { class: "summary" },
        chosen.length === all.length ? count(all.length, "call") : `${chosen.length} of ${count(all.length, "call")}`),
      // Beside a selected call the list stays in reach.
      chosen.length ? el("div", { class: whole ? "list scroll" : "list", tabindex: whole ? "0" : null, role: "region", "aria-label": "All calls" },
        list(chosen, renew)) : empty("No call matches."),
      chosen.length ? el("p", { class: "summary" }, "Bars: the length is the duration, on a logarithmic scale; the part in the stronger colour is the time of servers.") : null,
      whole ? detail(whole, renew) : null,
    ].filter(Boolean);
  },
};
