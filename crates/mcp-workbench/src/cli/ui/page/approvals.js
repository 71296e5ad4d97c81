// Approvals: calls that wait for a decision. The client asks the same question; the first answer counts.

import { acting, clock, el, empty, get, heading, notice, post, text } from "./element.js";

function card(call, renew) {
  const decide = (decision, done) => acting(async () => {
    await post("approvals", { id: call.id, decision });
    notice(`${call.tool}: ${done}`);
    renew();
  });
  return el("section", { class: "card stack", "aria-label": `${call.tool} of ${call.server}` },
    el("h2", {}, el("span", { class: "faint" }, `${call.toolbox} / ${call.server} / `), call.tool),
    el("p", { class: "small faint" }, `asked by ${text(call.client) || "a client"} at ${clock(call.since)}: ${call.reason}`),
    el("div", {}, el("h3", {}, "Arguments"), el("pre", { tabindex: "0" }, call.arguments)),
    el("div", { class: "row" },
      el("button", { class: "main", onclick: decide("once", "allowed once") }, "Allow once"),
      call.can_hold_for_session ? el("button", { onclick: decide("session", "allowed for this session") }, "For this session") : null,
      call.can_hold_always ? el("button", { onclick: decide("always", "allowed in the configuration") }, "Always") : null,
      el("button", { class: "danger", onclick: decide("deny", "denied") }, "Deny")));
}

export const approvals = {
  changes: ["approvals"],
  async make(renew) {
    const { approvals: pending } = await get("approvals");
    return [
      ...heading("Approvals", "Calls that wait for your decision.", "mcp-workbench live approvals"),
      pending.length ? el("div", { class: "stack" }, ...pending.map((call) => card(call, renew)))
        : empty("Nothing waits for you."),
    ];
  },
};
