// A conversation as a list of items, made from messages and events.
//
// The rule: an event changes the items that it is about and no other. A changed item has a new `rev`, so that only it is
// drawn again.

// Most characters of a running tool's output that are kept: its end.
const MOST_OUTPUT = 200_000;

let keys = 0;

/** Words of a message of the user: its first text. What follows is data that goes along. */
export function wordsOf(message) {
  return message.content.find((block) => block.type === "text")?.text ?? "";
}

/** Conversation of the main agent, or of a subagent with the call that it works for as `parent`. */
export class Conversation {
  constructor(touched = () => {}) {
    this.items = [];
    this.rev = 0;
    this.waiting = "";
    this.touched = touched;
    this.calls = new Map();
    this.reply = new Map();
    this.uuids = new Set();
  }

  /** Begin again with messages of a session. */
  load(messages) {
    this.items = [];
    this.calls.clear();
    this.reply.clear();
    this.uuids.clear();
    for (const message of messages) this.add(message);
    this.touch();
  }

  touch(item) {
    if (item) item.rev++;
    this.rev++;
    this.touched();
  }

  push(kind, fields) {
    const item = { key: ++keys, kind, rev: 0, uuid: "", ...fields };
    this.items.push(item);
    this.touch();
    return item;
  }

  remove(item) {
    const place = this.items.lastIndexOf(item);
    if (place >= 0) this.items.splice(place, 1);
    if (item.kind === "call" && this.calls.get(item.id) === item) this.calls.delete(item.id);
    this.touch();
  }

  /** Take an event. Returns false if the session has to be read again. */
  apply(name, data) {
    const take = EVENTS[name];
    return take ? take(this, data) !== false : true;
  }

  /** Take a recorded message, unless it is here already. */
  add(message) {
    if (this.uuids.has(message.uuid)) return;
    this.uuids.add(message.uuid);
    if (message.type === "user") this.push("user", { uuid: message.uuid, blocks: message.content });
    else if (message.type === "assistant") this.finishReply(message);
    else if (message.type === "tool_result") this.addResult(message);
  }

  addResult(message) {
    const item = this.callOf(message.result.tool_use_id);
    Object.assign(item, { result: message.result, display: message.display, resultUuid: message.uuid });
    item.output = "";
    item.state = message.result.is_error ? "failed" : "done";
    this.touch(item);
  }

  callOf(id, name = "") {
    return this.calls.get(id) ?? this.newCall(id, name);
  }

  newCall(id, name) {
    const item = this.push("call", {
      id, name, input: null, inputText: "", title: "", state: "arriving", output: "", result: null, display: null,
      reason: "", agents: new Map(), files: [],
    });
    this.calls.set(id, item);
    return item;
  }

  startBlock(block) {
    const isCall = block.kind === "tool_use";
    const item = isCall
      ? this.newCall(block.tool_use_id, block.tool_name)
      : this.push(block.kind === "text" ? "text" : "thinking", { text: "", isArriving: true });
    this.reply.set(block.index, item);
    return item;
  }

  grow(index, kind, text) {
    const item = this.reply.get(index) ?? this.startBlock({ index, kind, tool_use_id: "", tool_name: "" });
    if (item.kind === "call") item.inputText += text;
    else item.text += text;
    this.touch(item);
  }

  finishBlock(index, block, uuid = "") {
    const known = this.reply.get(index);
    const item = known ?? this.startBlock({ index, kind: block.type, tool_use_id: block.id, tool_name: block.name });
    item.uuid = uuid;
    if (block.type === "tool_use") {
      Object.assign(item, { name: block.name, input: block.input, inputText: "" });
      if (item.state === "arriving") item.state = "waiting";
    } else {
      item.text = block.text ?? block.thinking ?? "";
      item.isArriving = false;
    }
    this.touch(item);
  }

  finishReply(message) {
    message.content.forEach((block, index) => this.finishBlock(index, block, message.uuid));
    for (const [index, item] of this.reply) if (index >= message.content.length) this.remove(item);
    this.reply.clear();
  }

  /** Forget the reply that is arriving, as before it is asked for again. */
  dropReply() {
    for (const item of this.reply.values()) this.remove(item);
    this.reply.clear();
  }

  rewind(last) {
    let keep = this.items.length;
    while (keep && last !== this.items[keep - 1].uuid && last !== this.items[keep - 1].resultUuid) keep--;
    if (last && !keep) return false;
    for (const item of this.items.splice(keep)) this.calls.delete(item.id);
    this.touch();
    return true;
  }

  subagent({ parent_tool_use_id, agent_id, event }) {
    const item = this.callOf(parent_tool_use_id);
    let of = item.agents.get(agent_id);
    if (!of) item.agents.set(agent_id, (of = new Conversation(() => this.touch(item))));
    of.apply(event.event, event.data);
  }
}

const change = (conversation, id, fields) => {
  const item = conversation.callOf(id);
  Object.assign(item, fields);
  conversation.touch(item);
};

const notice = (conversation, text, isError = false) => void conversation.push("notice", { text, isError });

const EVENTS = {
  turn_began: (on, { prompt }) => prompt && on.add(prompt),
  user_message: (on, message) => on.add(message),
  message_recorded: (on, { message }) => on.add(message),
  assistant_message: (on, message) => on.add(message),
  tool_result_message: (on, message) => on.add(message),
  reply_started: (on) => {
    on.dropReply();
    on.waiting = "";
  },
  block_started: (on, block) => void on.startBlock(block),
  text_delta: (on, { index, text }) => on.grow(index, "text", text),
  thinking_delta: (on, { index, text }) => on.grow(index, "thinking", text),
  tool_input_delta: (on, { index, json }) => on.grow(index, "tool_use", json),
  block_finished: (on, { index, block }) => on.finishBlock(index, block),
  retry_scheduled: (on) => on.dropReply(),
  waiting: (on, { reason }) => {
    on.waiting = reason;
    on.touch();
  },
  tool_started: (on, { tool_use_id, name, title }) => change(on, tool_use_id, { name, title, state: "running" }),
  tool_progress: (on, { tool_use_id, text }) => {
    const output = on.callOf(tool_use_id).output + text;
    change(on, tool_use_id, { output: output.slice(-MOST_OUTPUT) });
  },
  tool_finished: (on, { tool_use_id, is_error, duration_s }) =>
    change(on, tool_use_id, { state: is_error ? "failed" : "done", duration: duration_s }),
  permission_decided: (on, { tool_use_id, reason, is_allowed, input }) =>
    change(on, tool_use_id, { reason: `${is_allowed ? "Allowed" : "Not allowed"}: ${reason}`, ...(input && { input }) }),
  file_edited: (on, { tool_use_id, path }) =>
    change(on, tool_use_id, { files: [...on.callOf(tool_use_id).files, path] }),
  subagent_event: (on, data) => on.subagent(data),
  compacted: (on, { compaction }) =>
    notice(
      on,
      compaction.trigger === "undo"
        ? "The model reads the older messages again."
        : `Older messages were shortened for the model, to about ${compaction.tokens_after.toLocaleString("en")} tokens.`,
    ),
  command_ran: (on, { line, text }) => {
    const last = on.items.at(-1);
    if (last?.kind === "user" && wordsOf({ content: last.blocks }) === line) on.remove(last); // shown with its text
    on.push("command", { line, text });
  },
  turn_ended: (on, data) => {
    if (data.is_interrupted) notice(on, "Stopped.");
    if (data.rounds || data.files.length) on.push("ended", data);
  },
  turn_failed: (on, { error }) => notice(on, error, true),
  turn_closed: (on) => {
    for (const item of on.reply.values()) {
      item.isArriving = false;
      on.touch(item);
    }
    on.reply.clear();
    on.waiting = "";
    on.touch();
  },
  rewound: (on, { last }) => on.rewind(last),
  resync: (on, { blocks, is_whole }) => {
    on.dropReply();
    for (const block of blocks) on.grow(block.index, block.kind, on.startBlock(block) && block.text);
    return is_whole;
  },
};
