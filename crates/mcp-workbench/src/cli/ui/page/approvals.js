// Approvals: calls that wait for a decision. The client asks the same question; the first answer counts.

import { acting, clock, el, empty, get, indented, notice, place, post, text } from "./element.js";

function card(call, renew) {
  const decide = (decision, done) => acting(async () => {
    await post("approvals", { id: call.id, decision });
    notice(`${call.tool}: ${done}`);
    renew();
  });
  return el("section", { class: "card stack", "data-key": call.id, "aria-label": `${call.tool} of ${call.server}` },
    el("div", {},
      el("h2", {}, place(call.toolbox, call.server), call.tool),
      el("p", { class: "small faint flat" }, `asked by ${text(call.client) || "a client"} at `, clock(call.since), `: ${call.reason}`)),
    el("div", {}, el("h3", {}, "Arguments"), el("pre", { tabindex: "0" }, indented(call.arguments))),
    el("div", { class: "row" },
      el("button", { class: "main", onclick: decide("once", "allowed once") }, "Allow once"),
      call.can_hold_for_session ? el("button", { onclick: decide("session", "allowed for this session") }, "For this session") : null,
      call.can_hold_always ? el("button", { onclick: decide("always", "allowed in the configuration") }, "Always") : null,
      el("button", { class: "danger", onclick: decide("deny", "denied") }, "Deny")));
}

export const approvals = {
  lead: "Calls that wait for your decision. The client may be asking the same; the first answer counts.",
  command: "mcp-workbench live approvals",
  changes: ["approvals"],
  async make(renew) {
    const { approvals: pending } = await get("approvals");
    return pending.length ? [el("div", { class: "stack" }, ...pending.map((call) => card(call, renew)))]
      : [empty("Nothing waits for you.")];
  },
};
