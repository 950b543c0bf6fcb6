// A client of the protocol's own library: it begins a session, answers, cancels, loads, and prints all that it got.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";

const [library, folder, ...command] = process.argv.slice(2);
const acp = await import(pathToFileURL(library).href);
const agent = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const { methods } = acp;
const seen = { updates: [], asked: [], forms: [], written: [] };

const client = acp
  .client({ name: "peer" })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push(params);
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onRequest(methods.client.elicitation.create, ({ params }) => {
    seen.forms.push(params);
    return { action: "accept", content: { q1: "Blue" } };
  })
  .onRequest(methods.client.fs.readTextFile, async ({ params }) => ({ content: await readFile(params.path, "utf8") }))
  .onRequest(methods.client.fs.writeTextFile, async ({ params }) => {
    seen.written.push(params.content);
    await writeFile(params.path, params.content);
    return {};
  })
  .onNotification(methods.client.session.update, ({ params }) => {
    seen.updates.push(params.update);
  });

await client.connectWith(stream, async (context) => {
  const ask = (method, params) => context.request(method, params);
  seen.initialized = await ask(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {
      elicitation: { form: {} },
      fs: { readTextFile: true, writeTextFile: true },
      session: { configOptions: { boolean: {} } },
    },
  });
  seen.session = await ask(methods.agent.session.new, { cwd: folder, mcpServers: [] });
  const { sessionId } = seen.session;
  const prompt = [{ type: "text", text: "go" }];
  seen.first = await ask(methods.agent.session.prompt, { sessionId, prompt });
  const second = ask(methods.agent.session.prompt, { sessionId, prompt });
  while (!seen.updates.some((one) => one.rawInput?.command?.startsWith("sleep"))) {
    await new Promise((go) => setTimeout(go, 10));
  }
  await context.notify(methods.agent.session.cancel, { sessionId });
  seen.second = await second;
  seen.listed = await ask(methods.agent.session.list, {});
  await ask(methods.agent.session.close, { sessionId });
  seen.updates.push("loaded");
  seen.loaded = await ask(methods.agent.session.load, { sessionId, cwd: folder, mcpServers: [] });
  seen.error = await ask(methods.agent.session.setMode, { sessionId, modeId: "nonsense" }).catch((error) => String(error));
  seen.logout = await ask(methods.agent.logout, {}).catch((error) => String(error));
});
agent.stdin.end();
console.log(JSON.stringify(seen));
agent.on("exit", (code) => process.exit(code));
