// What stands beside the conversation: the list of sessions, and the todos, changes, files and tasks of one.

import { call } from "./api.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { Diff, Todos } from "./parts.js";
import { Plain, visible } from "./text.js";

const LIST_MS = 5_000;
const OUTPUT_MS = 2_000;
const PAUSE_MS = 150;
const ACTIVITIES = { asking: "needs an answer", busy: "works", retrying: "waits to try again", idle: "open" };

/** Run a function now and every so often while a part is shown and the tab is seen. */
function useRepeated(run, ms, inputs) {
  useEffect(() => {
    run();
    const timer = setInterval(() => document.hidden || run(), ms);
    return () => clearInterval(timer);
  }, inputs);
}

export function Sessions({ current, choose, fail, activity }) {
  const [sessions, setSessions] = useState([]);
  const [next, setNext] = useState("");
  const [projects, setProjects] = useState([]);
  const [folder, setFolder] = useState("");
  const read = async () => {
    try {
      const page = await call("GET", "/v1/sessions");
      setSessions((known) => (known.length > page.sessions.length ? merged(page.sessions, known) : page.sessions));
      setNext((cursor) => cursor || page.next);
    } catch (error) {
      if (error.status) fail(error); // a server that does not answer is told beside the conversation
    }
  };
  useRepeated(read, LIST_MS, [current, activity]);
  useEffect(() => void call("GET", "/v1/projects").then(setProjects, () => {}), []);
  const open = () => call("POST", "/v1/sessions", folder ? { folder } : {}).then((state) => choose(state.session.id), fail);
  const more = async () => {
    const page = await call("GET", "/v1/sessions", { cursor: next });
    setSessions(merged(sessions, page.sessions));
    setNext(page.next);
  };
  return html`
    ${projects.length > 1 &&
    html`<label>Folder <select value=${folder} onChange=${(event) => setFolder(event.currentTarget.value)}>
      ${projects.map((project) => html`<option key=${project} value=${project}>${visible(project)}</option>`)}
    </select></label>`}
    <button type="button" class="main wide" onClick=${open}>New session</button>
    <ul class="sessions">
      ${sessions.map((one) => html`<li key=${one.id}>
        <button type="button" class="quiet" aria-current=${one.id === current ? "page" : undefined}
          title=${visible(one.cwd)} onClick=${() => choose(one.id)}>
          <span class="name">${visible(one.title) || "New session"}</span>
          <span class="dim ${one.status?.activity ?? ""}">${one.status ? ACTIVITIES[one.status.activity] : day(one.updated_at)}</span>
        </button>
      </li>`)}
    </ul>
    ${next && html`<button type="button" class="quiet" onClick=${() => more().catch(fail)}>Older sessions</button>`}`;
}

function merged(first, then) {
  const known = new Set(first.map((one) => one.id));
  return [...first, ...then.filter((one) => !known.has(one.id))];
}

function day(time) {
  const date = new Date(time);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString("en", { timeStyle: "short" }) : date.toLocaleDateString("en", { dateStyle: "medium" });
}

const TABS = { todos: "Todos", changes: "Changes", files: "Files", tasks: "Tasks" };

export function Panel({ session, tab, setTab, fail }) {
  const View = { todos: TodoList, changes: Changes, files: Files, tasks: Tasks }[tab];
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = Object.keys(TABS);
    setTab(names[(names.indexOf(tab) + step + names.length) % names.length]);
    event.currentTarget.querySelector(`#tab-${names[(names.indexOf(tab) + step + names.length) % names.length]}`).focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label="About this session" onKeyDown=${move}>
      ${Object.entries(TABS).map(([name, label]) => html`<button type="button" role="tab" key=${name} id="tab-${name}"
        aria-selected=${String(name === tab)} aria-controls="tab-content" tabindex=${name === tab ? 0 : -1}
        onClick=${() => setTab(name)}>${label}</button>`)}
    </div>
    <div id="tab-content" role="tabpanel" aria-labelledby="tab-${tab}"><${View} session=${session} fail=${fail} /></div>`;
}

function TodoList({ session }) {
  return html`<${Todos} todos=${session.todos} />`;
}

function Changes({ session, fail }) {
  const [restore, setRestore] = useState(null);
  const [step, setStep] = useState(null);
  const activity = session.status?.activity;
  const read = () => session.call("GET", "/changes").then(setRestore, (error) => setRestore({ error }));
  useEffect(() => void read(), [session, activity]);
  const look = (direction) =>
    session.call("POST", `/changes/${direction}`, { only_looks: true }).then((would) => setStep({ direction, would }), fail);
  const carryOut = () => {
    session.call("POST", `/changes/${step.direction}`, {}).then(read, fail);
    setStep(null);
  };
  if (restore === null) return html`<p class="dim">Reading …</p>`;
  if (restore.error) return html`<p class="dim">${visible(restore.error.message)}</p>`;
  return html`
    <div class="answers">
      <button type="button" disabled=${session.isBusy} onClick=${() => look("undo")}>Undo last turn …</button>
      <button type="button" disabled=${session.isBusy} onClick=${() => look("redo")}>Redo …</button>
    </div>
    <${Restore} restore=${restore} none="This session has changed no files." />
    ${step && html`<${StepDialog} step=${step} carryOut=${carryOut} close=${() => setStep(null)} />`}`;
}

/** Shows what undo or redo would do, before it does it. */
function StepDialog({ step: { direction, would }, carryOut, close }) {
  const dialog = useRef();
  useEffect(() => dialog.current.showModal(), []);
  const name = direction === "undo" ? "Undo" : "Redo";
  return html`<dialog ref=${dialog} aria-labelledby="step-title" onClose=${close}>
    <h2 id="step-title">${name} these changes?</h2>
    <${Restore} restore=${would} none="There is nothing to ${direction}." />
    <div class="answers">
      ${would.files.length > 0 && html`<button type="button" class="main" onClick=${carryOut}>${name}</button>`}
      <button type="button" onClick=${() => dialog.current.close()}>Cancel</button>
    </div>
  </dialog>`;
}

const SIGNS = { added: "+", modified: "±", deleted: "−" };

function Restore({ restore: { files, diff, conflicts, notes }, none }) {
  const left = Object.entries(conflicts);
  if (!files.length && !left.length && !notes.length) return html`<p class="dim">${none}</p>`;
  return html`
    <ul class="changes">
      ${files.map((file) => html`<li key=${file.path}><span aria-hidden="true">${SIGNS[file.kind]}</span>
        <span class="hidden">${file.kind}: </span> ${visible(file.path)}
        ${file.added !== null && html`<span class="dim"> +${file.added} −${file.deleted}</span>`}</li>`)}
    </ul>
    ${left.map(([path, reason]) => html`<p key=${path}>Left as it is: ${visible(path)} (${visible(reason)})</p>`)}
    ${notes.map((note) => html`<p class="dim">${visible(note)}</p>`)}
    ${diff && html`<${Diff} text=${diff} />`}`;
}

function Files({ session, fail }) {
  const [query, setQuery] = useState("");
  const [names, setNames] = useState([]);
  const [file, setFile] = useState(null);
  useEffect(() => {
    let isOld = false;
    const timer = setTimeout(async () => {
      try {
        const found = await session.call("GET", "/files", { query, limit: 50 });
        if (!isOld) setNames(found);
      } catch (error) {
        fail(error);
      }
    }, PAUSE_MS);
    return () => ((isOld = true), clearTimeout(timer));
  }, [session, query]);
  const read = (path) => session.call("GET", "/files/content", { path, max_bytes: 1_000_000 }).then(setFile, fail);
  if (file) {
    return html`<button type="button" onClick=${() => setFile(null)}>Back to the list</button>
      <p class="path"><b>${visible(file.path)}</b></p>
      ${file.is_lossy && html`<p class="dim">Not all of it is text.</p>`}
      <${Plain} text=${file.content} label="Content of the file" mostLines=${500} />
      ${file.is_cut && html`<p class="dim">The file goes on.</p>`}`;
  }
  return html`<label>Find files
      <input type="search" value=${query} onInput=${(event) => setQuery(event.currentTarget.value)} /></label>
    <ul class="files">${names.map((name) => html`<li key=${name}>
      <button type="button" class="quiet" onClick=${() => read(name)}>${visible(name)}</button></li>`)}</ul>
    ${!names.length && html`<p class="dim">No file fits.</p>`}`;
}

function Tasks({ session, fail }) {
  if (!session.tasks.length) return html`<p class="dim">No background tasks</p>`;
  return html`<ul class="tasks">${session.tasks.map((task) => html`<li key=${task.id}>
    <p><b>${visible(task.title)}</b> <span class="dim">${task.state}</span></p>
    <${Task} session=${session} task=${task} fail=${fail} />
  </li>`)}</ul>`;
}

function Task({ session, task, fail }) {
  const [isOpen, setOpen] = useState(false);
  const stop = () => session.call("POST", `/tasks/${task.id}/stop`).catch(fail);
  return html`<div class="answers">
      <button type="button" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>Output</button>
      ${task.state === "running" && html`<button type="button" onClick=${stop}>Stop</button>`}
    </div>
    ${isOpen && html`<${TaskOutput} session=${session} task=${task} fail=${fail} />`}`;
}

function TaskOutput({ session, task, fail }) {
  const [output, setOutput] = useState(null);
  const isRunning = task.state === "running";
  const read = () => session.call("GET", `/tasks/${task.id}/output`).then(setOutput, fail);
  useRepeated(read, isRunning ? OUTPUT_MS : 2 ** 31 - 1, [task.id, isRunning]);
  if (output === null) return null;
  return html`${output.is_cut && html`<p class="dim">Only the end is shown.</p>`}
    <${Plain} text=${output.text || "(no output yet)"} label="Output of the task" />`;
}
