// The page: who is signed in, which conversation is open, and what happens when somebody asks, stops or retries.

import { backoff, call, newKey, pause, Problem, request } from "./api.js";
import { composer } from "./composer.js";
import { byId } from "./dom.js";
import { Feed } from "./feed.js";
import { switchLanguage, t, translate } from "./i18n.js";
import { Outbox } from "./outbox.js";
import { Screen } from "./screen.js";
import { Sidebar } from "./sidebar.js";
import { signInForm } from "./sign_in.js";
import { readEvents } from "./stream.js";

const TITLE_LENGTH = 60;
const SHOWN_IN_FULL = 10;

let account = null;
let conversation = null;
let feed = null;
let sidebar = null;
let outbox = null;
let drawing = false;

const screen = new Screen({ ask, stop, retry, discard, resend, loadSteps });
const write = composer(ask);

// -- what somebody does ------------------------------------------------------------------------------------------

function ask(text) {
  if (conversation === null) {
    conversation = newKey();
    history.replaceState(null, "", `#/c/${conversation}`);
    follow({ fresh: true });
  }
  const title = text.slice(0, TITLE_LENGTH);
  sidebar.begin(conversation, title);
  sidebar.open(conversation);
  outbox.add({ key: newKey(), conversation, title: sidebar.title(conversation) || title, text });
}

async function stop(turn) {
  const path = `/api/conversations/${encodeURIComponent(conversation)}/turns/${encodeURIComponent(turn.id)}/cancel`;
  await request("POST", path).catch(() => {});
  feed?.refresh();
}

function retry(turn) {
  ask(turn.question);
}

function discard(entry) {
  outbox.remove(entry.key);
}

function resend(entry) {
  outbox.remove(entry.key);
  ask(entry.text);
}

/** The steps of a turn that was over before this page was opened. */
async function loadSteps(turn) {
  if (turn.steps.size > 0 || turn.stepsAsked) return;
  turn.stepsAsked = true;
  turn.clear();
  const path = `/api/conversations/${encodeURIComponent(conversation)}/turns/${encodeURIComponent(turn.id)}/events`;
  const onEvent = ({ kind, data }) => {
    if (["step", "text", "data", "snapshot", "restarted"].includes(kind)) turn.replay(kind, data);
  };
  await readEvents(path, { after: 0, onEvent }).catch(() => (turn.stepsAsked = false));
  draw();
}

// -- what is on the screen ---------------------------------------------------------------------------------------

function draw() {
  if (drawing) return;
  drawing = true;
  // Not requestAnimationFrame: a tab in the background must be right when it is looked at.
  queueMicrotask(() => {
    drawing = false;
    if (account === null) return;
    const pending = outbox.entries().filter((entry) => entry.conversation === conversation);
    screen.draw(conversation, feed, pending.map((entry) => ({ entry, status: outbox.status(entry.key) })));
    if (!feed?.loaded) return;
    sidebar.mark(conversation, feed.turns.unfinished().length > 0);
    // What was done before a stop or a failure is in the log only, not in a result.
    for (const turn of feed.turns.known().slice(-SHOWN_IN_FULL)) {
      if (turn.final && turn.status !== "succeeded") loadSteps(turn);
    }
  });
}

function follow({ fresh }) {
  feed?.close();
  feed = conversation === null ? null : new Feed(conversation, { onChange: draw, fresh });
  draw();
}

function route() {
  const wanted = /^#\/c\/([A-Za-z0-9_-]{8,64})$/.exec(location.hash)?.[1] ?? null;
  document.body.classList.remove("side-open");
  if (wanted === conversation && feed !== null) return;
  conversation = wanted;
  sidebar.open(conversation);
  // A question that was written down but never sent may be all there is of its conversation.
  const unsent = outbox.entries().some((entry) => entry.conversation === conversation);
  follow({ fresh: unsent && !sidebar.has(conversation) });
  write.focus();
}

// -- who is signed in --------------------------------------------------------------------------------------------

async function enter() {
  for (let failures = 1; ; failures++) {
    try {
      account = await call("GET", "/api/me");
      break;
    } catch (error) {
      if (error instanceof Problem && error.status === 401) return leave();
      await pause(backoff(failures), undefined, { orOnline: true });
    }
  }
  byId("sign-in").hidden = true;
  byId("app").hidden = false;
  who();
  sidebar = new Sidebar(account.name);
  outbox = new Outbox(account.name, { onChange: draw, onAccepted: accepted });
  await sidebar.load().catch(() => {});
  conversation = null;
  route();
  outbox.restore();
}

function accepted(entry) {
  sidebar.begin(entry.conversation, entry.title);
  sidebar.mark(entry.conversation, true);
  if (entry.conversation === conversation) feed?.asked();
}

function leave(message = "") {
  const was = account;
  account = null;
  feed?.close();
  feed = null;
  sidebar?.close();
  outbox?.close();
  byId("app").hidden = true;
  byId("sign-in").hidden = false;
  form.show(was && message);
}

function who() {
  byId("who").textContent = `${account.name} · ${t(`role.${account.role}`, {}, account.role)}`;
}

const form = signInForm(enter);

addEventListener("hashchange", () => account !== null && route());
addEventListener("signed-out", () => account !== null && leave(t("signedOut")));
addEventListener("click", async (event) => {
  switch (event.target.closest?.("[data-action]")?.dataset.action) {
    case "language":
      switchLanguage();
      translate();
      if (account !== null) {
        who();
        sidebar.draw();
        draw();
      }
      break;
    case "earlier":
      feed?.loadEarlier().catch(() => {});
      break;
    case "open-side":
      document.body.classList.add("side-open");
      break;
    case "close-side":
      document.body.classList.remove("side-open");
      break;
    case "sign-out":
      await request("POST", "/sign-out").catch(() => {});
      history.replaceState(null, "", "#/");
      leave();
      break;
    default:
  }
});

translate();
enter();
