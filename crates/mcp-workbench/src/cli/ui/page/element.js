// Builds and updates elements. Text is only ever set as text, so nothing that a server sends can become markup, and none of it is
// invisible.

const handlers = ["onclick", "onchange", "oninput", "onsubmit", "onkeydown"];

const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800]/gu;
const emojiBefore = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]$/u;
const keycapBefore = /[\p{Extended_Pictographic}0-9#*]$/u;
const emojiAfter = /^\p{Extended_Pictographic}/u;
const scriptBefore = /(?![\u0000-\u02af])[\p{L}\p{M}]$/u;

function isInPlace(character, before, after) {
  if (character === "\n" || character === "\t") return true;
  if (character === "\ufe0f" || character === "\ufe0e") return keycapBefore.test(before);
  if (character === "\u200d" && emojiBefore.test(before)) return emojiAfter.test(after);
  return (character === "\u200c" || character === "\u200d") && scriptBefore.test(before);
}

// Shows characters without a visible form by number, except for emoji and scripts that join letters.
export const visible = (words) => words.replace(hidden, (character, at) => {
  const before = words.slice(Math.max(0, at - 2), at);
  const after = words.slice(at + character.length, at + character.length + 2);
  if (isInPlace(character, before, after)) return character;
  return `\u27e6U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e7`;
});

export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (handlers.includes(key)) element[key] = value;
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, value);
  }
  const shown = children.flat().filter((child) => child !== null && child !== undefined && child !== "");
  element.append(...shown.map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

export function svg(name, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id || node.getAttribute("data-key") : null);
const isAlike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
// The user opens and closes these, and `acting` marks a button that is at work.
const ownAttributes = ["open", "aria-disabled"];

// Makes an element like another one.
function become(element, wanted) {
  if (element.nodeType !== Node.ELEMENT_NODE) {
    if (element.data !== wanted.data) element.data = wanted.data;
    return;
  }
  for (const { name } of [...element.attributes]) {
    if (!wanted.hasAttribute(name) && !ownAttributes.includes(name)) element.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (element.getAttribute(name) !== value && !ownAttributes.includes(name)) element.setAttribute(name, value);
  }
  for (const name of handlers) element[name] = wanted[name];
  update(element, [...wanted.childNodes]);
}

// Makes the children of an element like these. Those that stay are kept, and with them the focus, what is typed and
// selected, and how far they are scrolled. Elements of a list have a `data-key`.
export function update(parent, wanted) {
  const kept = new Map([...parent.childNodes].map((node) => [keyOf(node), node]));
  const staying = new Set(wanted.map(keyOf));
  let at = parent.firstChild;
  for (const node of wanted) {
    const key = keyOf(node);
    const found = key ? kept.get(key) : at;
    if (!found || !isAlike(found, node)) {
      parent.insertBefore(node, at);
      continue;
    }
    while (at !== found && !(keyOf(at) && staying.has(keyOf(at)))) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
    if (at === found) at = at.nextSibling;
    else parent.insertBefore(found, at);
    become(found, node);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// A bar from 0 to 1000.
export const bar = (width, kind, from = 0) => svg("svg", { class: "bar", viewBox: "0 0 1000 8", preserveAspectRatio: "none", "aria-hidden": "true" },
  svg("rect", { class: kind, x: from, width: Math.max(4, width), height: 8 }));

export const text = (value) => (value === undefined || value === null ? "" : String(value));

export const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

export function table(columns, rows, name) {
  // On a small screen the parts of a table are blocks, and browsers would no longer take them for a table.
  const head = columns.map(({ title, kind }) => el("th", { scope: "col", role: "columnheader", class: kind }, title));
  const body = rows.map((row) => {
    const cells = columns.map(({ title, kind, show }) =>
      el("td", { "data-label": title, role: "cell", class: kind }, show(row)));
    return el("tr", { role: "row", class: row.selected && "selected", "data-key": row.key }, ...cells);
  });
  return el("table", { role: "table", class: name },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...head)), el("tbody", { role: "rowgroup" }, ...body));
}

export const pill = (word, kind) => el("span", { class: `pill ${kind || ""}` }, word.replaceAll("_", " "));

export const empty = (words) => el("p", { class: "empty" }, words);

export const place = (...names) => el("span", { class: "faint" }, `${names.join(" / ")} / `);

export function bytes(count) {
  if (count === undefined || count === null) return "";
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KiB`;
  return `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

export function duration(micros) {
  if (micros === undefined || micros === null) return "";
  if (micros < 1000) return `${micros} µs`;
  if (micros < 1_000_000) return `${(micros / 1000).toFixed(1)} ms`;
  if (micros < 60_000_000) return `${(micros / 1_000_000).toFixed(2)} s`;
  return `${Math.floor(micros / 60_000_000)} min ${Math.round(micros / 1_000_000) % 60} s`;
}

// The time of day here. Documents have it in UTC.
export function clock(moment) {
  const date = new Date(moment);
  return el("time", { datetime: moment, title: date.toLocaleString() }, date.toLocaleTimeString("en-GB"));
}

// Parses JSON and keeps every digit of a number, where the browser can do that.
export const parse = (words) => JSON.parse(words, (_, value, context) =>
  (typeof value === "number" && context?.source !== undefined && context.source !== String(value) && JSON.rawJSON
    ? JSON.rawJSON(context.source) : value));

export const pretty = (value) => JSON.stringify(value, null, 2);

// Breaks the text of JSON into lines, and changes nothing else in it.
export function indented(json) {
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  const parts = json.match(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\]:,]|[^\s"{}[\]:,]+/gsu) || [];
  return parts.map((part) => {
    if (part === "{" || part === "[") { depth += 1; return part + line(); }
    if (part === "}" || part === "]") { depth = Math.max(0, depth - 1); return line() + part; }
    if (part === ",") return part + line();
    return part === ":" ? ": " : part;
  }).join("");
}

export function notice(words) {
  const place = document.getElementById("notice");
  place.textContent = visible(words);
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => { place.textContent = ""; }, 6000);
}

async function answer(response, read) {
  if (response.status === 401) throw new Error("Signed out: run `mcp-workbench ui` again.");
  const words = await response.text();
  let document = {};
  try { document = read(words); } catch { /* Not JSON: the status says enough. */ }
  if (!response.ok) throw new Error(document.error || `status ${response.status}`);
  return document;
}

const ask = (path, options, read) => fetch(`api/${path}`, options).then((response) => answer(response, read), () => {
  throw new Error("The workbench does not answer.");
});

export const get = (path, read = JSON.parse) => ask(path, {}, read);

export const post = (path, body, read = JSON.parse) => ask(path, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
}, read);

export async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    notice("copied");
  } catch {
    notice(words);
  }
}

// Runs an action of a button once at a time. The button keeps the focus, which one that is disabled would lose.
export const acting = (action) => async (event) => {
  const button = event.currentTarget;
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  try {
    await action();
  } catch (error) {
    notice(error.message);
  } finally {
    button.removeAttribute("aria-disabled");
  }
};
