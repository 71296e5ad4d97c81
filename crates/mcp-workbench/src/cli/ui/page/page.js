// Shows the view that the address names, and keeps it up to date.

import { el, empty, get, notice, update } from "./element.js";
import { servers } from "./servers.js";
import { calls } from "./calls.js";
import { approvals } from "./approvals.js";
import { trust } from "./trust.js";
import { tools } from "./tools.js";
import { tokens } from "./tokens.js";

// A view has `lead` and `command` for its heading, `make`, which returns its elements, and `changes`: the counters that make
// it outdated. `loading` says what takes its time.
const views = { servers, calls, approvals, trust, tools, tokens };
const main = document.getElementById("content");
const link = document.getElementById("link");
const banner = document.getElementById("banner");
const waiting = document.getElementById("waiting");
let known = {};
let shown = null;
let turn = 0;

const named = () => (location.hash.slice(1) in views ? location.hash.slice(1) : "servers");
const titled = (name) => name[0].toUpperCase() + name.slice(1);

const heading = (name) => {
  const { lead, command } = views[name];
  return [
    el("h1", { id: `view-${name}` }, titled(name)),
    el("p", { class: "lead" }, `${lead} `, el("span", { class: "command" }, "Command: ", el("code", {}, command))),
  ];
};

function begin(name) {
  shown = name;
  for (const item of document.querySelectorAll("nav a")) {
    if (item.getAttribute("href") === `#${name}`) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  setTitle();
  notice("");
  main.setAttribute("aria-busy", "true");
  main.replaceChildren(...heading(name), empty(views[name].loading || "Loading…"));
  window.scrollTo(0, 0);
}

async function show(isNew) {
  const name = named();
  const mine = ++turn;
  if (isNew) {
    // A page that was just opened begins at its top, as every page does.
    const takesFocus = shown !== null;
    begin(name);
    if (takesFocus) main.focus({ preventScroll: true });
  }
  try {
    const content = await views[name].make(() => show(false));
    // Another view may have been chosen meanwhile.
    if (mine === turn) replace(name, content);
  } catch (error) {
    if (mine !== turn) return;
    if (isNew) main.replaceChildren(...heading(name), el("p", { class: "reason" }, error.message));
    else notice(error.message);
  } finally {
    if (mine === turn) main.removeAttribute("aria-busy");
  }
}

// The focus stays in the view, also if the button that had it has gone.
function replace(name, content) {
  const hadFocus = main.contains(document.activeElement);
  update(main, [...heading(name), ...content]);
  if (hadFocus && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
}

function setTitle() {
  const number = waiting.hidden ? "" : `(${waiting.textContent}) `;
  document.title = `${number}${titled(shown)} – MCP Workbench`;
}

async function countApprovals() {
  const { approvals: pending } = await get("approvals");
  const before = Number(waiting.textContent);
  waiting.textContent = String(pending.length);
  waiting.hidden = pending.length === 0;
  setTitle();
  if (pending.length > before && shown !== "approvals") notice(`${pending.length} waiting for your decision`);
}

function setLink(words, trouble) {
  link.textContent = words;
  link.classList.toggle("live", !trouble);
  banner.textContent = trouble || "";
  banner.hidden = !trouble;
}

function listen() {
  const events = new EventSource("api/events");
  events.onopen = () => setLink("live");
  // The browser tries again by itself, unless it was refused: then the cookie is no longer good.
  events.onerror = () => (events.readyState === EventSource.CLOSED
    ? setLink("signed out", "The workbench was restarted, or you opened this page more than 12 hours ago. Run `mcp-workbench ui` again.")
    : setLink("not connected", "The workbench does not answer. This page shows its last state and keeps trying."));
  events.onmessage = ({ data }) => {
    const changes = JSON.parse(data);
    const isChanged = (name) => changes[name] !== known[name];
    const isOutdated = shown && views[shown].changes.some(isChanged);
    if (isChanged("approvals")) countApprovals().catch(() => {});
    known = changes;
    if (isOutdated) show(false);
  };
}

window.addEventListener("hashchange", () => { if (named() !== shown) show(true); });
show(true);
listen();
