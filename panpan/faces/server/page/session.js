// One session as the page knows it: its conversation, its state, its questions, and the calls that change it.
//
// The rule: what the server tells counts. A call changes nothing here; the event that follows it does.

import { call, clientName, follow, pathOf } from "./api.js";
import { Conversation, wordsOf } from "./conversation.js";

const POLL_MS = 5_000;

export class Session {
  /** `changed` is called at most once a frame; `announce` gets sentences for people who listen. */
  constructor(id, changed, announce) {
    this.id = id;
    this.announce = (text) => this.isNew && announce(text);
    this.conversation = new Conversation(() => this.touch());
    this.info = null;
    this.status = null;
    this.questions = [];
    this.commands = [];
    this.todos = [];
    this.tasks = [];
    this.returned = null; // words of prompts that came back, for the prompt box
    this.lost = null; // error for which no events come
    this.epoch = "";
    this.number = 0;
    this.isLoading = false;
    this.isNew = false; // false for events from before the page was loaded
    this.isEnded = false;
    this.changed = changed;
    this.stop = () => {};
    this.seen = () => this.watch();
    document.addEventListener("visibilitychange", this.seen);
    this.ready = this.read();
  }

  end() {
    this.isEnded = true;
    this.stop();
    document.removeEventListener("visibilitychange", this.seen);
  }

  touch() {
    if (this.frame || this.isEnded) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.changed();
    });
  }

  call(method, rest, params) {
    return call(method, pathOf(this.id, rest), params);
  }

  /** Read all of the session, and its events from there on. */
  async read() {
    if (this.isLoading) return;
    this.stop();
    this.isLoading = true;
    try {
      const state = await this.call("GET", "");
      if (this.isEnded) return;
      this.epoch = state.epoch;
      this.number = state.number;
      this.past = state.last;
      this.info = state.session;
      this.status = state.status;
      this.questions = state.questions.map(({ id, kind, question }) => ({ id, kind, question }));
      this.commands = state.commands;
      this.conversation.load(state.messages);
      this.lost = null;
      this.watch();
      this.readTodos();
      this.readTasks();
    } catch (error) {
      this.lost = error;
      if (error.status === 0 && !this.isEnded) setTimeout(() => this.read(), POLL_MS);
    } finally {
      this.isLoading = false;
      this.touch();
    }
  }

  /**
   * Follow the events while the tab is seen. A browser has six connections for a server: a hidden tab leaves its own to
   * the others, and asks now and then whether an answer is needed.
   */
  watch() {
    this.stop();
    if (this.isEnded || !this.epoch) return;
    if (document.hidden) {
      const poll = setInterval(() => this.readStatus(), POLL_MS);
      this.stop = () => clearInterval(poll);
      return;
    }
    const place = () => ({ epoch: this.epoch, after: this.number });
    this.stop = follow(this.id, place, (events) => this.take(events), (error) => {
      if (this.lost === error) return;
      this.lost = error;
      this.touch();
    });
  }

  async readStatus() {
    try {
      this.status = await this.call("GET", "/status");
      this.changed(); // a hidden tab draws no frames, and its title still tells
    } catch {
      // The stream says so once the tab is seen.
    }
  }

  take(events) {
    for (const { epoch, number, name, data } of events) {
      this.isNew = number > this.past;
      this.number = Math.max(this.number, number);
      if (epoch !== this.epoch || !this.apply(name, data)) {
        this.read();
        return;
      }
    }
    this.touch();
  }

  /** Take an event. Returns false if the session has to be read again. */
  apply(name, data) {
    try {
      EVENTS[name]?.(this, data);
      return this.conversation.apply(name, data);
    } catch (error) {
      // A bug of the page costs one event; to stop here would read that event for ever.
      this.conversation.push("notice", { text: `the page cannot show ${name}: ${error.message}; reload it`, isError: true });
      return true;
    }
  }

  async readTodos() {
    this.todos = await this.call("GET", "/todos").catch(() => this.todos);
    this.touch();
  }

  async readTasks() {
    this.tasks = await this.call("GET", "/tasks").catch(() => this.tasks);
    this.touch();
  }

  /** Title of the session, or the first words of the user. */
  get title() {
    const words = (item) => wordsOf({ content: item.blocks }).trim();
    const first = this.conversation.items.find((item) => item.kind === "user" && words(item));
    return this.status?.title || (first && words(first).split("\n", 1)[0].slice(0, 100)) || "";
  }

  get isBusy() {
    return this.status !== null && this.status.activity !== "idle";
  }
}

const EVENTS = {
  status_changed: (on, { status }) => void (on.status = status),
  question_asked: (on, { id, question }) => {
    if (on.questions.some((one) => one.id === id)) return;
    on.questions = [...on.questions, { id, ...question }];
    on.announce("A question needs your answer.");
  },
  question_closed: (on, { id, client }) => {
    const isOther = client && client !== clientName && on.questions.some((one) => one.id === id);
    on.questions = on.questions.filter((one) => one.id !== id);
    if (isOther) on.announce("The question was answered elsewhere.");
  },
  task_changed: (on, { task }) => {
    on.tasks = [...on.tasks.filter((one) => one.id !== task.id), task];
  },
  tool_result_message: (on, { display }) => {
    if (display?.type === "todos") on.readTodos();
  },
  turn_closed: (on) => void on.readTodos(),
  assistant_message: (on, { content }) => {
    const text = content.filter((block) => block.type === "text").map((block) => block.text);
    if (text.length) on.announce(text.join(" ").slice(0, 1_000));
  },
  turn_failed: (on, { error }) => on.announce(error),
  prompts_returned: (on, { prompts, client }) => {
    if (on.isNew && client === clientName) on.returned = prompts.map(wordsOf).join("\n");
  },
};

