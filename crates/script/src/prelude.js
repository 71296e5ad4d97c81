// Runs before the script, in its realm. It keeps what it uses, so that a script that changes a built-in object
// harms nobody but itself.
(function (send, sendEmit, log, nameOf, longest) {
  "use strict";
  const { parse, stringify } = JSON;
  const { Error, Promise, Proxy, String, TypeError } = globalThis;
  const { create, defineProperty, freeze, setPrototypeOf } = Object;
  const pending = create(null);
  let last = 0;
  let calls = 0;
  let limit = 0;

  class ToolError extends Error {
    constructor(tool, code, outcome, message, stack) {
      super(message);
      // Without a prototype: a script may have given all objects a `get`.
      const put = (name, value) => defineProperty(this, name, { __proto__: null, value, enumerable: true, configurable: true });
      put("name", "ToolError");
      put("tool", tool);
      put("code", code);
      put("outcome", outcome);
      defineProperty(this, "stack", { __proto__: null, value: stack, configurable: true });
    }
  }

  function request(kind, server, tool, name, given) {
    // Taken now: the stack of an exception after `await` no longer has the caller.
    const stack = new Error().stack;
    return new Promise((resolve, reject) => {
      const refuse = (code, message) => reject(new ToolError(name, code, "not_sent", message, stack));
      const text = given === undefined ? "{}" : stringify(given);
      if (server.length + tool.length > 1000) return refuse("tool_unknown", "no tool has a name of this length");
      if (text === undefined) return refuse("invalid_arguments", "the arguments are not JSON");
      if (text.length > longest) return refuse("invalid_arguments", `the arguments are larger than ${longest} bytes`);
      if (calls >= limit) return refuse("call_limit", `Tool call limit ${limit} reached`);
      calls++;
      const id = ++last;
      pending[id] = { resolve, reject, name, stack };
      send(id, kind, server, tool, text, stack);
    });
  }

  // A property that the language itself asks for is not a tool.
  const isOurs = (name) => typeof name === "string" && name !== "then" && name !== "toJSON";
  const callables = {
    search: (query, options) => request("search", "", "", "tools.search", { query, ...options }),
    describe: (name) => request("describe", "", "", "tools.describe", { name: String(name) }),
  };
  setPrototypeOf(callables, null);

  function serverOf(server) {
    // `tools.search` is a function, and also the server of that name, if there is one.
    const target = callables[server] ?? create(null);
    return new Proxy(target, {
      get(_, tool) {
        if (!isOurs(tool)) return undefined;
        return (given) => request("tool", server, tool, nameOf(server, tool), given);
      },
      set: () => false,
      defineProperty: () => false,
      deleteProperty: () => false,
    });
  }

  const tools = new Proxy(create(null), {
    get: (_, server) => (isOurs(server) ? serverOf(server) : undefined),
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
  });
  const results = freeze({ read: (handle) => request("read_result", "", "", "results.read", { handle: String(handle) }) });

  function emit(part) {
    const stack = new Error().stack;
    return new Promise((resolve, reject) => {
      const refuse = (code, message) => reject(new ToolError("emit", code, "not_sent", message, stack));
      const reference = String(part?.ref);
      if (reference.length > 100) return refuse("invalid_arguments", "emit takes a part of a result of this run");
      if (calls >= limit) return refuse("call_limit", `Tool call limit ${limit} reached`);
      calls++;
      const id = ++last;
      pending[id] = { resolve, reject, name: "emit", stack };
      sendEmit(id, reference);
    });
  }

  const words = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    try {
      return stringify(value) ?? String(value);
    } catch {
      return String(value);
    }
  };
  const write = (...values) => {
    let line = "";
    for (let at = 0; at < values.length; at++) line += (at > 0 ? " " : "") + words(values[at]);
    log(line);
  };
  const console = freeze({ log: write, info: write, warn: write, error: write, debug: write });

  const give = (name, value) => defineProperty(globalThis, name, { value });
  give("tools", tools);
  give("results", results);
  give("emit", emit);
  give("console", console);
  give("ToolError", ToolError);

  return {
    begin(calls) {
      limit = calls;
    },
    resolve(id, text) {
      const call = pending[id];
      delete pending[id];
      if (call !== undefined) call.resolve(parse(text));
    },
    reject(id, code, outcome, message) {
      const call = pending[id];
      delete pending[id];
      if (call !== undefined) call.reject(new ToolError(call.name, code, outcome, message, call.stack));
    },
  };
});
