// A client of MCP Workbench with the official TypeScript SDK: starts the workbench over stdio, lists the toolboxes, opens one,
// uses a tool and handles errors.
//
//   npm install @modelcontextprotocol/client
//   node client.mts          (Node.js 22.18 or newer; mcp-workbench on the PATH)
//
// `serve --demo` serves a built-in toolbox. For your own: args: ['--config', '/path/to/workbench-config.json'].

import { Client, type CallToolResult } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/** The identity of a tool: always three separate fields. */
interface ToolIdentifier {
  toolbox: string;
  server: string;
  tool: string;
}

/** What `open_toolbox` returns, as far as this program reads it. */
interface OpenedToolbox {
  toolbox: string;
  servers_connected: number;
  tools: { name: string; server: string; toolbox: string; description?: string; inputSchema: object }[];
  /** One line for each server that is not up. Absent if all are. */
  _errors?: string[];
}

/** What the workbench says of a call that it could not complete. */
interface WorkbenchError {
  code: string;
  /** `not_sent`: safe to repeat. `unknown`: the tool may have run. Absent: the server answered. */
  outcome?: 'not_sent' | 'rejected' | 'unknown';
}

/** A call that failed: in the workbench (`error` is set), or in the tool itself (`error` is not). */
class CallError extends Error {
  readonly error?: WorkbenchError;

  constructor(message: string, error?: WorkbenchError) {
    super(message);
    this.error = error;
  }
}

function textOf(result: CallToolResult): string {
  return result.content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');
}

/** Calls a meta-tool. Failures arrive as results with `isError`, not as exceptions. */
async function call(client: Client, name: string, args: Record<string, unknown>): Promise<CallToolResult> {
  const result = await client.callTool({ name, arguments: args });
  if (result.isError) {
    throw new CallError(textOf(result), result._meta?.['mcp-workbench/error'] as WorkbenchError | undefined);
  }
  return result;
}

async function openToolbox(client: Client, toolbox: string): Promise<OpenedToolbox> {
  return JSON.parse(textOf(await call(client, 'open_toolbox', { toolbox })));
}

async function useTool(client: Client, tool: ToolIdentifier, args: Record<string, unknown>): Promise<CallToolResult> {
  return call(client, 'use_tool', { tool, arguments: args });
}

const client = new Client({ name: 'example', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command: 'mcp-workbench', args: ['serve', '--demo'], stderr: 'ignore' }));
try {
  const { tools } = await client.listTools();
  console.log('meta-tools:', tools.map((tool) => tool.name).join(', '));
  const open = tools.find((tool) => tool.name === 'open_toolbox');
  const parameter = open?.inputSchema.properties?.toolbox as { enum?: string[] } | undefined;
  console.log('toolboxes:', parameter?.enum?.join(', '));

  const opened = await openToolbox(client, 'desk');
  console.log(`${opened.toolbox}: ${opened.servers_connected} servers, ${opened.tools.length} tools`);
  for (const error of opened._errors ?? []) console.log('not up:', error);

  const found = opened.tools.find((tool) => tool.name === 'evaluate');
  if (!found) throw new Error('the toolbox has no tool evaluate');
  const evaluate = { toolbox: found.toolbox, server: found.server, tool: found.name };
  const result = await useTool(client, evaluate, { expression: '6 * 7' });
  console.log('6 * 7:', textOf(result));

  for (const [tool, expression] of [[evaluate, '6 / 0'], [{ ...evaluate, tool: 'evalute' }, '6 * 7']] as const) {
    try {
      await useTool(client, tool, { expression });
    } catch (failure) {
      if (!(failure instanceof CallError)) throw failure;
      const who = failure.error ? `workbench (${failure.error.code}, ${failure.error.outcome})` : 'tool';
      console.log(`failed in the ${who}: ${failure.message}`);
    }
  }
} finally {
  await client.close();
}
