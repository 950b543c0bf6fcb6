// The box for prompts: its keys, completion of commands and files, and prompts that come back.

import { newId } from "./api.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { visible } from "./text.js";

const MOST_ROWS = 12;
const MOST_CHOICES = 8;
const PAUSE_MS = 120;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];

/** `send` gets the parts of a prompt, its time of delivery and an id, and returns when the server has it. */
export function PromptBox({ session, send, fail }) {
  const box = useRef();
  const [text, setText] = useState("");
  const [pictures, setPictures] = useState([]);
  const [delivery, setDelivery] = useState("steer");
  const [isSending, setSending] = useState(false);
  const completion = useCompletion(session, box, text, setText);
  const isBusy = session?.isBusy ?? false;

  useEffect(() => {
    if (!session?.returned) return;
    setText((now) => [session.returned, now].filter(Boolean).join("\n"));
    session.returned = null;
  });

  const submit = async (when = delivery) => {
    if ((!text.trim() && !pictures.length) || isSending) return;
    const parts = [...(text.trim() ? [{ type: "text", text }] : []), ...pictures];
    setSending(true);
    try {
      await send(parts, when, newId());
      setText("");
      setPictures([]);
    } catch (error) {
      fail(error);
    }
    setSending(false);
    box.current?.focus();
  };

  const takeBack = async () => {
    const { text: words } = await session.call("POST", "/take-back");
    if (words !== null) setText((now) => now || words);
  };

  const press = (event) => {
    if (event.isComposing || completion.press(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      submit(event.altKey ? "queue" : delivery);
    } else if (event.key === "ArrowUp" && !text && session?.status?.waiting) {
      event.preventDefault();
      takeBack().catch(fail);
    }
  };

  const paste = async (event) => {
    const files = [...event.clipboardData.files].filter((file) => PICTURES.includes(file.type));
    if (!files.length) return;
    event.preventDefault();
    const parts = await Promise.all(files.map(partOf));
    setPictures((now) => [...now, ...parts]);
  };

  const rows = Math.min(text.split("\n", MOST_ROWS).length + 1, MOST_ROWS);
  return html`<form class="prompt" onSubmit=${(event) => (event.preventDefault(), submit())}>
    ${completion.list}
    ${pictures.length > 0 && html`<p>${pictures.length} pasted
      <button type="button" class="quiet" onClick=${() => setPictures([])}>Remove</button></p>`}
    <label class="hidden" for="prompt">Prompt</label>
    <textarea id="prompt" ref=${box} rows=${rows} value=${text} dir="auto" ...${completion.attributes}
      placeholder="Ask panpan. / for commands, @ for files" onKeyDown=${press} onPaste=${paste}
      onInput=${(event) => (setText(event.currentTarget.value), completion.look())} onBlur=${completion.close}></textarea>
    <div class="row">
      ${isBusy && html`<label class="inline">Deliver
        <select value=${delivery} onChange=${(event) => setDelivery(event.currentTarget.value)}>
          <option value="steer">at the next step</option><option value="queue">after this turn</option>
        </select></label>`}
      ${session?.status?.waiting > 0 && html`<span class="dim">${session.status.waiting} waiting (Up takes yours back)</span>`}
      <span class="space"></span>
      ${isBusy && html`<button type="button" onClick=${() => session.call("POST", "/interrupt").catch(fail)}>Stop (Esc)</button>`}
      <button class="main" disabled=${isSending || (!text.trim() && !pictures.length)}>Send</button>
    </div>
  </form>`;
}

async function partOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return { type: "data", media_type: file.type, data: btoa(text) };
}

/** Completion of the word before the caret: a command at the beginning, or a file after an @. */
function useCompletion(session, box, text, setText) {
  const [choices, setChoices] = useState([]);
  const [at, setAt] = useState(0);
  const timer = useRef(0);

  const close = () => {
    clearTimeout(timer.current);
    setChoices([]);
  };
  const look = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(async () => {
      const found = await choicesFor(session, box.current.value.slice(0, box.current.selectionStart)).catch(() => []);
      setChoices(found);
      setAt(0);
    }, PAUSE_MS);
  };
  const take = (choice) => {
    const caret = box.current.selectionStart;
    const begin = text.slice(0, caret).search(/\S*$/);
    const before = `${text.slice(0, begin)}${choice} `;
    setText(before + text.slice(caret).trimStart());
    close();
    requestAnimationFrame(() => box.current?.setSelectionRange(before.length, before.length));
  };
  const press = (event) => {
    if (!choices.length) return false;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) setAt((at + move + choices.length) % choices.length);
    else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) take(choices[at]);
    else if (event.key === "Escape") close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  const attributes = { "aria-autocomplete": "list", "aria-haspopup": "listbox" };
  if (choices.length) Object.assign(attributes, { "aria-controls": "choices", "aria-activedescendant": `choice-${at}` });
  // The mouse must not take the focus, which closes the list.
  const list = choices.length > 0 && html`<ul id="choices" role="listbox" aria-label="Completions">
    ${choices.map((choice, number) => html`<li key=${choice} id="choice-${number}" role="option"
      aria-selected=${String(number === at)} onMouseDown=${(event) => (event.preventDefault(), take(choice))}>
      ${visible(choice)}</li>`)}
  </ul>`;
  return { look, close, press, attributes, list };
}

async function choicesFor(session, before) {
  if (!session) return [];
  if (/^\/\S*$/.test(before)) {
    const names = session.commands.map((name) => (name.startsWith("/") ? name : `/${name}`));
    const found = names.filter((name) => name.startsWith(before));
    return found.length === 1 && found[0] === before ? [] : found.slice(0, MOST_CHOICES);
  }
  const word = /(?:^|\s)@(\S*)$/.exec(before);
  if (!word) return [];
  const found = await session.call("GET", "/files", { query: word[1], limit: MOST_CHOICES });
  return found.map((name) => (/[\s"]/.test(name) ? `@"${name}"` : `@${name}`)).filter((name) => name !== `@${word[1]}`);
}
