// Calls: live, filtered, each with both hops and what the workbench changed between them.

import {
  bytes, clock, copy, duration, el, empty, get, heading, pill, pretty, shellQuoted, svg, table, text,
} from "./element.js";

const filter = { client: "", server: "", tool: "", outcome: "" };
const kinds = { ok: "good", running: "warn", input_required: "warn" };
let selected = null;

const caller = (call) => [text(call.client.name) || call.client.principal, call.client.number ? `#${call.client.number}` : ""]
  .filter(Boolean).join(" ");
const target = (call) => call.tool || call.target || call.method;
const isShown = (call) => {
  const has = (value, wanted) => text(value).toLowerCase().includes(wanted.toLowerCase());
  return has(caller(call), filter.client)
    && has(`${text(call.toolbox)}/${text(call.server)}`, filter.server)
    && has(target(call), filter.tool)
    && (!filter.outcome || call.outcome === filter.outcome);
};

function field(name, label, renew) {
  return el("label", {}, label, el("input", {
    type: "search",
    value: filter[name],
    id: `filter-${name}`,
    oninput: (event) => { filter[name] = event.target.value; renew(event.target.id); },
  }));
}

function outcomes(renew) {
  const words = ["", "ok", "tool_error", "error", "denied", "cancelled", "input_required", "running"];
  return el("label", {}, "Outcome", el("select", {
    id: "filter-outcome",
    onchange: (event) => { filter.outcome = event.target.value; renew(event.target.id); },
  }, ...words.map((word) => el("option", { value: word, selected: filter.outcome === word }, word || "any"))));
}

// The whole call, and inside it the time that servers took.
function bars(call, longest) {
  const total = call.duration_us || 1;
  const scale = (micros) => Math.max(1, (micros / longest) * 240);
  const label = `${duration(call.duration_us)}, servers ${duration(call.hops.reduce((sum, hop) => sum + (hop.duration_us || 0), 0))}`;
  return svg("svg", { class: "bars", viewBox: "0 0 240 12", role: "img", "aria-label": label },
    svg("rect", { class: "bar", x: 0, y: 1, width: scale(total), height: 10, rx: 2 }),
    ...call.hops.map((hop) => svg("rect", {
      class: "bar inner", x: (hop.after_us / longest) * 240, y: 3, width: scale(hop.duration_us || 0), height: 6, rx: 1,
    })));
}

function list(all, renew) {
  const longest = Math.max(1, ...all.map((call) => call.duration_us || 0));
  return table([
    { title: "Time", show: (call) => clock(call.time) },
    { title: "Client", show: (call) => [caller(call), call.client.as].filter(Boolean).join(" as ") },
    { title: "Server", show: (call) => (call.server ? `${call.toolbox} / ${call.server}` : "") },
    {
      title: "Call",
      show: (call) => el("button", {
        class: "plain", "aria-expanded": String(selected === call.id),
        onclick: () => { selected = selected === call.id ? null : call.id; renew(); },
      }, target(call)),
    },
    { title: "Outcome", show: (call) => pill(call.code || call.outcome, kinds[call.outcome] || "bad") },
    { title: "Result", number: true, show: (call) => bytes(call.result_bytes) },
    { title: "Duration", number: true, show: (call) => duration(call.duration_us) },
    { title: "Timing", show: (call) => bars(call, longest) },
  ], all.map((call) => ({ ...call, selected: call.id === selected })));
}

// The size of a message, and the estimate of its tokens by `mcp-workbench tokens`.
function size(count, tokens) {
  const parts = [bytes(count), tokens === undefined ? "" : `≈ ${tokens.toLocaleString("en")} tokens`].filter(Boolean);
  return parts.length ? ` (${parts.join(", ")})` : "";
}

const message = (title, value, count, tokens) => el("div", {},
  el("h3", {}, title, size(count, tokens)),
  el("pre", { tabindex: "0" }, value === undefined ? "not kept: larger than 64 KiB, or there is none" : pretty(value)));

// What differs between the members of two objects.
function differing(before, after, place) {
  if (!before || !after || typeof before !== "object" || typeof after !== "object") return [];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    if (!(name in before)) return [`${place}: added “${name}”`];
    if (!(name in after)) return [`${place}: removed “${name}”`];
    return JSON.stringify(before[name]) === JSON.stringify(after[name]) ? [] : [`${place}: changed “${name}”`];
  });
}

function changes(call) {
  const found = [];
  const hop = call.hops[call.hops.length - 1];
  if (!hop) return ["Nothing was sent to a server."];
  if (call.client.era !== hop.era) found.push(`translated from a ${call.client.era} client to a ${hop.era} server`);
  const sent = call.request || {};
  if (sent.name === "use_tool") found.push(`use_tool became a call of “${call.tool}”`);
  const own = sent.name === "use_tool" ? { name: call.tool, arguments: call.arguments, _meta: sent._meta } : sent;
  if (own._meta === undefined) delete own._meta;
  if (call.request && hop.request) found.push(...differing(own, hop.request, "request"));
  if (call.reply && hop.result) found.push(...differing(hop.result, call.reply, "result"));
  if (call.cut_bytes) found.push(`the result was cut to its budget (it had ${bytes(call.cut_bytes)})`);
  if (call.hops.length > 1) found.push(`${call.hops.length} requests were sent`);
  return found.length ? found : ["Nothing: every byte was passed on."];
}

function detail(call) {
  const repeat = call.tool && call.arguments
    ? ["mcp-workbench", "call", call.toolbox, call.server, call.tool, JSON.stringify(call.arguments)].map(shellQuoted).join(" ")
    : null;
  const hops = call.hops.map((hop, index) => el("div", { class: "stack" },
    el("h2", {}, `Workbench → ${hop.server}`, el("span", { class: "faint small" },
      ` ${hop.method}, ${hop.era}, ${hop.transport}, ${duration(hop.duration_us)}${call.hops.length > 1 ? `, ${index + 1}.` : ""}`)),
    message("sent", hop.request, undefined, hop.request_tokens),
    message(hop.error ? `answered: ${hop.error}` : "answered", hop.result, hop.result_bytes, hop.result_tokens)));
  return el("section", { class: "card stack", "aria-label": "The selected call" },
    el("div", { class: "row between" },
      el("h2", {}, target(call), " ", pill(call.code || call.outcome, kinds[call.outcome] || "bad")),
      repeat ? el("button", { onclick: () => copy(repeat) }, "Copy as mcp-workbench call") : null),
    call.trace_id ? el("p", { class: "small faint" }, "trace ", el("code", {}, call.trace_id)) : null,
    el("div", {}, el("h3", {}, "What the workbench changed"),
      el("ul", {}, ...changes(call).map((words) => el("li", {}, words)))),
    el("div", { class: "columns" },
      el("div", { class: "stack" },
        el("h2", {}, `${text(call.client.name) || "Client"} → workbench`, el("span", { class: "faint small" },
          ` ${call.method}, ${call.client.era}, ${call.client.transport}, ${duration(call.duration_us)}`)),
        message("received", call.request, undefined, call.request_tokens),
        message("replied", call.reply, call.result_bytes, call.reply_tokens)),
      el("div", { class: "stack" }, ...(hops.length ? hops : [empty("Nothing was sent to a server.")]))));
}

export const calls = {
  changes: ["calls"],
  async make(renew) {
    const { calls: all } = await get("calls");
    const chosen = all.filter(isShown).reverse();
    const whole = selected === null ? null : await get(`calls?id=${selected}`).catch(() => null);
    const again = async (id) => {
      await renew();
      if (id) document.getElementById(id)?.focus();
    };
    const content = [
      ...heading("Calls", "The latest calls since this page was first opened.", "mcp-workbench live calls"),
      el("div", { class: "filters", role: "search" },
        field("client", "Client", again), field("server", "Toolbox or server", again),
        field("tool", "Tool or method", again), outcomes(again)),
    ];
    const table = chosen.length ? list(chosen, again)
      : empty(all.length ? "No call matches." : "No call yet. They appear here while clients work.");
    // Beside a selected call the list stays in reach.
    content.push(whole ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All calls" }, table) : table);
    if (whole) content.push(detail(whole));
    return content;
  },
};
