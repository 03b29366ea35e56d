// Calls to the server: what was answered, what was refused (Problem), and what never came back (Unreachable).

/** The server said no: a problem document. */
export class Problem extends Error {
  constructor(response, body) {
    super(body.detail || body.title || `HTTP ${response.status}`);
    this.status = response.status;
    this.type = String(body.type || "").split(/[:/]/).pop();
    this.detail = body.detail || body.title || "";
    this.turn = response.headers.get("Turn-Id");
    this.retryAfter = Number(response.headers.get("Retry-After")) || 0;
  }
}

/** No answer came: nobody knows whether the request arrived. */
export class Unreachable extends Error {}

/** One call; `timeout` in milliseconds bounds the wait for the answer's first byte. Answers the Response. */
export async function request(method, path, { body, headers = {}, signal, timeout = 40000 } = {}) {
  const limit = new AbortController();
  const leave = () => limit.abort();
  signal?.addEventListener("abort", leave, { once: true });
  if (signal?.aborted) leave();
  const timer = setTimeout(leave, timeout);
  let response;
  try {
    response = await fetch(path, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: { Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      signal: limit.signal,
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (error) {
    throw new Unreachable(String(error));
  } finally {
    clearTimeout(timer);
  }
  if (!response.ok) {
    const document = await response.json().catch(() => ({}));
    if (response.status === 401 && path.startsWith("/api/")) globalThis.dispatchEvent(new Event("signed-out"));
    throw new Problem(response, document);
  }
  return response;
}

/** One call whose answer is JSON. */
export async function call(method, path, options) {
  const response = await request(method, path, options);
  try {
    return await response.json();
  } catch (error) {
    throw new Unreachable(String(error));
  }
}

/** A pause that ends early when `signal` aborts or, where asked, when the network is back. */
export function pause(milliseconds, signal, { orOnline = false } = {}) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      if (orOnline) globalThis.removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    if (signal?.aborted) done();
    signal?.addEventListener("abort", done);
    if (orOnline) globalThis.addEventListener("online", done);
  });
}

/** Milliseconds before try number `failures` (1, 2, …): doubling, bounded, spread. */
export const backoff = (failures) => Math.min(10000, 500 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2);

/** A name for a request, made before it is sent. Plain http on a private network has no randomUUID. */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
