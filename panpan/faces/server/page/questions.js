// Questions of a session: about a call, of the model, and about a plan.
//
// The rule: a question shows all that an answer is about, and no answer has the focus, so that a key that was meant for
// something else says nothing.

import { html, useEffect, useRef, useState } from "./preact.js";
import { Markdown } from "./markdown.js";
import { Arguments, Diffs } from "./parts.js";
import { exact } from "./text.js";

// Kinds of reasons that say no more than the question does.
const OBVIOUS = ["not-allowed", "unknown", "read-only", "mode"];
export const MODES = {
  default: "Ask first",
  acceptEdits: "Accept edits",
  auto: "Auto, in the sandbox",
  plan: "Plan only",
  dontAsk: "Deny without asking",
  bypassPermissions: "Allow everything",
};

export function Question({ question, session, fail }) {
  const place = useRef();
  const [isSending, setSending] = useState(false);
  useEffect(() => {
    const at = document.activeElement;
    const isTyping = at && /^(TEXTAREA|INPUT|SELECT)$/.test(at.tagName) && at.value;
    if (!isTyping) place.current.focus();
    place.current.scrollIntoView({ block: "nearest" });
  }, [question.id]);
  const answer = async (kind, given) => {
    setSending(true);
    try {
      await session.call("POST", `/questions/${question.id}`, { answer: { kind, answer: given } });
    } catch (error) {
      fail(error);
    }
    setSending(false);
  };
  const View = { permission: Permission, plan: Plan, user: OfModel }[question.kind];
  return html`<section class="question" ref=${place} tabindex="-1" role="group" aria-label="A question for you">
    <fieldset disabled=${isSending}><${View} question=${question.question} answer=${answer} /></fieldset>
  </section>`;
}

function sentence(text) {
  return text && exact(text[0].toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : "."));
}

function Permission({ question, answer }) {
  const [words, setWords] = useState("");
  const { wording, offer, preview } = question;
  const reasons = question.reasons.length
    ? [...new Set(question.reasons.filter((one) => !OBVIOUS.includes(one.kind)).map((one) => one.text))]
    : [question.reason];
  const given = (fields) => {
    const said = fields.is_allowed ? "allowed" : "refused";
    const feedback = words.trim() ? `The user ${said} it and said: ${words.trim()}` : "";
    answer("permission", { ...fields, feedback });
  };
  return html`
    <h2>${exact(wording.question || `Allow ${question.tool_name}?`)}</h2>
    ${question.agent && html`<p>For the subagent ${exact(question.agent)}</p>`}
    ${reasons.map((reason) => html`<p>${sentence(reason)}</p>`)}
    ${question.is_protected && html`<p>Always asks: rules don't cover this.</p>`}
    ${wording.effect && html`<p>Runs: <code>${exact(wording.effect)}</code></p>`}
    <div class="whole">
      ${preview && html`<${Diffs} files=${preview.files} notes=${preview.notes} spell=${exact} />`}
      ${preview && !preview.files.some((file) => file.is_cut)
        ? html`<details><summary>The whole call</summary><${Arguments} input=${question.input} spell=${exact} /></details>`
        : html`<${Arguments} input=${question.input} spell=${exact} />`}
    </div>
    ${offer.bounds && html`<p class="dim">${sentence(offer.bounds)}</p>`}
    <div class="answers">
      ${yesAnswers(question).map(([text, fields], number) => html`<button type="button" key=${text}
        class=${number ? "" : "main"} onClick=${() => given({ is_allowed: true, ...fields })}>${exact(text)}</button>`)}
      <button type="button" onClick=${() => given({ is_allowed: false })}>No</button>
    </div>
    <label>Words for the model (optional)
      <input value=${words} onInput=${(event) => setWords(event.currentTarget.value)} />
    </label>`;
}

/** Return the words of each yes, with what it says beside that. They are those of the other faces. */
function yesAnswers({ rule, prefix_rule, offer }) {
  if (offer.openings.length) {
    const places = {
      off: () => "outside the sandbox",
      network: ({ hosts }) => (hosts.length ? `with the network for ${hosts.join(", ")}` : "with the whole network"),
      on: () => "in the sandbox as it is",
    };
    return offer.openings.flatMap((opening, number) => {
      const words = places[opening.use](opening);
      const kept = opening.use === "off" ? opening.patterns : opening.hosts;
      const always = opening.patterns.length
        ? `Yes, and ${opening.patterns.join(", ")} ${words} from now on`
        : `Yes, and always ${words}`;
      const lasting = number === 0 && kept.length ? [[always, { opening, is_remembered: true }]] : [];
      return [[`Yes, ${words}`, { opening }], ...lasting];
    });
  }
  const modes = {
    acceptEdits: "Yes, and accept edits from now on",
    auto: "Yes, and stop asking for sandboxed commands",
  };
  return [
    ["Yes", {}],
    rule && [`Yes, and don't ask again for ${rule}`, { is_remembered: true }],
    prefix_rule && [`Yes, and don't ask again for ${prefix_rule}`, { is_remembered: true, is_for_prefix: true }],
    modes[offer.mode] && [modes[offer.mode], { changes_mode: true }],
  ].filter(Boolean);
}

function OfModel({ question: questions, answer }) {
  const [answers, setAnswers] = useState(() => questions.map(() => ({ chosen: [], text: "" })));
  const change = (number, fields) =>
    setAnswers(answers.map((one, other) => (other === number ? { ...one, ...fields } : one)));
  const isComplete = answers.every((one) => one.chosen.length || one.text.trim());
  const choose = (number, label, isOn) => {
    const { choices, allows_several } = questions[number];
    const on = new Set(allows_several ? answers[number].chosen : []);
    if (isOn) on.add(label);
    else on.delete(label);
    change(number, { chosen: choices.map((one) => one.label).filter((one) => on.has(one)) });
  };
  const send = (event) => {
    event.preventDefault();
    if (isComplete) answer("user", answers.map((one) => ({ chosen: one.chosen, text: one.text.trim() })));
  };
  return html`<form onSubmit=${send}>
    <h2>The model asks</h2>
    ${questions.map((question, number) => html`<fieldset key=${number} class="choices">
      <legend>${exact(question.question)}</legend>
      ${question.choices.map(({ label, description }) => html`<label key=${label} class="choice">
        <input type=${question.allows_several ? "checkbox" : "radio"} name="q${number}"
          checked=${answers[number].chosen.includes(label)}
          onChange=${(event) => choose(number, label, event.currentTarget.checked)} />
        <span>${exact(label)}${description && html`<span class="dim"> — ${exact(description)}</span>`}</span>
      </label>`)}
      <label>Your own words
        <input value=${answers[number].text}
          onInput=${(event) => change(number, { text: event.currentTarget.value })} />
      </label>
    </fieldset>`)}
    <div class="answers">
      <button class="main" disabled=${!isComplete}>Answer</button>
      <button type="button" onClick=${() => answer("user", null)}>Don't answer</button>
    </div>
  </form>`;
}

function Plan({ question, answer }) {
  const [comments, setComments] = useState("");
  return html`
    <h2>Approve this plan?</h2>
    <div class="plan whole"><${Markdown} text=${question.text} /></div>
    <div class="answers">
      ${question.modes.map((mode, number) => html`<button type="button" key=${mode} class=${number ? "" : "main"}
        onClick=${() => answer("approved", { mode })}>Yes: ${MODES[mode]}</button>`)}
      <button type="button" onClick=${() => answer("rejected", { comments: comments.trim() })}>No, plan again</button>
    </div>
    <label>Comments on the plan (for a no)
      <textarea rows="2" value=${comments} onInput=${(event) => setComments(event.currentTarget.value)}></textarea>
    </label>`;
}
