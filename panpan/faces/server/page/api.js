// Calls to the server, and its events.
//
// The rule: the token is in no address and nothing goes to another origin. A call fails with an `ApiError`, whose message
// is a sentence for the user.

const TOKEN = "panpan.token";
const NAME = "panpan.name";
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;
// The server sends a sign of life every 15 seconds.
const SILENCE_MS = 40_000;
// A server that ends answers a little longer than its sessions.
const END_MS = 1_000;
/** Status of the error of a session that was closed. */
export const CLOSED = 410;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * Take the token from the fragment of the address, which loses it at once; a reload finds it in the tab's storage.
 * Return true if there was one.
 */
export function takeToken() {
  const given = location.hash.slice(1);
  if (given) {
    history.replaceState(null, "", location.pathname + location.search);
    keepToken(decoded(given));
  }
  return given !== "";
}

export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Name of this tab for other clients. A copy of a tab has another one, although it gets the storage of the first. */
export const clientName = (() => {
  const isSame = performance.getEntriesByType("navigation")[0]?.type !== "navigate";
  const kept = isSame && sessionStorage.getItem(NAME);
  const name = kept || `page-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
  sessionStorage.setItem(NAME, name);
  return name;
})();

function headers() {
  // Another character than these could not be in a header; the server then says that the token is wrong.
  const token = (sessionStorage.getItem(TOKEN) ?? "").replace(/[^\x21-\x7e]/g, "");
  const known = { "X-Panpan-Client": clientName };
  return token ? { ...known, Authorization: `Bearer ${token}` } : known;
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...headers(), ...options.headers }, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the server does not answer; is panpan still running?");
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => null);
  throw new ApiError(response.status, told?.error?.message ?? `the server answered ${response.status}`);
}

/** Call an operation, and return its result. `params` go into the body, or for GET into the query. */
export async function call(method, path, params) {
  if (method === "GET") {
    const query = params ? `?${new URLSearchParams(params)}` : "";
    return (await request(path + query, { method })).json();
  }
  const body = params && JSON.stringify(params);
  const kind = body ? { "Content-Type": "application/json" } : {};
  return (await request(path, { method, body, headers: kind })).json();
}

async function isThere() {
  return request("/v1/health", { method: "GET" }).then(() => true, (error) => error.status > 0);
}

/** Return the path of a session, or of something of it. */
export function pathOf(session, rest = "") {
  return `/v1/sessions/${encodeURIComponent(session)}${rest}`;
}

/**
 * Read the events of a session until the returned function is called, and go on after a lost connection.
 *
 * `place` returns `{epoch, after}` to go on at, `take` gets the events of one read, and `tell` gets null once they
 * come, or the error for which they do not.
 */
export function follow(session, place, take, tell) {
  const ending = new AbortController();
  let pause = FIRST_PAUSE_MS;
  const run = async () => {
    while (!ending.signal.aborted) {
      try {
        await readStream(pathOf(session, `/events?${new URLSearchParams(place())}`), ending.signal, (events) => {
          pause = FIRST_PAUSE_MS;
          tell(null);
          if (events.length) take(events);
        });
        // Its end is that of the session or of the server; to read on would open a closed session again.
        await new Promise((done) => setTimeout(done, END_MS));
        if (await isThere()) {
          tell(new ApiError(CLOSED, "this session was closed"));
          return;
        }
      } catch (error) {
        if (ending.signal.aborted) return;
        tell(error);
        if (error.status === 401 || error.status === 404) return;
      }
      await new Promise((done) => setTimeout(done, pause * (0.75 + Math.random() / 2)));
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  };
  run();
  return () => ending.abort();
}

async function readStream(path, signal, take) {
  const one = new AbortController();
  const end = () => one.abort();
  signal.addEventListener("abort", end);
  let silence = setTimeout(end, SILENCE_MS);
  try {
    const response = await request(path, { method: "GET", signal: one.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    take([]);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(end, SILENCE_MS);
      take(parser.push(value));
    }
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(0, "the connection is lost; trying again");
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", end);
  }
}

/** Takes a stream of server-sent events apart. Each byte is looked at once, however long an event is. */
export class EventParser {
  constructor() {
    this.parts = [];
    this.tail = "";
  }

  /** Return the events that are complete with a further piece of the stream. */
  push(text) {
    const events = [];
    let begin = 0;
    const joined = this.tail + text;
    for (let end; (end = joined.indexOf("\r\n\r\n", begin)) >= 0; begin = end + 4) {
      this.parts.push(joined.slice(begin, end));
      const event = parsed(this.parts.join(""));
      this.parts = [];
      if (event) events.push(event);
    }
    // An end may lie across two pieces, so that the last three characters wait for the next one.
    const rest = joined.slice(begin);
    this.parts.push(rest.slice(0, Math.max(0, rest.length - 3)));
    this.tail = rest.slice(Math.max(0, rest.length - 3));
    return events;
  }
}

function parsed(block) {
  const fields = {};
  for (const line of block.split("\r\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (!fields.data) return null; // a sign of life
  const [epoch, number] = (fields.id ?? "").split(":");
  return { epoch, number: Number(number), name: fields.event, data: JSON.parse(fields.data) };
}

/** Return a UUID of version 7, so that a prompt that is sent twice runs once. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const time = Date.now();
  for (let i = 0; i < 6; i++) bytes[i] = Math.floor(time / 2 ** (8 * (5 - i))) & 255;
  bytes[6] = (bytes[6] & 15) | 0x70;
  bytes[8] = (bytes[8] & 63) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
