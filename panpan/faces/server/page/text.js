// Texts of any origin as they are shown.
//
// The rule: a text becomes text nodes and nothing else. What a reader cannot see is spelled out, so that it hides and
// reorders nothing.

import { html, useState } from "./preact.js";

const COLOURS = /\x1b\[[\d;:]*m/g;
// Controls, and what reorders or hides text; emoji and some scripts are written with the joiners that are left out.
const HIDING = /(?![\u200c\u200d\ufe00-\ufe0f])[\p{DI}\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb]/gu;
// The same with joiners and blank letters, where a person judges the text.
const INVISIBLE = /[\p{DI}\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u2800\ufff9-\ufffb]/gu;
const MOST_CHARS = 12_000;
const MOST_LINES = 200;

const number = (one) => `<U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;

/** Return a text without colours of terminals, and with what hides or reorders it spelled out. */
export function visible(text) {
  return text.replace(COLOURS, "").replace(/\r\n?/g, "\n").replace(HIDING, number);
}

/** Return a text with every invisible character spelled out, for a person to judge. */
export function exact(text) {
  return text.replace(INVISIBLE, number);
}

/** Return the beginning of a text that is too long to draw, cut at the end of a line if there is one. */
export function beginning(text, mostChars = MOST_CHARS, mostLines = MOST_LINES) {
  let end = 0;
  for (let line = 0; line < mostLines; line++) {
    const next = text.indexOf("\n", end);
    if (next < 0) {
      end = text.length;
      break;
    }
    end = next + 1;
  }
  if (end > mostChars) end = Math.max(text.lastIndexOf("\n", mostChars) + 1, 0) || mostChars;
  return text.slice(0, end);
}

/** Draw a text that may be very long: its beginning, and the rest on demand. `draw` makes nodes of what is shown. */
export function Long({ text, draw, mostLines }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? text : beginning(text, MOST_CHARS, mostLines);
  const isCut = shown.length < text.length;
  return html`${draw(shown)}
    ${isCut &&
    html`<button type="button" class="quiet more" onClick=${() => setWhole(true)}>
      Show all ${text.length.toLocaleString("en")} characters
    </button>`}`;
}

/** Output, code or arguments, in letters of one width. */
export function Plain({ text, label, mostLines, spell = visible }) {
  const draw = (shown) => html`<pre tabindex="0" role="region" aria-label=${label}>${spell(shown)}</pre>`;
  return html`<${Long} text=${text} draw=${draw} mostLines=${mostLines} />`;
}
