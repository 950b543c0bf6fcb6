// Parts of a conversation as they are drawn: messages, calls with their results, differences, lists and tables.

import { Component, html, useState } from "./preact.js";
import { Markdown } from "./markdown.js";
import { exact, Long, Plain, visible } from "./text.js";

const MOST_DIFF_LINES = 60;
const LAST_LINES = 5;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Items of a conversation; each is drawn again only when it has changed. */
export function Items({ items }) {
  return items.map((item) => html`<${Item} key=${item.key} item=${item} rev=${item.rev} />`);
}

class Item extends Component {
  shouldComponentUpdate(next) {
    return next.rev !== this.props.rev || next.item !== this.props.item;
  }

  render({ item }) {
    return html`<${VIEWS[item.kind]} item=${item} />`;
  }
}

/** A part that is folded. What is inside is made once it is opened. */
export function Fold({ summary, children, kind = "", isOpen = false }) {
  const [open, setOpen] = useState(isOpen);
  return html`<details class=${kind} open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${summary}</summary>
    ${open && html`<div class="inside">${children()}</div>`}
  </details>`;
}

function User({ item }) {
  const [words, ...further] = item.blocks;
  return html`<article class="user" aria-label="You">
    <${Blocks} blocks=${words ? [words] : []} label="Your message" />
    ${further.length > 0 &&
    html`<${Fold} summary="${further.length} attached" children=${() => html`<${Blocks} blocks=${further} />`} />`}
  </article>`;
}

function Blocks({ blocks, label = "Content" }) {
  return blocks.map((block, number) =>
    block.type === "text"
      ? html`<${Long} key=${number} text=${block.text} draw=${(shown) => html`<p class="words" dir="auto">${visible(shown)}</p>`} />`
      : html`<${Picture} key=${number} block=${block} label=${label} />`,
  );
}

function Picture({ block }) {
  const { media_type: kind, data } = block.source;
  if (block.type !== "image" || !PICTURES.includes(kind)) return html`<p class="dim">A document (${visible(kind)})</p>`;
  return html`<img alt="A picture of the conversation" src=${`data:${kind};base64,${data}`} />`;
}

function Reply({ item }) {
  return html`<article class="reply" aria-label="Reply"><${Markdown} text=${item.text} /></article>`;
}

function Thinking({ item }) {
  if (!item.text && !item.isArriving) return null;
  const draw = (shown) => html`<p class="words" dir="auto">${visible(shown)}</p>`;
  return html`<${Fold} kind="thinking" summary=${item.isArriving ? "Thinking …" : "Thoughts"}
    children=${() => html`<${Long} text=${item.text} draw=${draw} />`} />`;
}

const SIGNS = { arriving: "…", waiting: "…", running: "●", done: "✓", failed: "✗" };
const STATES = { arriving: "is written", waiting: "waits", running: "runs", done: "done", failed: "failed" };

/** What matters of a call, on one line. */
function titleOf(item) {
  const given = item.input ?? {};
  const named = ["command", "file_path", "path", "pattern", "url", "query", "description", "prompt"];
  const value = item.title || named.map((name) => given[name]).find((one) => typeof one === "string") || "";
  return visible(value.split("\n", 1)[0].slice(0, 300));
}

function outcomeOf({ display, duration, result }) {
  const time = duration >= 1 ? `${duration.toFixed(1)} s` : "";
  if (!display && result?.is_error) return visible(textOf(result).split("\n", 1)[0].slice(0, 200));
  if (display?.type === "summary") return visible(display.text);
  if (display?.type !== "diff") return time;
  const sum = (name) => display.files.reduce((total, file) => total + file[name], 0);
  return `+${sum("added")} −${sum("removed")}`;
}

/** Text of a result for people. */
function textOf(result) {
  const texts = result.content.filter((block) => block.type === "text" && block.audience !== "model");
  return texts.map((block) => block.text).join("\n");
}

function Call({ item }) {
  const agents = [...item.agents.values()];
  const summary = html`<span class="sign" aria-hidden="true">${SIGNS[item.state]} </span>
    <span class="hidden">${STATES[item.state]}: </span><b>${visible(item.name || "Tool")} </b>
    <span class="title">${titleOf(item)} </span><span class="dim">${outcomeOf(item)}</span>`;
  const lines = item.output.trimEnd().split("\n");
  return html`<div class="call ${item.state}">
    <${Fold} summary=${summary} children=${() => html`<${CallDetails} item=${item} />`} />
    ${item.state === "running" && item.output && html`<pre class="tail" aria-hidden="true">${visible(lines.slice(-LAST_LINES).join("\n").slice(-2_000))}</pre>`}
    ${item.display && html`<div class="shown"><${Shown} display=${item.display} /></div>`}
    ${agents.map((agent, number) => html`<${Agent} key=${number} agent=${agent} rev=${agent.rev} />`)}
  </div>`;
}

function CallDetails({ item }) {
  const text = item.result ? textOf(item.result) : item.output;
  return html`
    ${item.input ? html`<${Arguments} input=${item.input} />` : html`<${Plain} text=${item.inputText} label="Arguments" />`}
    ${item.reason && html`<p class="dim">${visible(item.reason)}</p>`}
    ${text && html`<h3>Output</h3><${Plain} text=${text} label="Output" />`}
    <${Blocks} blocks=${(item.result?.content ?? []).filter((block) => block.type !== "text")} />
    ${item.files.length > 0 && html`<p class="dim">Files edited: ${item.files.map(visible).join(", ")}</p>`}`;
}

/** All arguments of a call, each by its name. */
export function Arguments({ input, spell = visible }) {
  const rows = Object.entries(input);
  if (!rows.length) return html`<p class="dim">No arguments</p>`;
  return html`<dl class="arguments">
    ${rows.map(([name, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
      return html`<div key=${name}><dt>${exact(name)}</dt><dd><${Plain} text=${text} label=${exact(name)} spell=${spell} /></dd></div>`;
    })}
  </dl>`;
}

function Agent({ agent }) {
  const count = agent.items.length;
  const last = agent.items.at(-1);
  const now = last?.kind === "call" && last.state === "running" ? `, now ${visible(last.name)} ${titleOf(last)}` : "";
  return html`<${Fold} kind="agent" summary="Subagent: ${count} ${count === 1 ? "step" : "steps"}${now}"
    children=${() => html`<${Items} items=${agent.items.slice(-100)} />`} />`;
}

/** What a call shows in place of its text. */
function Shown({ display }) {
  switch (display.type) {
    case "diff":
      return html`<${Diffs} files=${display.files} notes=${display.notes} />`;
    case "rejected":
      return html`<p class="dim">${visible(display.text)}</p><${Diffs} files=${display.files} />`;
    case "todos":
      return html`<${Todos} todos=${display.todos} />`;
    case "plan":
      return html`<div class="plan"><${Markdown} text=${display.text} /></div><p class="dim">${visible(display.summary)}</p>`;
    case "table":
      return html`<${Table} rows=${display.rows} header=${display.header} />`;
    case "text": {
      const draw = (shown) => html`<p class="words" dir="auto">${visible(shown)}</p>`;
      return html`<${Long} text=${display.spans.map((span) => span.text).join("")} draw=${draw} mostLines=${20} />`;
    }
    default:
      return null; // a summary stands beside the title
  }
}

function Table({ rows, header }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>
    ${header.length > 0 && html`<thead><tr>${header.map((cell) => html`<th>${visible(cell)}</th>`)}</tr></thead>`}
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${visible(cell)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

const BOXES = { pending: ["○", "to do"], in_progress: ["◐", "in progress"], completed: ["●", "done"] };

export function Todos({ todos }) {
  if (!todos.length) return html`<p class="dim">Nothing to do</p>`;
  return html`<ul class="todos">
    ${todos.map(({ content, active_form, status }, number) => html`<li key=${number} class=${status}>
      <span aria-hidden="true">${BOXES[status][0]} </span><span class="hidden">${BOXES[status][1]}: </span>
      ${visible(status === "in_progress" ? active_form : content)}
    </li>`)}
  </ul>`;
}

/** Changes to files, each as a difference. */
export function Diffs({ files, notes = [], spell = visible }) {
  return html`<div class="diffs">
    ${files.map((file) => html`<section key=${file.path} aria-label="Changes to ${spell(file.path)}">
      <p class="path"><b>${spell(file.path)}</b>
        <span class="dim"> ${file.is_new ? "new, " : file.is_deleted ? "deleted, " : ""}+${file.added} −${file.removed}</span></p>
      ${file.diff && html`<${Diff} text=${file.diff} spell=${spell} />`}
      ${file.is_cut && html`<p class="dim">A part of the change is left out.</p>`}
    </section>`)}
    ${notes.map((note) => html`<p class="dim">${spell(note)}</p>`)}
  </div>`;
}

const KINDS = { "+": "added", "-": "removed", "@": "place" };

/** A unified diff, with its signs. */
export function Diff({ text, spell = visible }) {
  const draw = (shown) => html`<pre class="diff" tabindex="0" role="region" aria-label="Difference">
    ${shown.replace(/\n$/, "").split("\n").map((line, number) => {
      const kind = /^(\+\+\+|---|diff|index) /.test(line) ? "place" : KINDS[line[0]] ?? "";
      return html`<span key=${number} class=${kind}>${spell(line)}${"\n"}</span>`;
    })}
  </pre>`;
  return html`<${Long} text=${text} draw=${draw} mostLines=${MOST_DIFF_LINES} />`;
}

function CommandText({ item }) {
  return html`<article class="command"><p><code>${visible(item.line)}</code></p>
    ${item.text && html`<${Plain} text=${item.text} label="Output of the command" mostLines=${60} />`}</article>`;
}

function Notice({ item }) {
  return html`<p class="notice ${item.isError ? "error" : ""}">${visible(item.text)}</p>`;
}

/** The evidence for the answer, as the terminal tells it, and the problem with it if there is one. */
function evidenceLines({ verified, failed, stale, unverified, problem }) {
  const quoted = unverified.map((claim) => `"${claim}"`);
  const parts = Object.entries({ verified, failed, stale, unverified: quoted }).filter(([, texts]) => texts.length);
  return [parts.map(([name, texts]) => `${name}: ${texts.join(", ")}`).join(" · "), problem].filter(Boolean);
}

function Ended({ item }) {
  const money = item.cost_usd ? `${item.is_cost_estimated ? "about " : ""}$${item.cost_usd.toFixed(4)}` : "";
  const files = item.files.length === 1 ? "1 file changed" : item.files.length ? `${item.files.length} files changed` : "";
  const words = [`${item.duration_s.toFixed(1)} s`, money, files].filter(Boolean).join(" · ");
  const lines = item.verification ? evidenceLines(item.verification) : [];
  return html`<div class="ended">${lines.map((line) => html`<p key=${line}>${visible(line)}</p>`)}<p>${words}</p></div>`;
}

const VIEWS = {
  user: User, text: Reply, thinking: Thinking, call: Call, command: CommandText, notice: Notice, ended: Ended,
};
