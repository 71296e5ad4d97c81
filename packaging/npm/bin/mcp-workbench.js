#!/usr/bin/env node
// Starts the program of the package for this platform, which npm has installed beside this one.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const NOT_FOUND = 127;
const SIGNALS = ["SIGHUP", "SIGINT", "SIGTERM"];

const program = findProgram();
const args = process.argv.slice(2);
if (program === undefined) {
  process.exitCode = NOT_FOUND;
} else if (process.platform !== "win32" && typeof process.execve === "function") {
  // The program takes the place of Node.js, which would only hold memory and stand between it and signals.
  process.execve(program, [program, ...args], process.env);
} else {
  runAsChild();
}

function findProgram() {
  const name = `@mcp-workbench/${process.platform}-${process.arch}`;
  const file = process.platform === "win32" ? "mcp-workbench.exe" : "mcp-workbench";
  try {
    return require.resolve(`${name}/bin/${file}`);
  } catch {
    console.error(
      `mcp-workbench: the package ${name} is not installed\n` +
        "hint: install mcp-workbench again without --omit=optional and on the machine that runs it; " +
        "if there is no package for this platform, use `cargo install`",
    );
    return undefined;
  }
}

function runAsChild() {
  const child = spawn(program, args, { stdio: "inherit" });
  for (const signal of SIGNALS) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) => {
    console.error(`mcp-workbench: ${program} cannot be started: ${error.message}`);
    process.exitCode = NOT_FOUND;
  });
  child.on("exit", (code, signal) => {
    // 128 and the number of the signal is what a shell makes of a program that a signal has ended.
    process.exitCode = signal === null ? code : 128 + os.constants.signals[signal];
    for (const signal of SIGNALS) {
      process.removeAllListeners(signal);
    }
  });
}
