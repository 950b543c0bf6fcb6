// A client of version 2 of the protocol's own library: it begins a session, answers, cancels, resumes, and prints it all.
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";

const [library, folder, ...command] = process.argv.slice(2);
const acp = await import(pathToFileURL(library).href);
const agent = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const { methods } = acp;
const seen = { updates: [], asked: [], forms: [], errors: [] };
const waiting = [];

// Resolves with the first update from a place on that fits.
function until(fits, begin = 0) {
  const found = seen.updates.slice(begin).find(fits);
  return found ? Promise.resolve(found) : new Promise((resolve) => waiting.push({ fits, begin, resolve }));
}

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
  .onNotification(methods.client.session.update, ({ params }) => {
    seen.updates.push(params.update);
    for (const one of waiting.splice(0)) {
      until(one.fits, one.begin).then(one.resolve);
    }
  });

const isIdle = (one) => one.sessionUpdate === "state_update" && one.state === "idle";

await client.connectWith(stream, async (context) => {
  const ask = (method, params) => context.request(method, params);
  const fail = async (method, params) => {
    seen.errors.push(await ask(method, params).catch((error) => ({ code: error.code, message: error.message })));
  };
  seen.initialized = await ask(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "peer", version: "1" },
    capabilities: { elicitation: { form: {} } },
  });
  seen.session = await ask(methods.agent.session.new, { cwd: folder });
  const { sessionId } = seen.session;
  const prompt = [{ type: "text", text: "go" }];
  seen.first = await ask(methods.agent.session.prompt, { sessionId, prompt });
  seen.firstIdle = await until(isIdle);
  const begin = seen.updates.length;
  seen.second = await ask(methods.agent.session.prompt, { sessionId, prompt });
  await until((one) => one.rawInput?.command?.startsWith("sleep"), begin);
  await context.notify(methods.agent.session.cancel, { sessionId });
  seen.secondIdle = await until(isIdle, begin);
  seen.options = await ask(methods.agent.session.setConfigOption, {
    sessionId,
    configId: "effort",
    type: "id",
    value: "high",
  });
  seen.listed = await ask(methods.agent.session.list, {});
  await ask(methods.agent.session.close, { sessionId });
  seen.updates.push("resumed");
  seen.resumed = await ask(methods.agent.session.resume, { sessionId, cwd: folder, replayFrom: { type: "start" } });
  await fail(methods.agent.session.setConfigOption, { sessionId, configId: "effort", type: "id", value: "nonsense" });
  await fail(methods.agent.session.prompt, { sessionId: "nobody", prompt });
  await ask(methods.agent.session.delete, { sessionId });
});
agent.stdin.end();
console.log(JSON.stringify(seen));
agent.on("exit", (code) => process.exit(code));
