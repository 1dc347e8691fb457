// Measures the npm package @ai-sdk-tool/parser: reads one JSON task a line, answers CPU milliseconds a line.
import { createRequire } from "node:module";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const found = createRequire(process.argv[2] + "/").resolve("@ai-sdk-tool/parser");
const peer = await import(pathToFileURL(found).href);
const protocols = {
  hermes: peer.hermesProtocol,
  morph_xml: peer.morphXmlProtocol,
  qwen3_coder_xml: peer.qwen3CoderProtocol,
  yaml_xml: peer.yamlXmlProtocol,
};
const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const asTools = (tools) =>
  tools.map((t) => ({ type: "function", name: t.name, description: "", inputSchema: t.parameters }));

async function stream(protocol, task) {
  const transform = protocol.createStreamParser({ tools: asTools(task.tools), options: {} });
  const writer = transform.writable.getWriter();
  let calls = 0;
  const reading = (async () => {
    for await (const part of transform.readable) if (part.type === "tool-call") calls += 1;
  })();
  await writer.write({ type: "text-start", id: "1" });
  for (let i = 0; i < task.text.length; i += task.chunk)
    await writer.write({ type: "text-delta", id: "1", delta: task.text.slice(i, i + task.chunk) });
  await writer.write({ type: "text-end", id: "1" });
  await writer.write({ type: "finish", finishReason: "stop", usage: {} });
  await writer.close();
  await reading;
  return calls;
}

function batch(protocol, task) {
  const parts = protocol.parseGeneratedText({ text: task.text, tools: asTools(task.tools), options: {} });
  return parts.filter((p) => p.type === "tool-call").length;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  const make = protocols[task.protocol];
  const protocol = typeof make === "function" ? make() : make;
  let calls = 0;
  let best = Infinity;
  try {
    for (let i = 0; i < task.repeat; i += 1) {
      const before = cpu();
      calls = task.kind === "stream" ? await stream(protocol, task) : batch(protocol, task);
      best = Math.min(best, cpu() - before);
    }
    console.log(JSON.stringify({ ms: best, calls }));
  } catch (e) {
    console.log(JSON.stringify({ error: String(e) }));
  }
}
