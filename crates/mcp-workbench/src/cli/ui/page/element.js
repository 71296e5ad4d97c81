// Builds elements. Text is only ever set as text, so nothing that a server sends can become markup, and none of it is invisible.

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
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, value);
  }
  const shown = children.flat().filter((child) => child !== null && child !== undefined);
  element.append(...shown.map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

export function svg(name, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const text = (value) => (value === undefined || value === null ? "" : String(value));

export function table(columns, rows) {
  // On a small screen the parts of a table are blocks, and browsers would no longer take them for a table.
  const head = columns.map(({ title, number }) => el("th", { scope: "col", role: "columnheader", class: number && "number" }, title));
  const body = rows.map((row) => {
    const cells = columns.map(({ title, number, show }) =>
      el("td", { "data-label": title, role: "cell", class: number && "number" }, show(row)));
    return el("tr", { role: "row", class: row.selected && "selected" }, ...cells);
  });
  return el("table", { role: "table" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...head)), el("tbody", { role: "rowgroup" }, ...body));
}

export const pill = (word, kind) => el("span", { class: `pill ${kind || ""}` }, word);

export const heading = (title, lead, command) => [
  el("h1", {}, title),
  el("p", { class: "lead" }, lead, command ? " Command: " : "", command ? el("code", {}, command) : ""),
];

export const empty = (words) => el("p", { class: "empty" }, words);

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
  return `${(micros / 1_000_000).toFixed(2)} s`;
}

export const clock = (time) => text(time).slice(11, 19);

export const pretty = (value) => JSON.stringify(value, null, 2);

export const shellQuoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

export function notice(words) {
  const place = document.getElementById("notice");
  place.textContent = visible(words);
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => { place.textContent = ""; }, 6000);
}

async function answer(response) {
  if (response.status === 401) throw new Error("signed out: run `mcp-workbench ui` again");
  const document = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(document.error || `status ${response.status}`);
  return document;
}

export const get = async (path) => answer(await fetch(`api/${path}`));

export const post = async (path, body) => answer(await fetch(`api/${path}`, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
}));

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
