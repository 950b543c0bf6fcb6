// Markdown of replies and plans as nodes.
//
// It is read here and not by the server: a reply is drawn while it arrives, many times a second and from the events
// alone, and this much of the language takes fewer lines than a tree, its address and its drawing. The rule: it makes
// text nodes and elements of the lists below. Nothing becomes HTML, an image is a link, and a link shows its target.

import { Component, h, html } from "./preact.js";
import { beginning, Long, visible } from "./text.js";

const MOST_CHARS = 40_000;

/** A text in Markdown. Only its last paragraph is read again while it grows. */
export function Markdown({ text }) {
  const draw = (shown) => html`<div class="markdown" dir="auto">
    ${chunks(visible(shown)).map((chunk, number) => html`<${Chunk} key=${number} text=${chunk} />`)}
  </div>`;
  return text.length > MOST_CHARS ? html`<${Long} text=${text} draw=${draw} mostLines=${1000} />` : draw(text);
}

class Chunk extends Component {
  shouldComponentUpdate(next) {
    return next.text !== this.props.text;
  }

  render({ text }) {
    return blocks(text.split("\n"));
  }
}

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(\S.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const TABLE = /^[|: -]+$/;
const MOST_DEPTH = 8;

const isTable = (line) => TABLE.test(line) && line.includes("-");

/** Return the pieces of a text between blank lines; one with a fence or a list goes on past them. */
function chunks(text) {
  const found = [];
  let lines = [];
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[2] ?? "";
    const isList = lines.length > 0 && ITEM.test(lines[0]);
    if (!fence && lines.length && lines.at(-1) === "" && !(isList && (ITEM.test(line) || /^\s/.test(line)))) {
      found.push(lines.join("\n"));
      lines = [];
    }
    if (line.trim() || lines.length) lines.push(line.trim() ? line : "");
    if (fence) fence = mark.startsWith(fence) ? "" : fence;
    else fence = mark;
  }
  return lines.length ? [...found, lines.join("\n")] : found;
}

function blocks(lines, depth = 0) {
  const found = [];
  for (let i = 0; i < lines.length; ) {
    const [node, next] = block(lines, i, depth);
    if (node) found.push(node);
    i = next;
  }
  return found;
}

function block(lines, i, depth) {
  const line = lines[i];
  let match;
  if (!line.trim()) return [null, i + 1];
  if ((match = FENCE.exec(line))) return fenced(lines, i, match);
  if ((match = HEADING.exec(line))) return [h(`h${Math.min(match[1].length + 2, 6)}`, null, inline(match[2].trimEnd().replace(/ #+$/, ""))), i + 1];
  if (RULE.test(line)) return [h("hr"), i + 1];
  if (depth < MOST_DEPTH && /^ {0,3}>/.test(line)) return quote(lines, i, depth);
  if (depth < MOST_DEPTH && ITEM.test(line)) return list(lines, i, depth);
  if (line.includes("|") && isTable(lines[i + 1] ?? "")) return table(lines, i);
  return paragraph(lines, i);
}

function fenced(lines, i, [, indent, mark, name]) {
  let end = i + 1;
  while (end < lines.length && !closes(lines[end], mark)) end++;
  const code = lines.slice(i + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
  const label = name.trim() ? `Code, ${name.trim().slice(0, 40)}` : "Code";
  return [h("pre", { tabindex: 0, role: "region", "aria-label": label }, code.join("\n")), end + 1];
}

function closes(line, mark) {
  const text = line.trim();
  return text.startsWith(mark) && !text.replaceAll(mark[0], "");
}

function quote(lines, i, depth) {
  let end = i;
  while (end < lines.length && /^ {0,3}>/.test(lines[end])) end++;
  const inner = lines.slice(i, end).map((line) => line.replace(/^ {0,3}> ?/, ""));
  return [h("blockquote", null, blocks(inner, depth + 1)), end];
}

function list(lines, i, depth) {
  const [, indent, mark] = ITEM.exec(lines[i]);
  const isNumbered = mark.length > 1;
  const items = [];
  while (i < lines.length) {
    const match = ITEM.exec(lines[i]);
    if (!match || match[1].length > indent.length + 1 || match[2].length > 1 !== isNumbered) break;
    const inner = [match[3]];
    const within = match[1].length + 2;
    for (i++; i < lines.length; i++) {
      const line = lines[i];
      const deep = line.length - line.trimStart().length;
      const goesOn = line.trim() ? deep >= within || (inner.at(-1) && !starts(line)) : i + 1 < lines.length;
      if (!goesOn) break;
      inner.push(line.slice(Math.min(deep, within + 1)));
    }
    items.push(h("li", null, task(blocks(inner, depth + 1))));
  }
  return [isNumbered ? h("ol", { start: parseInt(mark) }, items) : h("ul", null, items), i];
}

const starts = (line) => ITEM.test(line) || FENCE.test(line) || HEADING.test(line);

/** An item of one paragraph stands without it. */
function task(nodes) {
  return nodes[0]?.type === "p" ? [nodes[0].props.children, nodes.slice(1)] : nodes;
}

function table(lines, i) {
  const head = cells(lines[i]);
  let end = i + 2;
  while (end < lines.length && lines[end].includes("|")) end++;
  const rows = lines.slice(i + 2, end).map((line) => h("tr", null, cells(line).map((cell) => h("td", null, inline(cell)))));
  const top = h("thead", null, h("tr", null, head.map((cell) => h("th", null, inline(cell)))));
  const drawn = h("table", null, top, h("tbody", null, rows));
  return [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table" }, drawn), end];
}

const cells = (line) =>
  line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

function paragraph(lines, i) {
  let end = i + 1;
  while (end < lines.length && lines[end].trim() && !starts(lines[end]) && !/^ {0,3}>/.test(lines[end])) end++;
  return [h("p", { dir: "auto" }, inline(lines.slice(i, end).map((line) => line.trim()).join("\n"))), end];
}

// One pass, no nesting of what can look ahead without end: each branch is bounded by a line or by 2,000 characters.
const INLINE = new RegExp(
  [
    /(?<!`)(?<ticks>`{1,9})(?<code>[^`](?:[^\n]{0,2000}?[^`])?)\k<ticks>(?!`)/,
    /!?\[(?<text>[^\]\n]{0,1000})\]\((?<target>[^\s)]{1,2000})(?:\s+"[^"\n]{0,200}")?\)/,
    /<?(?<bare>https?:\/\/[^\s<>"`]{1,2000})>?/,
    /\*\*(?<bold>[^\s*](?:[^\n]{0,2000}?[^\s*])?)\*\*/,
    /\*(?<italic>[^\s*](?:[^*\n]{0,2000}?[^\s*])?)\*/,
    /(?<![\p{L}\p{N}_])_(?<slanted>[^\s_](?:[^_\n]{0,2000}?[^\s_])?)_(?![\p{L}\p{N}_])/,
    /~~(?<struck>[^\s~](?:[^~\n]{0,2000}?[^\s~])?)~~/,
    /\\(?<escaped>[!-\/:-@[-`{-~])/,
  ].map((one) => one.source).join("|"),
  "gu",
);

function inline(text, depth = 0) {
  const found = [];
  let begin = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > begin) found.push(text.slice(begin, match.index));
    const node = span(match[0], match.groups, depth);
    found.push(...[node].flat());
    begin = match.index + match[0].length;
  }
  if (begin < text.length) found.push(text.slice(begin));
  return found;
}

function span(whole, of, depth) {
  if (of.code !== undefined) return h("code", null, of.code.replace(/^ (.+) $/, "$1"));
  if (of.target !== undefined) return link(of.text, of.target);
  if (of.bare !== undefined) {
    const [, target, rest] = /^(.*?)([.,;:!?)*_]*)$/.exec(of.bare);
    return [link(target, target), rest];
  }
  if (of.escaped !== undefined) return of.escaped;
  if (depth > 3) return whole;
  const inner = inline(of.bold ?? of.italic ?? of.slanted ?? of.struck, depth + 1);
  return h(of.bold ? "strong" : of.struck ? "del" : "em", null, inner);
}

/** A link that shows where it leads; an address of another kind than these is text alone. */
function link(text, target) {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return text && text !== target ? `${text} (${target})` : target;
  const attributes = { href: target, target: "_blank", rel: "noopener noreferrer" };
  const shown = beginning(target, 300, 1);
  return text && text !== target ? [h("a", attributes, text), ` (${shown})`] : h("a", attributes, shown);
}
