// Questions of a session: about a call, of the model, and about a plan.
//
// The rule: a question shows all that an answer is about, and no answer has the focus, so that a key that was meant for
// something else says nothing.

import { html, useEffect, useRef, useState } from "./preact.js";
import { Markdown } from "./markdown.js";
import { Arguments, Diffs } from "./parts.js";
import { exact } from "./text.js";

export const MODES = {
  default: "Ask first",
  acceptEdits: "Accept edits",
  auto: "Auto, in the sandbox",
  plan: "Plan only",
  dontAsk: "Deny without asking",
  bypassPermissions: "Allow everything",
};

const PLAN_MODES = {
  default: "Yes, and ask before edits",
  acceptEdits: "Yes, and accept edits automatically",
  auto: "Yes, in auto mode",
  dontAsk: "Yes, in the mode dontAsk",
  bypassPermissions: "Yes, in the mode bypassPermissions",
};

export function Question({ question, session, fail }) {
  const place = useRef();
  const [isSending, setSending] = useState(false);
  useEffect(() => {
    const at = document.activeElement;
    const isTyping = at && /^(TEXTAREA|INPUT|SELECT)$/.test(at.tagName) && at.value;
    if (!isTyping) place.current.focus();
    place.current.scrollIntoView({ block: "nearest" });
    return () => document.activeElement === document.body && document.getElementById("prompt")?.focus();
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
    <fieldset disabled=${isSending}><${View} id=${question.id} question=${question.question} session=${session}
      fail=${fail} answer=${answer} /></fieldset>
  </section>`;
}

function Permission({ id, question, session, fail, answer }) {
  const [words, setWords] = useState("");
  const [choices, setChoices] = useState({ why: "", answers: [] });
  useEffect(() => {
    const read = (error) => error.status !== 404 && fail(error); // 404: it was answered meanwhile
    session.call("GET", `/questions/${id}/answers`).then(setChoices, read);
  }, [id]);
  const { wording, offer, preview } = question;
  const isAllShown = preview && !preview.files.some((file) => file.is_cut);
  const give = (given) => {
    const said = given.is_allowed ? "allowed" : "refused";
    answer("permission", words.trim() ? { ...given, feedback: `The user ${said} it and said: ${words.trim()}` } : given);
  };
  const whole = html`<${Arguments} input=${question.input} spell=${exact} />`;
  return html`
    <h2>${exact(wording.question || `Allow ${question.tool_name}?`)}</h2>
    ${question.agent && html`<p>For the subagent ${exact(question.agent)}</p>`}
    ${choices.why && html`<p>${exact(choices.why)}</p>`}
    ${question.is_protected && html`<p>Always asks: rules and --yes don't cover this.</p>`}
    ${wording.effect && html`<p>Runs: <code>${exact(wording.effect)}</code></p>`}
    <div class="whole">
      ${preview && html`<${Diffs} files=${preview.files} notes=${preview.notes} spell=${exact} />`}
      ${isAllShown ? html`<details><summary>The whole call</summary>${whole}</details>` : whole}
    </div>
    ${offer.bounds && html`<p class="dim">${exact(offer.bounds)}</p>`}
    <div class="answers">
      ${choices.answers.map((one, number) => html`<button type="button" key=${one.text} class=${number ? "" : "main"}
        onClick=${() => give(one.answer)}>${exact(one.text)}</button>`)}
    </div>
    <label>Words for the model (optional)
      <input value=${words} onInput=${(event) => setWords(event.currentTarget.value)} />
    </label>`;
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
        onClick=${() => answer("approved", { mode })}>${PLAN_MODES[mode]}</button>`)}
      <button type="button" onClick=${() => answer("rejected", { comments: comments.trim() })}>No, keep planning</button>
    </div>
    <label>Comments on the plan (for a no)
      <textarea rows="2" value=${comments} onInput=${(event) => setComments(event.currentTarget.value)}></textarea>
    </label>`;
}
