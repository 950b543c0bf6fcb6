// The page: which session is shown, and the parts around its conversation.

import { call, CLOSED, hasToken, keepToken, takeToken } from "./api.js";
import { Panel, Sessions } from "./panels.js";
import { Items } from "./parts.js";
import { html, render, useEffect, useLayoutEffect, useReducer, useRef, useState } from "./preact.js";
import { PromptBox } from "./prompt.js";
import { MODES, Question } from "./questions.js";
import { Session } from "./session.js";
import { visible } from "./text.js";

// Newest items that are drawn; earlier ones on demand.
const SHOWN = 200;
const USUAL_MODES = ["default", "acceptEdits", "auto", "plan"];
// Pixels from the end within which the conversation follows what comes.
const NEAR_END = 80;

const chosenSession = () => new URLSearchParams(location.search).get("session");

function App() {
  const [, draw] = useReducer((count) => count + 1, 0);
  const [needsToken, setNeedsToken] = useState(false);
  const [isForAll, setForAll] = useState(false); // false also for a token of one session
  const [session, setSession] = useState(null);
  const [problem, setProblem] = useState("");
  const [said, announce] = useState("");
  const [drawer, setDrawer] = useState("");
  const [tab, setTab] = useState("todos");
  const fail = (error) => (error.status === 401 ? setNeedsToken(true) : setProblem(error.message));

  const show = (id) => {
    if (id === session?.id) return session;
    setProblem(""); // of the session before
    const next = id ? new Session(id, () => draw(), announce) : null;
    setSession(next);
    setDrawer("");
    return next;
  };
  const choose = (id) => {
    if (id !== chosenSession()) history.pushState(null, "", id ? `?session=${encodeURIComponent(id)}` : location.pathname);
    return show(id);
  };
  const close = () => session.call("DELETE", "").then(() => choose(null), fail);
  useEffect(() => () => session?.end(), [session]);
  useEffect(() => {
    if (needsToken) return;
    call("GET", "/v1/health").then(
      () => (setForAll(true), show(chosenSession())),
      (error) => (error.status === 403 && chosenSession() ? show(chosenSession()) : fail(error)),
    );
  }, [needsToken]);
  useEffect(() => {
    const back = () => show(chosenSession());
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  });
  useEffect(() => {
    const press = (event) => {
      if (event.key !== "Escape" || event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      if (drawer) setDrawer("");
      else if (session?.isBusy) session.call("POST", "/interrupt").catch(fail);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  useEffect(() => {
    const name = session?.title || "panpan";
    document.title = session?.questions.length || session?.status?.activity === "asking" ? `(!) ${name}` : name;
  });
  useEffect(() => {
    if (session?.lost?.status === 401) setNeedsToken(true);
  });

  const enter = (token) => {
    keepToken(token);
    setNeedsToken(false);
    setProblem("");
    if (session) session.lost = null;
    session?.read();
  };
  if (needsToken) return html`<${TokenForm} enter=${enter} />`;
  const send = async (parts, delivery, message) => {
    let at = session;
    if (!at) {
      const state = await call("POST", "/v1/sessions", {});
      at = choose(state.session.id);
      await at.ready;
    }
    await at.call("POST", "/prompts", { parts, delivery, message });
  };
  const toggle = (name) => setDrawer(drawer === name ? "" : name);
  return html`
    <header>
      ${isForAll && html`<button type="button" class="toggle" aria-expanded=${String(drawer === "sessions")} onClick=${() => toggle("sessions")}>Sessions</button>`}
      <${Title} session=${session} fail=${fail} close=${isForAll && close} />
      <${State} session=${session} fail=${fail} />
      ${session && html`<button type="button" class="toggle" aria-expanded=${String(drawer === "panel")} onClick=${() => toggle("panel")}>Details</button>`}
    </header>
    <div class="columns" data-drawer=${drawer}>
      ${isForAll && html`<nav aria-label="Sessions"><${Sessions} current=${session?.id} choose=${choose} fail=${fail} activity=${session?.status?.activity} /></nav>`}
      <main>
        ${session ? html`<${Transcript} key=${session.id} session=${session} rev=${session.conversation.rev} />` : html`<${Welcome} />`}
        <div class="bottom">
          ${problem && html`<p class="problem" role="alert">${visible(problem)}
            <button type="button" class="quiet" onClick=${() => setProblem("")}>Dismiss</button></p>`}
          ${session?.questions.map((question) => html`<${Question} key=${question.id} question=${question} session=${session} fail=${fail} />`)}
          <${PromptBox} session=${session} send=${send} fail=${fail} />
          ${session?.status && html`<${Choices} session=${session} fail=${fail} />`}
        </div>
      </main>
      ${session && html`<aside aria-label="Details"><${Panel} key=${session.id} session=${session} tab=${tab} setTab=${setTab} fail=${fail} /></aside>`}
    </div>
    <p class="hidden" role="status">${visible(said)}</p>`;
}

function TokenForm({ enter }) {
  const [token, setToken] = useState("");
  const send = (event) => {
    event.preventDefault();
    const given = token.trim().split("#").pop(); // some paste the whole address
    if (given) enter(given);
  };
  return html`<main class="token"><form onSubmit=${send}>
    <h1>panpan</h1>
    ${hasToken() && html`<p role="alert">The server does not take the token of this tab. Each start makes a new one.</p>`}
    <p>The server printed an address with a token after its #. Open that, or enter the token here.</p>
    <label>Token <input type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.currentTarget.value)} /></label>
    <button class="main">Open</button>
  </form></main>`;
}

function Welcome() {
  return html`<div class="welcome"><p>Write a prompt to begin, or choose a session.</p></div>`;
}

function Title({ session, fail, close }) {
  const [isEdited, setEdited] = useState(false);
  const title = session?.title || (session ? "New session" : "panpan");
  return html`<h1 class=${isEdited ? "hidden" : ""}>${visible(title)}</h1>
    ${isEdited
      ? html`<${Rename} session=${session} fail=${fail} close=${() => setEdited(false)} />`
      : session && html`<span class="of-title">
          <button type="button" class="quiet" onClick=${() => setEdited(true)}>Rename</button>
          ${close && html`<button type="button" class="quiet" onClick=${close}>${session.isBusy ? "Stop and close" : "Close"}</button>`}
        </span>`}`;
}

function Rename({ session, fail, close }) {
  const box = useRef();
  const [title, setTitle] = useState(session.title);
  useLayoutEffect(() => (box.current.focus(), box.current.select()), []);
  const save = (event) => {
    event.preventDefault();
    if (title.trim()) session.call("PATCH", "", { title: title.trim() }).catch(fail);
    close();
  };
  const press = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  };
  return html`<form class="rename" onSubmit=${save} onKeyDown=${press}>
    <label class="hidden" for="title">Title</label>
    <input id="title" maxlength="300" ref=${box} value=${title} onInput=${(event) => setTitle(event.currentTarget.value)} />
    <button>Save</button>
  </form>`;
}

function State({ session, fail }) {
  if (!session) return null;
  if (session.lost) {
    return html`<p class="state lost" role="status">${visible(session.lost.message)}
      ${session.lost.status === CLOSED && html`<button type="button" class="quiet" onClick=${() => session.read()}>Open it again</button>`}</p>`;
  }
  const { activity, reason } = session.status ?? {};
  if (activity === "retrying") {
    return html`<p class="state" role="status">Waits to try again: ${visible(reason.slice(0, 200))}
      <button type="button" class="quiet" onClick=${() => session.call("POST", "/retry").catch(fail)}>Try now</button></p>`;
  }
  const words = { asking: "Needs your answer", busy: session.conversation.waiting || "Working …", idle: "" };
  return html`<p class="state ${activity ?? ""}" role="status">${visible(words[activity] ?? "Opening …")}</p>`;
}

/** The conversation; it follows its end unless the user has scrolled away from it. */
function Transcript({ session }) {
  const [shown, setShown] = useState(SHOWN);
  const place = useRef();
  const isAtEnd = useRef(true);
  const [isAway, setAway] = useState(false);
  const { items } = session.conversation;
  const follow = () => {
    if (isAtEnd.current) place.current.scrollTop = place.current.scrollHeight;
  };
  useLayoutEffect(follow);
  useEffect(() => {
    const sizes = new ResizeObserver(follow);
    for (const one of [place.current, place.current.firstElementChild]) sizes.observe(one);
    return () => sizes.disconnect();
  }, []);
  const scroll = () => {
    const { scrollTop, clientHeight, scrollHeight } = place.current;
    isAtEnd.current = scrollTop + clientHeight > scrollHeight - NEAR_END;
    if (isAway === isAtEnd.current) setAway(!isAtEnd.current);
  };
  const toEnd = () => place.current.scrollTo({ top: place.current.scrollHeight });
  return html`<div class="frame"><div class="transcript" ref=${place} onScroll=${scroll} tabindex="0" role="region" aria-label="Conversation">
      <div class="column">
        ${items.length > shown && html`<button type="button" class="quiet" onClick=${() => setShown(shown + SHOWN)}>Earlier messages</button>`}
        ${!items.length && session.status && html`<p class="dim">${visible(session.info.cwd)}</p>`}
        <${Items} items=${items.slice(-shown)} />
      </div>
    </div>
    ${isAway && html`<button type="button" class="to-end" onClick=${toEnd}>To the newest</button>`}</div>`;
}

function Choices({ session, fail }) {
  const { mode, model, use } = session.status;
  const [models, setModels] = useState([]);
  useEffect(() => void session.call("GET", "/models").then(setModels, () => {}), [session]);
  const change = (fields) => session.call("PATCH", "", fields).catch(fail);
  const chosen = models.find((one) => one.name === model || one.model === model);
  return html`<div class="row choices-row">
    <label class="inline">Mode <select value=${mode} onChange=${(event) => change({ mode: event.currentTarget.value })}>
      ${[...new Set([...USUAL_MODES, mode])].map((name) => html`<option key=${name} value=${name}>${MODES[name]}</option>`)}
    </select></label>
    <label class="inline">Model <select value=${chosen?.name ?? model} onChange=${(event) => change({ model: event.currentTarget.value })}>
      ${!chosen && html`<option value=${model}>${visible(model)}</option>`}
      ${models.map((one) => html`<option key=${one.name} value=${one.name}>${visible(one.name)}</option>`)}
    </select></label>
    <span class="space"></span>
    ${use && html`<span class="dim">${filled(use)}</span>`}
  </div>`;
}

function filled({ context_tokens: tokens, context_window: window, cost_usd: cost, is_cost_estimated }) {
  const share = tokens && window ? `${Math.round((100 * tokens) / window)} % of the context` : "";
  const money = cost ? `${is_cost_estimated ? "about " : ""}$${cost.toFixed(cost < 1 ? 4 : 2)}` : "";
  return [share, money].filter(Boolean).join(" · ");
}

takeToken();
addEventListener("hashchange", () => takeToken() && location.reload()); // the printed address, opened in this tab
render(html`<${App} />`, document.body);
