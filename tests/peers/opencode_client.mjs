// A program on the SDK of OpenCode: it prompts, follows events, answers, aborts, lists, and prints all that it got.
import { pathToFileURL } from "node:url";

const [library, address, token] = process.argv.slice(2);
const load = async (part) => (await import(pathToFileURL(`${library}/dist/${part}`).href)).createOpencodeClient;
const one = (await load("client.js"))({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });
const password = Buffer.from(`opencode:${token}`).toString("base64");
const two = (await load("v2/client.js"))({ baseUrl: address, headers: { Authorization: `Basic ${password}` } });
const seen = { events: [], newer: [] };
const told = async (request) => {
  const { data, error } = await request;
  if (error) throw new Error(JSON.stringify(error));
  return data;
};
const follow = async (events, into, act) => {
  const { stream } = await events;
  const ready = Promise.withResolvers();
  (async () => {
    for await (const event of stream) {
      into.push(event);
      if (event.type === "server.connected") ready.resolve();
      await act(event);
    }
  })();
  await ready.promise;
};
const until = async (type, count = 1) => {
  while (seen.events.filter((event) => event.type === type).length < count) {
    await new Promise((go) => setTimeout(go, 10));
  }
};

await follow(one.event.subscribe(), seen.events, async ({ type, properties }) => {
  if (type !== "permission.updated") return;
  const answer = seen.answers === undefined ? "once" : "reject";
  seen.answers = [...(seen.answers ?? []), answer];
  const path = { id: properties.sessionID, permissionID: properties.id };
  await told(one.postSessionIdPermissionsPermissionId({ path, body: { response: answer } }));
});
await follow(two.event.subscribe(), seen.newer, async ({ type, properties }) => {
  if (type !== "question.asked") return;
  await told(two.question.reply({ requestID: properties.id, answers: [["Blue"]] }));
});

seen.session = await told(one.session.create({ body: { title: "a try" } }));
const { id } = seen.session;
const prompt = (text) => ({ path: { id }, body: { parts: [{ type: "text", text }] } });
seen.first = await told(one.session.prompt(prompt("write it")));
seen.second = await told(two.session.prompt({ sessionID: id, parts: [{ type: "text", text: "ask me" }] }));
await told(one.session.promptAsync(prompt("wait")));
while (!seen.events.some(({ properties }) => properties.part?.state?.input?.command?.startsWith("sleep"))) {
  await new Promise((go) => setTimeout(go, 10));
}
await told(one.session.abort({ path: { id } }));
await until("session.idle", 3);
seen.messages = await told(one.session.messages({ path: { id } }));
seen.newerMessages = await told(two.session.messages({ sessionID: id }));
seen.sessions = await told(one.session.list());
seen.todo = await told(one.session.todo({ path: { id } }));
seen.diff = await told(two.session.diff({ sessionID: id }));
seen.status = await told(two.session.status());
seen.config = await told(one.config.get());
seen.providers = await told(two.config.providers());
seen.olderProviders = await told(one.config.providers());
seen.agents = await told(two.app.agents());
seen.project = await told(two.project.current());
seen.path = await told(two.path.get());
seen.files = await told(one.find.files({ query: { query: "new" } }));
seen.file = await told(one.file.read({ query: { path: "new.txt" } }));
seen.fileStatus = await told(one.file.status());
seen.permissions = await told(two.permission.list());
seen.questions = await told(two.question.list());
seen.submitted = await told(one.tui.submitPrompt());
seen.refused = (await one.session.share({ path: { id } })).error;
process.stdout.write(JSON.stringify(seen), () => process.exit(0));
