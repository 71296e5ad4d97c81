// Shows the view that the address names, and keeps it up to date.

import { el, get, notice } from "./element.js";
import { servers } from "./servers.js";
import { calls } from "./calls.js";
import { approvals } from "./approvals.js";
import { trust } from "./trust.js";
import { tools } from "./tools.js";
import { tokens } from "./tokens.js";

// A view has `show(main)`, and `changes`: the counters that make it outdated.
const views = { servers, calls, approvals, trust, tools, tokens };
const main = document.getElementById("content");
const link = document.getElementById("link");
const waiting = document.getElementById("waiting");
let known = {};
let shown = null;
let turn = 0;

const named = () => (location.hash.slice(1) in views ? location.hash.slice(1) : "servers");

async function show(isNew) {
  const name = named();
  const view = views[name];
  const mine = ++turn;
  // A page that was just opened begins at its top, as every page does.
  const takesFocus = isNew && shown !== null;
  for (const item of document.querySelectorAll("nav a")) {
    if (item.getAttribute("href") === `#${name}`) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  if (isNew) {
    shown = name;
    document.title = `${name[0].toUpperCase()}${name.slice(1)} – MCP Workbench`;
    main.replaceChildren(el("p", { class: "empty" }, "loading"));
  }
  try {
    const content = await view.make(() => show(false));
    // Another view may have been chosen meanwhile.
    if (mine === turn) replace(content);
    if (takesFocus) main.focus({ preventScroll: true });
  } catch (error) {
    if (mine === turn) main.replaceChildren(el("p", { class: "reason" }, error.message));
  }
}

// A view is replaced as a whole when something happens. The keyboard stays where it was, and what is unfolded stays so.
const mark = (element) => [
  element.closest("[aria-label]")?.getAttribute("aria-label"), element.tagName, element.id || element.textContent].join("\n");

function replace(content) {
  const focused = main.contains(document.activeElement) && document.activeElement !== main ? mark(document.activeElement) : null;
  const unfolded = new Set([...main.querySelectorAll("details[open] > summary")].map(mark));
  main.replaceChildren(...content);
  for (const summary of main.querySelectorAll("summary")) {
    if (unfolded.has(mark(summary))) summary.parentElement.open = true;
  }
  if (focused === null) return;
  const candidates = [...main.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")];
  (candidates.find((element) => mark(element) === focused) || main).focus({ preventScroll: true });
}

async function countApprovals() {
  const { approvals: pending } = await get("approvals");
  waiting.textContent = String(pending.length);
  waiting.hidden = pending.length === 0;
  if (pending.length > 0 && shown !== "approvals") notice(`${pending.length} waiting for your decision`);
}

function listen() {
  const events = new EventSource("api/events");
  events.onopen = () => { link.textContent = "live"; link.classList.add("live"); };
  events.onerror = () => { link.textContent = "not connected"; link.classList.remove("live"); };
  events.onmessage = ({ data }) => {
    const changes = JSON.parse(data);
    const isChanged = (name) => changes[name] !== known[name];
    const isOutdated = shown && views[shown].changes.some(isChanged);
    if (isChanged("approvals")) countApprovals().catch(() => {});
    known = changes;
    if (isOutdated && !isTyping()) show(false);
  };
}

// A form that is being filled in is not replaced.
const isTyping = () => main.contains(document.activeElement)
  && document.activeElement.matches("input, textarea, select");

window.addEventListener("hashchange", () => show(true));
show(true);
listen();
